/** Errors for a database that cannot be opened as a ledger. */
import { ConfigError } from "#core/errors.ts";

export function foreignLedger(place: string, message: string, hint?: string): ConfigError {
  const facts = { operation: "open ledger", subject: place, message };
  return new ConfigError("HG-LEDG-002", hint === undefined ? facts : { ...facts, hint });
}

export function otherVersion(place: string, words: string): ConfigError {
  return new ConfigError("HG-LEDG-003", {
    operation: "open ledger",
    subject: place,
    message: `the ledger ${place} ${words}`,
  });
}
