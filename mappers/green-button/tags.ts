/** Quality, time of use and consumption tier of a reading as tags. */
import type { XmlElement } from "headgate/mapper";
import { type Tags, tagKeeper } from "../_formats/tags.ts";
import { GOOD, named, QUALITIES } from "./codes.ts";
import type { Settings } from "./settings.ts";

const keep = tagKeeper();

/** Equal tags are the same object. */
export function tagsOf(reading: XmlElement, defaultQuality: string, which: Settings["qualityTags"]): Tags | undefined {
  const codes = reading.all("ReadingQuality").map((quality) => quality.textOf("quality") ?? "0");
  const qualities = codes.length === 0 ? defaultQuality : codes.join("+");
  const tou = reading.textOf("tou") ?? "0";
  const tier = reading.textOf("consumptionTier") ?? "0";
  return keep(`${qualities}|${tou}|${tier}|${which}`, () => {
    const notable = qualities
      .split("+")
      .filter((code) => which === "all" || (which === "notValid" && !GOOD.has(code)))
      .map((code) => named(QUALITIES, code));
    return {
      ...(notable.length === 0 ? {} : { quality: notable.join("+") }),
      ...(tou === "0" ? {} : { tou }),
      ...(tier === "0" ? {} : { tier }),
    };
  });
}
