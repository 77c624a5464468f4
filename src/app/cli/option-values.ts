/** Values of options that several commands have. Each function throws `ConfigError` for a value that cannot be used. */

import { invalidOption } from "#core/errors.ts";
import { parsedJson } from "#core/text.ts";

/** `--settings`: settings of a mapper as a JSON object. */
export function settingsOption(text: string): Readonly<Record<string, unknown>> {
  const value = parsedJson(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw invalidOption("--settings", `${text} is not a JSON object`);
}

/** `--reject-share` */
export function shareOption(text: string): number {
  const share = Number(text);
  if (text.trim() !== "" && share >= 0 && share <= 1) return share;
  throw invalidOption("--reject-share", `${text} is not a share from 0 to 1`);
}
