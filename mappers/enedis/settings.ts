import { z } from "headgate/mapper";
import { lineEnd } from "../_formats/cells.ts";
import { renameSetting, targetSetting } from "../_formats/target.ts";
import { unitsSetting } from "../_formats/units.ts";

const PLACEHOLDERS = ["prm", "business", "physical", "column", "stage", "type", "unit"] as const;

export const settings = z.strictObject({
  target: targetSetting(PLACEHOLDERS, {
    sourceSerialNumber: "{prm}",
    mappingConfig: "{business}-{physical}-{column}",
  }),
  rename: renameSetting("CONS-EA-W: meanPower"),
  prm: z
    .string()
    .regex(/^\d{14}$/, "a PRM has 14 digits")
    .optional()
    .describe("Point of delivery of a file that names none."),
  business: z
    .enum(["CONS", "PROD"])
    .optional()
    .describe("Consumption or production, for a file that does not say which it holds."),
  units: unitsSetting("W: kW"),
  meanPower: z
    .enum(["keep", "energy"])
    .default("keep")
    .describe("Load curves are mean power in W: push them so, or as the energy of each step in Wh."),
  stepMinutes: z
    .int()
    .min(1)
    .max(1440)
    .optional()
    .describe(
      "Step of load curves whose file does not give it, for `meanPower: energy` and `stamp`. A file that gives " +
        "another one, or has stamps at other distances, is refused.",
    ),
  period: z
    .enum(["check", "ignore"])
    .default("check")
    .describe("Rows outside of the period that the file names (Date de debut, Date de fin): refuse or take them."),
  horodate: z
    .enum(["end", "start"])
    .default("end")
    .describe("What the file's stamp of a step is: its end, as the customer's account writes it, or its start."),
  stamp: z
    .enum(["asIs", "end", "start"])
    .default("asIs")
    .describe("How a step is dated when pushed: as the file does, by its end, or by its start."),
  timeZone: z
    .string()
    .min(1)
    .optional()
    .describe("Zone of dates without an offset and of days, such as Europe/Paris. No default."),
  dst: z
    .enum(["reject", "earlier", "later", "byOrder"])
    .default("byOrder")
    .describe("What a local time means that occurs twice because of daylight saving."),
  decimal: z.enum([",", "."]).default(",").describe("Decimal mark of values in text files."),
  qualityTags: z
    .enum(["all", "none"])
    .default("all")
    .describe("Whether nature, status, plausibility and the like become tags."),
  encoding: z
    .string()
    .min(1)
    .default("utf-8")
    .describe("Encoding of a text file without a byte order mark; older exports are windows-1252."),
  lineEnd,
});

export type Settings = z.output<typeof settings>;
