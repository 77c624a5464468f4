/** The lock of the ledger's owner, beside the ledger. */
import { ConfigError } from "../../support/errors.ts";
import { type ProcessLock, takeProcessLock } from "../../support/process-lock.ts";
import { openFault } from "./faults.ts";

/** `ConfigError` HG-LEDG-001 while another process owns the ledger. */
export function takeOwnerLock(ledgerPath: string): ProcessLock {
  const path = `${ledgerPath}.lock`;
  const lock = takeLock(path);
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
