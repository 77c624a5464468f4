import { z } from "headgate/mapper";
import { renameSetting, targetSetting } from "../_formats/target.ts";
import { unitsSetting } from "../_formats/units.ts";

const PLACEHOLDERS = ["location", "product", "device", "sender", "receiver"] as const;

export const settings = z.strictObject({
  target: targetSetting(PLACEHOLDERS, { sourceSerialNumber: "{location}", mappingConfig: "{product}" }),
  rename: renameSetting('"1-1:1.29.0": consumption'),
  units: unitsSetting("kWh: MWh"),
  unit: z.string().min(1).optional().describe("Unit of quantities that name none, such as kWh."),
  timeZone: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Zone of dates without an offset (formats 102, 203, 204), such as Europe/Berlin or +01:00. No " +
        "default; format 303 carries its own, and a message may declare its offset, which then has to be the same.",
    ),
  stamp: z
    .enum(["end", "start"])
    .default("end")
    .describe("Whether a quantity of a period is dated by the period's end (DTM+164) or its start (DTM+163)."),
  endDays: z
    .enum(["inclusive", "exclusive"])
    .optional()
    .describe(
      "What the end of a period means that is written as a day (format 102): the last day of the " +
        "period, or the day after. No default.",
    ),
  qualityTags: z
    .enum(["notActual", "all", "none"])
    .default("notActual")
    .describe(
      "Which readings carry the quantity's qualifier as the tag quality; status codes become tags unless none.",
    ),
  declared: z
    .enum(["check", "ignore"])
    .default("check")
    .describe(
      "What a message declares of itself: `check` refuses what contradicts it (its offset and `timeZone`, periods of " +
        "message and point, counts and totals by CNT); with `ignore` the settings and the quantities count.",
    ),
  unusable: z
    .enum(["drop", "keep"])
    .default("drop")
    .describe("Quantities that the sender marks as unusable (qualifier 20): leave them out, or push them."),
});

export type Settings = z.output<typeof settings>;
