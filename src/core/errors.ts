/**
 * A closed set of errors; each names the next move.
 *
 * - `ConfigError`: a person fixes it
 * - `TransientError`: wait, then again
 * - `RejectedError`: this item never will
 * - `InvariantError`: a bug; stop
 *
 * Each carries a stable code of the register (`register.ts`), the operation, the subject, and a hint that
 * says what a person can do.
 */
import type { RegisterEntry } from "./register/entry.ts";
import { type ErrorCode, REGISTER } from "./register.ts";

export type { ErrorCode };

export interface ErrorFacts {
  /** The activity, such as `list drop`. */
  readonly operation: string;
  /** Its subject, such as the name of the drop or a path. */
  readonly subject: string;
  /** The fault; the register's title when absent. */
  readonly message?: string;
  /** The step that a person can take; the register's hint when absent. */
  readonly hint?: string;
  readonly cause?: unknown;
}

export abstract class HeadgateError extends Error {
  readonly code: ErrorCode;
  readonly operation: string;
  readonly subject: string;
  /** For a running gateway: its own next step comes first. */
  readonly hint: string;
  /** For a command, which retries nothing: the step that a person can take. */
  readonly advice: string;

  constructor(code: ErrorCode, facts: ErrorFacts) {
    super(facts.message ?? REGISTER[code].title, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.code = code;
    this.operation = facts.operation;
    this.subject = facts.subject;
    const { hint, again }: RegisterEntry = REGISTER[code];
    this.advice = facts.hint ?? hint;
    this.hint = facts.hint ?? (again === undefined ? hint : `${again} ${hint}`);
  }
}

export class ConfigError extends HeadgateError {}
export class TransientError extends HeadgateError {}
export class RejectedError extends HeadgateError {}
export class InvariantError extends HeadgateError {}

/** The words of anything that was thrown, including values that are no errors, with the chain of causes. */
export function wordsOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return typeof thrown === "string" ? thrown : `thrown value ${inspectShort(thrown)}`;
  const own = thrown.message === "" ? thrown.name : thrown.message;
  if (thrown.cause === undefined || thrown.cause === null) return own;
  const cause = wordsOf(thrown.cause);
  return own.includes(cause) ? own : `${own}: ${cause}`;
}

function inspectShort(value: unknown): string {
  try {
    return String(JSON.stringify(value) ?? value).slice(0, 200);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** Another node of the fleet has taken over the work: it is dropped here. */
export function isLeaseLost(thrown: unknown): boolean {
  return thrown instanceof TransientError && thrown.code === "HG-LEDG-010";
}

/**
 * The `code` of a system error (`ENOENT`, `ECONNREFUSED`, …), from the first error in the chain of causes that has
 * one.
 */
export function systemCode(thrown: unknown): string | undefined {
  for (let at = thrown; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return undefined;
}

const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

/** Whether a disk, or a person's share of it, is full; also as the cause of another error. */
export function isOutOfSpace(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause)
    if ("code" in error && FULL.has(error.code)) return true;
  return false;
}

/** Whether a system error says that there is no such file or folder. */
export function isMissing(thrown: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(systemCode(thrown) ?? "");
}

/** The result, or `other` where the file or folder of the work is missing. */
export async function unlessMissing<Result, Other>(work: Promise<Result>, other: Other): Promise<Result | Other> {
  try {
    return await work;
  } catch (thrown) {
    if (isMissing(thrown)) return other;
    throw thrown;
  }
}

/** The error for an option of the command line whose value cannot be used. */
export function invalidOption(option: string, message: string): ConfigError {
  return new ConfigError("HG-CLI-001", { operation: "read option", subject: option, message });
}
