import { type MapContext, z } from "headgate/mapper";
import { renameSetting, type targetMaker, targetSetting } from "../_formats/target.ts";
import { type Converter, unitsSetting } from "../_formats/units.ts";

const PLACEHOLDERS = ["nmi", "suffix", "register", "stream", "meter", "configuration"] as const;

export const settings = z.strictObject({
  target: targetSetting(PLACEHOLDERS, { sourceSerialNumber: "{nmi}", mappingConfig: "{suffix}" }),
  rename: renameSetting("E1: consumption"),
  units: unitsSetting("Wh: kWh"),
  timeZone: z.string().min(1).default("+10:00").describe("Zone of the dates. Default: market time, UTC+10 all year."),
  stamp: z
    .enum(["end", "start"])
    .default("end")
    .describe("Whether an interval is dated by its end, as the market does, or by its start."),
  accumulated: z
    .enum(["reads", "quantity", "both"])
    .default("reads")
    .describe(
      "What NEM13 gives: the register's previous and current reads, the consumed quantity at the date " +
        "of the current read, or both.",
    ),
  quantitySuffix: z
    .string()
    .min(1)
    .default("-quantity")
    .describe("With `accumulated: both`: appended to the mappingConfig of quantities, to distinguish them from reads."),
  indexReads: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Appended to the mappingConfig of the index reads of 500 records, such as `-index`. Without it " +
        "500 records give no reading.",
    ),
  qualityTags: z
    .enum(["notActual", "all", "none"])
    .default("notActual")
    .describe("Which readings carry quality, method and reason as tags."),
  nullData: z
    .enum(["drop", "keep"])
    .default("drop")
    .describe("Intervals of quality N, which have no data: leave them out, or push the value in the file."),
  frame: z
    .enum(["required", "optional"])
    .default("required")
    .describe("Whether 100 and 900 records are required. Without a 900 record a cut-off file goes unnoticed."),
  encoding: z.string().min(1).default("utf-8").describe("Encoding of a file without a byte order mark."),
});

export type Settings = z.output<typeof settings>;

/** Tools for the readers of records. */
export interface Tools extends Pick<MapContext<Settings>, "settings" | "emit" | "reject" | "number" | "time"> {
  readonly targetOf: ReturnType<typeof targetMaker>;
  readonly converter: Converter;
}
