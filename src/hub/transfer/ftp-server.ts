/** The FTP server, with TLS on request of the client (AUTH TLS) or from the first byte. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { createSecureContext } from "node:tls";
import { ConfigError, wordsOf } from "#core/errors.ts";
import { type FtpParts, FtpSession } from "./ftp-session.ts";
import type { FtpOptions } from "./options.ts";
import { type Listening, listenOn, type ServerParts } from "./server-parts.ts";

export interface FtpListening {
  readonly ftp: Listening;
  /** With TLS from the first byte; null when the configuration has no address for it. */
  readonly ftps: Listening | null;
}

export async function startFtp(options: FtpOptions, parts: ServerParts): Promise<FtpListening> {
  const { listen, tls, passivePorts, publicAddress } = options;
  const [first = 0, last = 0] = passivePorts?.split("-").map(Number) ?? [];
  const own: FtpParts = {
    ...parts,
    tls: tls === undefined ? null : { context: await contextOf(tls), isRequired: tls.required },
    ports: passivePorts === undefined ? null : { first, last },
    publicAddress: publicAddress ?? null,
  };
  const ftp = await serve(listen, "`transfer.ftp.listen`", own, false);
  if (tls?.listen === undefined) return { ftp, ftps: null };
  try {
    return { ftp, ftps: await serve(tls.listen, "`transfer.ftp.tls.listen`", own, true) };
  } catch (thrown) {
    await ftp.close();
    throw thrown;
  }
}

async function serve(address: string, setting: string, parts: FtpParts, isImplicit: boolean): Promise<Listening> {
  const server = createServer({ noDelay: true }, (socket) => {
    const connection = parts.connections.admit(socket);
    if (connection !== null) new FtpSession(parts, connection, isImplicit);
  });
  return await listenOn(server, address, setting);
}

async function contextOf({ cert, key }: NonNullable<FtpOptions["tls"]>) {
  try {
    return createSecureContext({ cert: await readFile(cert), key: await readFile(key), minVersion: "TLSv1.2" });
  } catch (cause) {
    const message = `the certificate or key of the FTP server cannot be used: ${wordsOf(cause)}`;
    const hint = "Check `transfer.ftp.tls`: `cert` and `key` are files in PEM that belong together.";
    throw new ConfigError("HG-HUB-005", { operation: "start hub", subject: cert, message, hint, cause });
  }
}
