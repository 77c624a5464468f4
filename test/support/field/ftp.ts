/** A small FTP server on loopback, for tests: one user, one folder, nothing outside it. */

import { realpath } from "node:fs/promises";
import { createServer } from "node:net";
import { FtpSession } from "./ftp-session.ts";
import type { FieldHooks } from "./hooks.ts";
import { type Loopback, listenOnLoopback } from "./loopback.ts";

export interface FieldFtpOptions {
  readonly root: string;
  readonly username: string;
  readonly password: string;
  /** 0 for any free one. */
  readonly port?: number;
  /** Whether MLSD and MLST are offered; yes unless false. */
  readonly machineListing?: boolean;
  /** PEM texts; AUTH TLS is offered when present. */
  readonly tls?: {
    readonly key: string;
    readonly cert: string;
    /** TLS from the first byte, without AUTH. */
    readonly implicit?: boolean;
    /** The issuer of the certificates that clients must present; none is required when absent. */
    readonly clientCa?: string;
  };
  /** Whether EPSV is offered; yes unless false. */
  readonly extendedPassive?: boolean;
  /** The address that PASV reports, as behind an address translation; loopback when absent. */
  readonly passiveAddress?: string;
  /** Whether blanks before and after names are cut off in commands. */
  readonly cutsBlanks?: boolean;
  /** Encoding of names; `utf8` when absent. */
  readonly encoding?: "utf8" | "latin1";
  /** For tests. */
  readonly hooks?: FieldHooks;
}

export interface FieldFtp extends Loopback {
  /** Connections at this moment. */
  connections(): number;
}

export async function startFieldFtp(options: FieldFtpOptions): Promise<FieldFtp> {
  const root = await realpath(options.root);
  const sessions = new Set<FtpSession>();
  const server = createServer({ noDelay: true }, (socket) => {
    const session = new FtpSession({ ...options, root }, socket, () => sessions.delete(session));
    sessions.add(session);
    session.listen();
  });
  const cut = () => {
    for (const session of sessions) session.end();
  };
  return { ...(await listenOnLoopback(server, options.port, cut)), connections: () => sessions.size };
}
