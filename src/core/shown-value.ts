/** Values of a request as messages quote them. */
import { nearestName } from "./nearest-name.ts";

/** Characters that are quoted of a value. */
const QUOTED_MAX = 60;

export function shownValue(input: unknown): string {
  if (input === null) return "null";
  if (Array.isArray(input)) return "a list";
  if (typeof input === "object") return "an object";
  const text = String(input);
  if (typeof input !== "string") return text;
  return JSON.stringify(text.length > QUOTED_MAX ? `${text.slice(0, QUOTED_MAX)}…` : text);
}

/** The value instead of one of the names, and the name that was probably meant. */
export function shownBeside(input: unknown, names: readonly string[]): string {
  const nearest = typeof input === "string" && input !== "" ? nearestName(input, names) : undefined;
  return shownValue(input) + (nearest === undefined ? "" : ` (did you mean ${nearest}?)`);
}
