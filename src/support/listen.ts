/** Listens on `host:port`, with an error that a person understands. */
import type { FastifyInstance } from "fastify";
import { ConfigError, systemCode } from "./errors.ts";
import { startFault } from "./start-fault.ts";

/**
 * Starts listening and returns the URL. `setting` names the option in the message. Throws `ConfigError`, or
 * `TransientError` while the port is taken.
 */
export async function listenOrExplain(app: FastifyInstance, address: string, setting: string): Promise<string> {
  const at = address.lastIndexOf(":");
  const host = address.slice(0, at).replace(/^\[|\]$/g, "");
  const port = Number(address.slice(at + 1));
  try {
    return await app.listen({ host, port });
  } catch (cause) {
    const why =
      systemCode(cause) === "EADDRINUSE"
        ? `the port ${port} is taken by another program`
        : systemCode(cause) === "EACCES"
          ? `this user may not listen on port ${port}`
          : `it is not an address of this machine`;
    const message = `cannot listen on ${address} (${setting}): ${why}`;
    const facts = { operation: "listen", subject: address, message, cause };
    // A missing permission needs a person; a port that is taken may become free.
    throw systemCode(cause) === "EACCES" ? new ConfigError("HG-CONF-004", facts) : startFault("HG-CONF-004", facts);
  }
}
