/** The `provision` template of a trigger: the properties of missing sites, sources and variables. */
import { z } from "zod";
import { spacingFault, spacingOf } from "#wire/referentials/step-length.ts";
import { QUANTITY_TYPES, TIME_PERIODS } from "#wire/referentials.ts";

/** Variable type without a meaning of its own. */
export const GENERIC_TYPE = 131;

const text = (words: string) => z.string().min(1).describe(words);
const QUANTITIES = Object.values(QUANTITY_TYPES);
const PERIODS = Object.values(TIME_PERIODS).map((name) => name.toLowerCase());

const site = z.strictObject({
  name: text("Name of the site; one of that name is used when it is there.").meta({ examples: ["{drop}"] }),
  typeId: z.number().int().describe("Site type (`GET /sitetypes`); 10 is industry."),
  timeZoneId: text("Where a day of the site starts.").meta({ examples: ["Europe/Brussels"] }),
});

const source = z.strictObject({
  name: text("Name of the source.").default("{source}"),
  sourceTypeId: z
    .number()
    .int()
    .optional()
    .describe("Source type (`GET /sourceTypes`); the one named Pushed Data when left out."),
  energyTypeId: z.number().int().optional().describe("Energy type (`GET /energyTypes`)."),
  timeZoneId: text("Time zone of the source; the site's when left out.").optional(),
});

const variable = z.strictObject({
  name: text("Name of the variable.").default("{mappingConfig}"),
  variableTypeId: z
    .number()
    .int()
    .default(GENERIC_TYPE)
    .describe("Variable type (`GET /variableTypes`), where the target does not name one; 131 is generic."),
  unit: text("Unit, where the mapper declares none, as the service names it.")
    .optional()
    .meta({
      examples: ["kWh"],
    }),
  granularity: z
    .string()
    .regex(new RegExp(`^[1-9]\\d{0,5} (${PERIODS.join("|")})s?$`), "expected such as 15 minutes or 1 day")
    .superRefine((words, context) => {
      const { granularity, granularityTimeBase } = spacingOf(words) ?? {};
      const message = spacingFault(granularity, granularityTimeBase);
      if (message !== null) context.addIssue({ code: "custom", message });
    })
    .optional()
    .describe("Expected spacing between points, in words.")
    .meta({ examples: ["15 minutes", "1 hour"] }),
  quantityType: z
    .enum(QUANTITIES as [string, ...string[]])
    .optional()
    .describe("What a value is: an instantaneous one, one integrated over the spacing, a cumulative index, …"),
  isVersioned: z.boolean().optional().describe("Whether revisions of a reading are kept side by side."),
});

export const provisionTemplate = z
  .strictObject({
    when: z
      .enum(["auto", "ordered"])
      .default("auto")
      .describe(
        "auto: a run whose targets are missing has them created before its first push. ordered: only " +
          "`headgate provision` creates.",
      ),
    max: z
      .number()
      .int()
      .min(1)
      .default(1_000)
      .describe("Most missing targets of one run; with more it is held, since the mapper is then probably wrong."),
    site,
    source: source.prefault({}),
    variable: variable.prefault({}),
  })
  .describe(
    "Creates sites, sources and variables that the account does not have. Texts may hold {source} (the " +
      "identifier of the target), {mappingConfig}, {variableTypeId}, {unit}, {trigger}, {drop}, {file} and " +
      "{metadata.KEY}. The user needs the right to manage the account.",
  );
export type ProvisionTemplate = z.output<typeof provisionTemplate>;
