/**
 * The locks beside the ledger: that of its owner, and those of work that only one process at a time may do.
 */
import { createHash } from "node:crypto";
import type { Clock } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { type ProcessLock, takeProcessLock } from "#core/sql/process-lock.ts";
import { type Fleet, waitForTurn } from "../fleet.ts";
import { openFault } from "./faults.ts";

export function ownerLockOf(ledgerPath: string): string {
  return `${ledgerPath}.lock`;
}

/** `ConfigError` HG-LEDG-001 while another process owns the ledger. */
export function takeOwnerLock(ledgerPath: string): ProcessLock {
  const lock = takeLock(ownerLockOf(ledgerPath));
  if (lock !== null) return lock;
  throw new ConfigError("HG-LEDG-001", {
    operation: "open ledger",
    subject: ledgerPath,
    message: `the ledger ${ledgerPath} is in use by another process`,
  });
}

function takeLock(path: string): ProcessLock | null {
  try {
    return takeProcessLock(path);
  } catch (cause) {
    throw openFault(path, cause);
  }
}

/** Commands run beside the owner, so a lock within one process would not suffice. */
export function aloneBeside(ledgerPath: string, clock: Clock): Fleet["alone"] {
  return async (key, work, signal) => {
    const name = createHash("sha256").update(key).digest("hex").slice(0, 10);
    const path = `${ledgerPath}.${name}.lock`;
    const lock = await waitForTurn(() => takeLock(path), key, clock, signal);
    try {
      return await work(signal);
    } finally {
      lock.release();
    }
  };
}
