/** Listens on `host:port`, with an error that a person understands. */
import type { FastifyInstance } from "fastify";
import { ConfigError, systemCode } from "./errors.ts";
import { startFault } from "./start-fault.ts";

/** `address`: as `listenAddress` has it. IPv6 without brackets. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number } {
  const at = address.lastIndexOf(":");
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
}

/**
 * Starts listening and returns the URL. `setting` names the option in the message. Throws `ConfigError`, or
 * `TransientError` while the port is taken.
 */
export function listenOrExplain(app: FastifyInstance, address: string, setting: string): Promise<string> {
  return explainListen(() => app.listen(hostAndPort(address)), address, setting);
}

/** As `listenOrExplain`, for any way to listen. */
export async function explainListen<Place>(
  listen: () => Promise<Place>,
  address: string,
  setting: string,
): Promise<Place> {
  try {
    return await listen();
  } catch (cause) {
    const why =
      systemCode(cause) === "EADDRINUSE"
        ? `the port ${hostAndPort(address).port} is taken by another program`
        : systemCode(cause) === "EACCES"
          ? `this user may not listen on port ${hostAndPort(address).port}`
          : `it is not an address of this machine`;
    const message = `cannot listen on ${address} (${setting}): ${why}`;
    const facts = { operation: "listen", subject: address, message, cause };
    // A missing permission needs a person; a port that is taken may become free.
    throw systemCode(cause) === "EACCES" ? new ConfigError("HG-CONF-004", facts) : startFault("HG-CONF-004", facts);
  }
}
