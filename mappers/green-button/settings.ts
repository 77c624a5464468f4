import { z } from "headgate/mapper";
import { renameSetting, targetSetting } from "../_formats/target.ts";
import { unitsSetting } from "../_formats/units.ts";

const PLACEHOLDERS = [
  "usagePoint",
  "usagePointTitle",
  "usagePointKey",
  "meterReading",
  "meterReadingTitle",
  "commodity",
  "kind",
  "flow",
  "intervalLength",
  "uom",
] as const;

export const settings = z.strictObject({
  target: targetSetting(PLACEHOLDERS, {
    sourceSerialNumber: "{usagePoint}",
    mappingConfig: "{commodity}-{kind}-{flow}",
  }),
  rename: renameSetting("electricity-energy-delivered: consumption"),
  units: unitsSetting("Wh: kWh"),
  stamp: z
    .enum(["start", "end"])
    .default("start")
    .describe("Whether an interval is dated by its start, as the file does, or by its end."),
  declared: z
    .enum(["check", "ignore"])
    .default("check")
    .describe(
      "Readings that contradict the `intervalLength` of their reading type (of hours and less) or lie outside of the " +
        "interval of their block: refuse or take them.",
    ),
  qualityTags: z
    .enum(["notValid", "all", "none"])
    .default("notValid")
    .describe(
      "Which readings carry their quality as a tag: those that are not valid, validated or verified, all, or none.",
    ),
});

export type Settings = z.output<typeof settings>;
