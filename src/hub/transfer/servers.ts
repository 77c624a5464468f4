/** The servers of all protocols, over whatever the users who sign in may see. */

import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { createSecureContext } from "node:tls";
import type { Clock } from "#core/clock.ts";
import { ConfigError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { createConnections } from "./connections.ts";
import { type FtpParts, FtpSession } from "./ftp-session.ts";
import type { FtpOptions, TransferOptions } from "./options.ts";
import { type Listening, listenOn, type ServerParts } from "./server-parts.ts";
import { startSftp } from "./sftp-server.ts";
import type { SignIn } from "./sign-in.ts";

export interface RunningServers {
  /** `host:port` of each protocol that is served. */
  readonly addresses: { readonly [protocol in "sftp" | "ftp" | "ftps"]: string | null };
  /** Uploads that are being written end. */
  close(): Promise<void>;
}

interface Parts {
  readonly signIn: SignIn;
  /** Private keys as texts; needed for SFTP alone. */
  readonly hostKeys: readonly string[];
  readonly log: Logger;
  readonly clock: Clock;
}

/** Throws `ConfigError`, or `TransientError` while a port is taken. */
export async function startServers(options: TransferOptions, parts: Parts): Promise<RunningServers> {
  const { signIn, hostKeys, log, clock } = parts;
  const connections = createConnections(options, log);
  const servers: Listening[] = [];
  const close = async () => {
    const ended = servers.map((server) => server.close());
    await connections.close();
    await Promise.all(ended);
  };
  const own: ServerParts = { connections, signIn, options, log, clock };
  try {
    const sftp = options.sftp === undefined ? null : await startSftp(options.sftp.listen, hostKeys, own);
    if (sftp !== null) servers.push(sftp);
    const ftp = options.ftp === undefined ? null : await startFtp(options.ftp, own);
    for (const server of [ftp?.ftp, ftp?.ftps]) if (server) servers.push(server);
    const addresses = {
      sftp: sftp?.address ?? null,
      ftp: ftp?.ftp.address ?? null,
      ftps: ftp?.ftps?.address ?? null,
    };
    return { addresses, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

// The FTP server, with TLS on request of the client (AUTH TLS) or from the first byte.

interface FtpListening {
  readonly ftp: Listening;
  /** With TLS from the first byte; null when the configuration has no address for it. */
  readonly ftps: Listening | null;
}

async function startFtp(options: FtpOptions, parts: ServerParts): Promise<FtpListening> {
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
