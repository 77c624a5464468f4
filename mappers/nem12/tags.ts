/** Quality flags, methods and reasons as tags of readings. */
import { type Tags, tagKeeper } from "../_formats/tags.ts";
import type { Quality } from "./record.ts";
import type { Settings } from "./settings.ts";

const NAMES: Readonly<Record<string, string>> = {
  A: "actual",
  E: "estimated",
  F: "final-substituted",
  N: "null",
  S: "substituted",
};

const keep = tagKeeper();

/** `quality`, and where the file has them `method`, `reason`, `reasonText`. Equal tags are the same object. */
export function qualityTags(
  { flag, method }: Quality,
  reason: string,
  description: string,
  which: Settings["qualityTags"],
): Tags | undefined {
  if (which === "none" || (which === "notActual" && flag === "A" && reason === "")) return undefined;
  return keep(`${flag}${method}|${reason}|${description}`, () => ({
    quality: NAMES[flag] ?? flag,
    ...(method === "" ? {} : { method }),
    ...(reason === "" ? {} : { reason }),
    ...(description === "" ? {} : { reasonText: description }),
  }));
}
