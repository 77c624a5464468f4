/** Quality, time of use and consumption tier of a reading as tags. */
import type { XmlElement } from "headgate/mapper";
import { GOOD, named, QUALITIES } from "./codes.ts";
import type { Settings } from "./settings.ts";

const made = new Map<string, Readonly<Record<string, string>> | undefined>();

/** The same tags are the same object. */
export function tagsOf(
  reading: XmlElement,
  defaultQuality: string,
  which: Settings["qualityTags"],
): Readonly<Record<string, string>> | undefined {
  const codes = reading.all("ReadingQuality").map((quality) => quality.textOf("quality") ?? "0");
  const qualities = codes.length === 0 ? defaultQuality : codes.join("+");
  const tou = reading.textOf("tou") ?? "0";
  const tier = reading.textOf("consumptionTier") ?? "0";
  const key = `${qualities}|${tou}|${tier}|${which}`;
  if (made.has(key)) return made.get(key);
  const told = qualities
    .split("+")
    .filter((code) => which === "all" || (which === "notValid" && !GOOD.has(code)))
    .map((code) => named(QUALITIES, code));
  const tags = {
    ...(told.length === 0 ? {} : { quality: told.join("+") }),
    ...(tou === "0" ? {} : { tou }),
    ...(tier === "0" ? {} : { tier }),
  };
  const result = Object.keys(tags).length === 0 ? undefined : Object.freeze(tags);
  made.set(key, result);
  return result;
}
