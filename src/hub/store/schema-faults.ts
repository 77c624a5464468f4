/** Errors for a database that cannot be opened as the store of the hub. */
import { ConfigError } from "#core/errors.ts";

export function otherStore(subject: string, words: string): ConfigError {
  const message = `the store of the hub ${subject} ${words}`;
  return new ConfigError("HG-HUB-002", { operation: "open store", subject, message });
}
