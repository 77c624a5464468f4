/** Classifies errors of PostgreSQL and of the connections to it. */
import { HeadgateError, systemCode } from "../../errors.ts";

/**
 * Passing faults: connection, resources, wrong state (read-only, after a failover), operator, system,
 * internal.
 */
const PASSING: RegExp = /^(08|25006|53|57|58|XX)/;
/** Two transactions conflicted; a repetition succeeds. */
const CONFLICT: RegExp = /^(40|55P03)/;
/** Wrong password or role, no such database, no right to it, no such schema. */
const CONFIGURED: RegExp = /^(28|3D|3F000|42501)/;
const NETWORK = /^E(CONN|PIPE|TIMEDOUT|HOST|NET|AI_|NOTFOUND)/;
/** Messages of errors that `pg` throws without a code. */
const WORDS =
  /^(Connection terminated|Client has encountered a connection error|timeout e(xceeded|xpired)|Query read timeout)/i;

/** Classes begin with a digit, except these; system error codes begin with `E`. */
const SQLSTATE = /^(?:\d[0-9A-Z]|F0|HG|HV|P0|XX)[0-9A-Z]{3}$/;

/** The SQLSTATE, or undefined when the server did not answer with an error. */
export function sqlStateOf(thrown: unknown): string | undefined {
  const code = thrown instanceof HeadgateError ? undefined : systemCode(thrown);
  return code !== undefined && SQLSTATE.test(code) ? code : undefined;
}

/** A person or `statement_timeout` ended the statement; its connection is as good as before. */
export function isCancelled(thrown: unknown): boolean {
  return sqlStateOf(thrown) === "57014";
}

/** The same transaction succeeds when it is repeated. */
export function isConflict(thrown: unknown): boolean {
  return CONFLICT.test(sqlStateOf(thrown) ?? "");
}

export function isDeadlock(thrown: unknown): boolean {
  return sqlStateOf(thrown) === "40P01";
}

export function isUniqueViolation(thrown: unknown): boolean {
  return sqlStateOf(thrown) === "23505";
}

/** An administrator has to correct the user, the database or a right. */
export function isMisconfigured(thrown: unknown): boolean {
  return CONFIGURED.test(sqlStateOf(thrown) ?? "");
}

/** The state of the server, not the statement, is at fault. */
export function isServerTrouble(thrown: unknown): boolean {
  return PASSING.test(sqlStateOf(thrown) ?? "");
}

/** For an error of a connection: the connection is gone, and its last statement may have been executed. */
export function isLost(thrown: unknown): boolean {
  if (!(thrown instanceof Error) || thrown instanceof HeadgateError) return false;
  const state = sqlStateOf(thrown);
  if (state !== undefined) return state.startsWith("08") || /^57P0[1-5]$/.test(state) || state === "25P03";
  return systemCode(thrown) !== undefined || /connection|timeout|not queryable|closed/i.test(thrown.message);
}

/**
 * For any error: the server or the connection to it, not the data, is at fault, and a repetition may succeed.
 */
export function isPostgresTrouble(thrown: unknown): boolean {
  if (sqlStateOf(thrown) !== undefined) return isServerTrouble(thrown) || isConflict(thrown) || isMisconfigured(thrown);
  const code = systemCode(thrown);
  if (code !== undefined) return NETWORK.test(code);
  return thrown instanceof Error && WORDS.test(thrown.message);
}
