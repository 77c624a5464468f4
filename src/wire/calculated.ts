/**
 * Calculated variables: the field `calculated` of a variable (platform facts, *Read and management interface*). What is
 * one of a list is taken by number or by name, and answered by number.
 */
import { z } from "zod";
import { caseless, numberOrName, queryInteger } from "./caseless.ts";
import { AGGREGATES, GRANULARITIES } from "./data.ts";
import { FORM_ENTITIES } from "./form.ts";
import timePeriods from "./referentials/time-periods.json" with { type: "json" };

/** How far an input reaches back, or which part of it a formula sees. */
export const PERIOD_TYPES = { RelativeDate: 1, AbsoluteDate: 2, LastPoints: 3 } as const;

const TIME_BASES = Object.fromEntries(Object.entries(timePeriods).map(([number, name]) => [name, Number(number)]));

export const FORMULAS_MAX = 100;
export const INPUTS_MAX = 200;
export const FORMULA_CHARACTERS_MAX = 200_000;

const id = z.int().positive();
/** Forms show the ids of their groups and fields as texts. */
const formPart = queryInteger.describe("An id of GET /form.");
const alias = z.string().describe("The name in the formula: a valid name of R, unique in the formula.");
const date = z.string().optional().describe("Without a designator in the zone of the variable's source.");

const inputFields = {
  alias,
  siteId: id.optional(),
  sourceId: id.optional(),
  variableId: id,
  granularity: numberOrName(GRANULARITIES).optional(),
  aggregation: numberOrName(AGGREGATES).optional().describe("With a granularity; that of the variable when left out."),
  periodType: numberOrName(PERIOD_TYPES)
    .optional()
    .describe("1 RelativeDate: so far back; 2 AbsoluteDate: a fixed period; 3 LastPoints: so many points."),
  period: z.int().positive().optional().describe("How many of periodTimeBase, or how many points."),
  periodTimeBase: numberOrName(TIME_BASES).optional().describe("A number or name of GET /timePeriods."),
  fromAbsolutePeriod: date,
  toAbsolutePeriod: date.describe("Excluded."),
  unitId: z.int().optional().describe("The unit in which the formula sees the values."),
  canBeUsedAsATrigger: z.boolean().optional().describe("Whether new points start a calculation: true when left out."),
};
const entityFields = {
  alias,
  entityType: numberOrName(FORM_ENTITIES).describe("1 Site or 2 Source: whose form value the formula reads."),
  siteId: id.optional(),
  sourceId: id.optional(),
  formId: formPart,
  groupId: formPart,
  propId: formPart.describe("The field of the group."),
};
const constantFields = { alias, value: z.union([z.number(), z.string().max(10_000)]) };

const formula = z
  .string()
  .max(FORMULA_CHARACTERS_MAX)
  .optional()
  .describe("An R script, or an expression when it begins with =. Without one nothing is calculated yet.");

export const calculatedBody = caseless(
  z.object({
    friendlyName: z.string().max(200).optional().describe("A name for people."),
    calculatedVariableFormulas: z
      .array(
        caseless(
          z.object({
            formula,
            validFrom: date,
            validUntil: date.describe("Excluded."),
            variables: z
              .array(caseless(z.object(inputFields)))
              .max(INPUTS_MAX)
              .optional()
              .describe("Variables that the formula reads."),
            entities: z
              .array(caseless(z.object(entityFields)))
              .max(INPUTS_MAX)
              .optional()
              .describe("Fields of forms that the formula reads."),
            constants: z
              .array(caseless(z.object(constantFields)))
              .max(INPUTS_MAX)
              .optional()
              .describe("Numbers and texts of the formula."),
          }),
        ),
      )
      .min(1)
      .max(FORMULAS_MAX)
      .describe("Each holds in a part of time; the parts do not overlap."),
  }),
);
export type Calculated = z.infer<typeof calculatedBody>;
export type Formula = Calculated["calculatedVariableFormulas"][number];
export type FormulaVariable = NonNullable<Formula["variables"]>[number];
export type FormulaEntity = NonNullable<Formula["entities"]>[number];
export type FormulaConstant = NonNullable<Formula["constants"]>[number];

/** As answers show it. */
export const calculated = calculatedBody.out;
