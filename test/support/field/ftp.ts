/** A small FTP server on loopback, for tests: one user, one folder, nothing outside it. */

import { realpath } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { FtpSession } from "./ftp-session.ts";
import type { FieldHooks } from "./hooks.ts";

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
  /** Encoding of names; `utf8` when absent. */
  readonly encoding?: "utf8" | "latin1";
  /** For tests. */
  readonly hooks?: FieldHooks;
}

export interface FieldFtp {
  readonly host: string;
  readonly port: number;
  /** Connections at this moment. */
  connections(): number;
  close(): Promise<void>;
}

export async function startFieldFtp(options: FieldFtpOptions): Promise<FieldFtp> {
  const root = await realpath(options.root);
  const sessions = new Set<FtpSession>();
  const server = createServer({ noDelay: true }, (socket) => {
    const session = new FtpSession({ ...options, root }, socket, () => sessions.delete(session));
    sessions.add(session);
    session.listen();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const session of sessions) session.end();
    });
  return { host: "127.0.0.1", port, connections: () => sessions.size, close };
}
