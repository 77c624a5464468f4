/** The servers of all protocols, over whatever the users who sign in may see. */
import type { Clock } from "#core/clock.ts";
import type { Logger } from "#core/log.ts";
import { createConnections } from "./connections.ts";
import { startFtp } from "./ftp-server.ts";
import type { TransferOptions } from "./options.ts";
import type { Listening, ServerParts } from "./server-parts.ts";
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
