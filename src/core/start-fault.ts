/**
 * Classifies a failed start: a condition that passes without a person (a full disk, a mount that is not there yet, a
 * database that is down, a port that is still taken) is a `TransientError` (exit code 1: start again), everything
 * else a `ConfigError` (exit code 2: a person corrects it).
 */

import type { FastifyInstance } from "fastify";
import { ConfigError, type ErrorCode, type ErrorFacts, systemCode, TransientError } from "./errors.ts";
import type { RegisterEntry } from "./register/entry.ts";
import { REGISTER } from "./register.ts";

/**
 * Faults of the disk, of memory and of the network. An unwritable folder is often the place of a mount that is still
 * missing.
 */
const PASSING: ReadonlySet<string> = new Set([
  ...["ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES", "EPERM", "ENODEV", "ENXIO", "ENOTCONN", "ESTALE"],
  ...["EBUSY", "EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "ETXTBSY"],
  ...["EADDRINUSE", "EADDRNOTAVAIL", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT"],
  ...["EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN", "ENETUNREACH"],
]);
/**
 * SQLSTATE of PostgreSQL: connection, resources, operator intervention (also "is starting up"), system,
 * read-only server.
 */
const PASSING_SQLSTATE = /^(08|53|57|58)[0-9A-Z]{3}$|^25006$/;
/** SQLite: PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN, PROTOCOL. */
const PASSING_SQLITE: ReadonlySet<number> = new Set([3, 5, 6, 7, 8, 10, 13, 14, 15]);
/** Errors of the PostgreSQL client that carry no code. */
const PASSING_WORDS = /\b(connection terminated|timeout exceeded|timeout expired|connection timeout)\b/i;

export function startFault(
  code: ErrorCode,
  facts: ErrorFacts & { readonly cause: unknown },
): ConfigError | TransientError {
  return isPassingCondition(facts.cause) ? new TransientError(code, facts) : new ConfigError(code, facts);
}

/** Whether a daemon that could not start should be started again. */
export function isWorthARestart(thrown: unknown): boolean {
  if (!(thrown instanceof ConfigError)) return true;
  const entry: RegisterEntry = REGISTER[thrown.code];
  return entry.isWorthARestart === true;
}

function isPassingCondition(thrown: unknown): boolean {
  if (thrown instanceof TransientError) return true;
  for (let at = thrown; at instanceof Error; at = at.cause) {
    if ("errcode" in at && typeof at.errcode === "number" && PASSING_SQLITE.has(at.errcode & 0xff)) return true;
    if (PASSING_WORDS.test(at.message)) return true;
  }
  const code = systemCode(thrown) ?? "";
  return PASSING.has(code) || PASSING_SQLSTATE.test(code);
}

// Listens on `host:port`, with an error that a person understands.

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
