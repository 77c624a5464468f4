import type { AddressInfo, Server } from "node:net";
import type { Clock } from "#core/clock.ts";
import { ConfigError, systemCode } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { startFault } from "#core/start-fault.ts";
import type { Connections } from "./connections.ts";
import type { TransferOptions } from "./options.ts";
import type { SignIn } from "./sign-in.ts";

/** Components that the servers of all protocols share. */
export interface ServerParts {
  readonly connections: Connections;
  readonly signIn: SignIn;
  readonly options: TransferOptions;
  readonly log: Logger;
  readonly clock: Clock;
}

export interface Listening {
  /** `host:port`. */
  readonly address: string;
  /** No further connection is taken. */
  close(): Promise<void>;
}

/** Throws `ConfigError`, or `TransientError` while the port is taken. */
export async function listenOn(server: Server, address: string, setting: string): Promise<Listening> {
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, colon).replace(/^\[|\]$/g, "");
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(Number(address.slice(colon + 1)), host, () => resolve());
    });
  } catch (cause) {
    const message = `the hub cannot listen on ${address} (${setting}; ${systemCode(cause)})`;
    const facts = { operation: "start hub", subject: address, message, cause };
    // A missing right does not appear by itself.
    throw systemCode(cause) === "EACCES" ? new ConfigError("HG-CONF-004", facts) : startFault("HG-CONF-004", facts);
  }
  const { address: bound, family, port } = server.address() as AddressInfo;
  return {
    address: `${family === "IPv6" ? `[${bound}]` : bound}:${port}`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
