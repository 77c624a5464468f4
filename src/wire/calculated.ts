/**
 * Calculated variables: the field `calculated` of a variable (platform facts, *Read and management interface*). What is
 * one of a list is taken by number or by name, and answered by number.
 */
import { z } from "zod";
import { caseless, numberOrName } from "./caseless.ts";
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
const alias = z.string().describe("The name in the formula: a valid name of R, unique in the formula.");
const date = z.string().optional();

const inputFields = {
  alias,
  siteId: id.optional(),
  sourceId: id.optional(),
  variableId: id,
  granularity: numberOrName(GRANULARITIES).optional(),
  aggregation: numberOrName(AGGREGATES).optional(),
  periodType: numberOrName(PERIOD_TYPES)
    .optional()
    .describe("1 RelativeDate: so far back; 2 AbsoluteDate: a fixed period; 3 LastPoints: so many points."),
  period: z.int().positive().optional().describe("How many of periodTimeBase, or how many points."),
  periodTimeBase: numberOrName(TIME_BASES).optional(),
  fromAbsolutePeriod: date,
  toAbsolutePeriod: date.describe("Excluded."),
  unitId: z.int().optional().describe("The unit in which the formula sees the values."),
  canBeUsedAsATrigger: z.boolean().optional().describe("Whether new points start a calculation: true when left out."),
};
const entityFields = {
  alias,
  entityType: numberOrName(FORM_ENTITIES),
  siteId: id.optional(),
  sourceId: id.optional(),
  formId: id,
  groupId: id,
  propId: id.describe("The field of the group."),
};
const constantFields = { alias, value: z.union([z.number(), z.string().max(10_000)]) };

const formula = z.string().max(FORMULA_CHARACTERS_MAX).describe("An R script, or an expression when it begins with =.");

export const calculatedBody = caseless(
  z.object({
    friendlyName: z.string().max(200).optional(),
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
              .optional(),
            entities: z
              .array(caseless(z.object(entityFields)))
              .max(INPUTS_MAX)
              .optional(),
            constants: z
              .array(caseless(z.object(constantFields)))
              .max(INPUTS_MAX)
              .optional(),
          }),
        ),
      )
      .min(1)
      .max(FORMULAS_MAX),
  }),
);
export type Calculated = z.infer<typeof calculatedBody>;
export type Formula = Calculated["calculatedVariableFormulas"][number];
export type FormulaVariable = NonNullable<Formula["variables"]>[number];
export type FormulaEntity = NonNullable<Formula["entities"]>[number];
export type FormulaConstant = NonNullable<Formula["constants"]>[number];

/** As answers show it. */
export const calculated = calculatedBody.out;
