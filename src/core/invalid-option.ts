import { ConfigError } from "./errors.ts";

/** The error for an option of the command line whose value cannot be used. */
export function invalidOption(option: string, message: string): ConfigError {
  return new ConfigError("HG-CLI-001", { operation: "read option", subject: option, message });
}
