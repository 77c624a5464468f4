import { z } from "headgate/mapper";
import { lineEnd } from "../_formats/cells.ts";
import { renameSetting, targetSetting } from "../_formats/target.ts";
import { unitsSetting } from "../_formats/units.ts";

const PLACEHOLDERS = ["serial", "station", "model", "program", "table", "field", "processing", "unit"] as const;

export const settings = z.strictObject({
  timeZone: z
    .string()
    .min(1)
    .describe(
      "Zone of the logger's clock, such as Europe/Brussels, UTC, or +01:00 for one that stays on " +
        "standard time. No default.",
    ),
  dst: z
    .enum(["reject", "earlier", "later", "byOrder"])
    .default("reject")
    .describe("What a timestamp means that occurs twice or not at all because of daylight saving."),
  target: targetSetting(PLACEHOLDERS, {
    sourceSerialNumber: "{serial}",
    mappingConfig: "{table}.{field}",
  }),
  rename: renameSetting("Hourly.AirTC_Avg: airTemperature"),
  only: z.array(z.string().min(1)).min(1).optional().describe("Fields to take. Default: all but those of `except`."),
  except: z
    .array(z.string().min(1))
    .default([])
    .describe("Fields to leave out, such as texts that the program stores."),
  units: unitsSetting("°F: °C"),
  spellings: z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe("What units of the file mean that the program's author wrote freely, such as `DegC_int: °C`."),
  declareUnits: z
    .boolean()
    .default(true)
    .describe("Whether readings carry the file's units to be checked; false where they are unreliable."),
  missing: z
    .array(z.string())
    .default(["NAN", "INF", "-INF", ""])
    .describe(
      "Texts, in any case, that stand for no value; they are left out and counted. Loggers also write 7999 and -7999.",
    ),
  gaps: z
    .enum(["warn", "reject", "ignore"])
    .default("warn")
    .describe("Reaction to jumps of the record number: a warning in the log, a refused row, or nothing."),
  encoding: z.string().min(1).default("utf-8").describe("Encoding of a file without a byte order mark."),
  lineEnd,
});

export type Settings = z.output<typeof settings>;
