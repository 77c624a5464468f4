/** Runs of calculated variables, and the event that asks for them (specification, *Events* 2). */
import { z } from "zod";
import { caseless, inOrder, listOf, paging, queryInteger } from "./caseless.ts";

export const CALCULATION_STATES = ["running", "waiting", "storing", "done", "failed"] as const;

const period = {
  From: z.string().optional(),
  To: z.string().optional().describe("Excluded."),
};

/** Without variables and sources: every calculated variable of the account. */
export const forceUpdateBody = caseless(
  z.object({
    VariableIds: listOf(queryInteger).optional().describe("Calculated variables, or inputs of them."),
    VariableId: listOf(queryInteger).optional(),
    SourceIds: listOf(queryInteger).optional(),
    SourceId: listOf(queryInteger).optional(),
    ...period,
  }),
);

export const forcedUpdate = z.object({
  marked: z.array(
    z.object({
      variableId: z.int(),
      inputId: z.int().nullable().describe("The input whose dates these are; null: they are those of the outputs."),
      from: z.string().nullable().describe("Null: open."),
      to: z.string().nullable(),
    }),
  ),
  unaffected: z
    .object({ variableIds: z.array(z.int()), sourceIds: z.array(z.int()) })
    .describe("What was named, and nothing is calculated from."),
});

export const calculationsQuery = caseless(
  z.object({
    VariableIds: listOf(queryInteger).optional(),
    VariableId: listOf(queryInteger).optional(),
    State: listOf(inOrder(CALCULATION_STATES)).optional(),
    Since: z.string().optional().describe("Those that started then or later."),
    ...paging,
  }),
);

export const calculationProgressQuery = caseless(
  z.object({
    VariableIds: listOf(queryInteger).optional(),
    VariableId: listOf(queryInteger).optional(),
  }),
);

export const calculation = z.object({
  id: z.int(),
  variableId: z.int(),
  state: z.enum(CALCULATION_STATES),
  from: z.string().nullable().describe("What was due; null: open."),
  to: z.string().nullable(),
  defaultVersion: z.string(),
  started: z.string(),
  finished: z.string().nullable(),
  progress: z.number().describe("The share of its period whose outputs are calculated, from 0 to 1."),
  attempts: z.int(),
  outputs: z.int().describe("Rows that were handed over to be stored."),
  stored: z.int(),
  replaced: z.int().describe("Of the stored rows: those that replaced an earlier value or version."),
  discarded: z.int(),
  dropped: z.int().describe("Rows outside of the calculated period, or without a value."),
  message: z.string().nullable(),
  operationIds: z.array(z.string()).describe("GET /operations/{operationId} shows their outcomes."),
});

export const calculationProgress = z.object({
  variableId: z.int(),
  due: z.array(
    z.object({
      from: z.string().nullable(),
      to: z.string().nullable(),
      inputId: z.int().nullable(),
      cause: z.string(),
      since: z.string(),
    }),
  ),
  running: calculation.nullable(),
});
