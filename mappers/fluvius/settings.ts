import { z } from "headgate/mapper";
import { renameSetting, targetSetting } from "../_formats/target.ts";
import { unitsSetting } from "../_formats/units.ts";
import { COLUMN_NAMES } from "./columns.ts";

const PLACEHOLDERS = ["ean", "meter", "register", "registerName", "unit"] as const;

export const settings = z.strictObject({
  timeZone: z.string().min(1).describe("Zone of dates and times: Europe/Brussels. No default."),
  target: targetSetting(PLACEHOLDERS, { sourceEan: "{ean}", mappingConfig: "{register}-{unit}" }),
  rename: renameSetting("offtake-day-kWh: consumptionDay"),
  units: unitsSetting("kWh: MWh"),
  stamp: z
    .enum(["start", "end"])
    .default("start")
    .describe("Whether an interval is dated by its start (Van) or its end (Tot)."),
  qualityTags: z
    .enum(["notRead", "all", "none"])
    .default("notRead")
    .describe(
      "Which readings carry the validation status as the tag quality: all but read and validated ones, all, or none.",
    ),
  decimal: z.enum([",", "."]).default(",").describe("Decimal mark of volumes."),
  columns: z
    .partialRecord(z.enum(COLUMN_NAMES), z.string().min(1))
    .default({})
    .describe("Names of columns in files whose language is not known to the mapper, such as `volume: Volumen`."),
  encoding: z.string().min(1).default("utf-8").describe("Encoding of a file without a byte order mark."),
});

export type Settings = z.output<typeof settings>;
