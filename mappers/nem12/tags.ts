/** Quality flags, methods and reasons as tags of readings. */
import type { Quality } from "./record.ts";
import type { Settings } from "./settings.ts";

const NAMES: Readonly<Record<string, string>> = {
  A: "actual",
  E: "estimated",
  F: "final-substituted",
  N: "null",
  S: "substituted",
};

const made = new Map<string, Readonly<Record<string, string>>>();

/** `quality`, and where the file has them `method`, `reason`, `reasonText`. The same tags are the same object. */
export function qualityTags(
  { flag, method }: Quality,
  reason: string,
  description: string,
  which: Settings["qualityTags"],
): Readonly<Record<string, string>> | undefined {
  if (which === "none" || (which === "notActual" && flag === "A" && reason === "")) return undefined;
  const key = `${flag}${method}|${reason}|${description}`;
  let tags = made.get(key);
  if (tags === undefined) {
    tags = Object.freeze({
      quality: NAMES[flag] ?? flag,
      ...(method === "" ? {} : { method }),
      ...(reason === "" ? {} : { reason }),
      ...(description === "" ? {} : { reasonText: description }),
    });
    made.set(key, tags);
  }
  return tags;
}
