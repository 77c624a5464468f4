import { z } from "headgate/mapper";
import { lineEnd, mixedDates } from "../_formats/cells.ts";
import { COLUMN_NAMES } from "./columns.ts";

export const settings = z.strictObject({
  timeZone: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Zone of dates that have no designator, such as Europe/Brussels, or +01:00 for a sender that never changes its " +
        "clock. No default.",
    ),
  dst: z
    .enum(["reject", "earlier", "later"])
    .default("reject")
    .describe("What a date without designator means that occurs twice or not at all because of daylight saving."),
  dateFormat: z
    .string()
    .min(1)
    .optional()
    .describe("Format of dates that are texts, such as dd/MM/yyyy or dd/MM/yyyy HH:mm; ISO 8601 when left out."),
  mixedDates,
  decimal: z.enum([".", ","]).default(".").describe("Decimal mark of indexes that are texts."),
  delimiter: z.string().min(1).optional().describe("Delimiter of a CSV file; found in its header when left out."),
  encoding: z.string().min(1).default("utf-8").describe("Encoding of a CSV file without a byte order mark."),
  lineEnd,
  sheet: z
    .union([z.string(), z.int().min(1)])
    .default(1)
    .describe("Name or number of the sheet of a workbook."),
  mappingConfig: z
    .string()
    .min(1)
    .optional()
    .describe(
      "The mappingConfig of rows that state none; may hold {register} and {unit}, as the row writes them. " +
        "{register} when left out.",
    ),
  falls: z
    .enum(["refuse", "accept"])
    .default("refuse")
    .describe("Whether an index that is lower than an earlier one of its meter is refused."),
  columns: z
    .partialRecord(z.enum(COLUMN_NAMES), z.string().min(1))
    .default({})
    .describe("Names of columns that the mapper does not know, such as `index: Zählerstand`."),
});

export type Settings = z.output<typeof settings>;
