/** Errors for a database that cannot be opened as the store of the hub. */
import { ConfigError } from "../../support/errors.ts";

export function newerStore(subject: string): ConfigError {
  return new ConfigError("HG-HUB-002", { operation: "open store", subject });
}
