/** The push interface: POST {push_url}/api/data (specification, *Push endpoints*; platform facts, *Push*). */
import { z } from "zod";
import { caseless, inOrder, paging, queryInteger } from "./caseless.ts";
import type { TargetField } from "./target.ts";

const tags = z.record(z.string(), z.string());

/**
 * One reading of an element. `date` in ISO 8601 with a designator; `value` in the unit declared on the
 * variable.
 */
export const pushReading = z.object({
  date: z.string(),
  value: z.number(),
  version: z.string().optional(),
  tags: tags.optional(),
});
export type PushReading = z.infer<typeof pushReading>;

export const pushTarget = z.object({
  variableId: z.number().int().optional(),
  sourceId: z.number().int().optional(),
  sourceSerialNumber: z.string().optional(),
  sourceEan: z.string().optional(),
  sourceName: z.string().optional(),
  meterNumber: z.string().optional(),
  mappingConfig: z.string().optional(),
  variableTypeId: z.number().int().optional(),
} satisfies Record<TargetField, z.ZodType>);
export type PushTarget = z.infer<typeof pushTarget>;

export const pushElement = pushTarget.extend({
  version: z.string().optional(),
  tags: tags.optional(),
  data: z.array(caseless(pushReading)),
});
export type PushElement = z.infer<typeof pushElement>;

/** Body of the push: an array of elements; names without regard to case, nulls ignored. */
export const pushBody = z.array(caseless(pushElement));

/** Body of `/api/standard`, of older clients (platform facts, *Resources that the specification only names*). */
export const standardBody = caseless(
  z.object({
    Data: z.array(caseless(z.object({ VariableId: z.int(), Date: z.string(), Value: z.number() }))),
  }),
);

/** The flat body as that of `/api/data`: an element a variable, with its readings in their order. */
export function elementsOfStandard({ Data }: z.output<typeof standardBody>): Buffer {
  const readings = Map.groupBy(Data, ({ VariableId }) => VariableId);
  const elements = Array.from(readings, ([variableId, ofVariable]) => ({
    variableId,
    data: ofVariable.map(({ Date: date, Value: value }) => ({ date, value })),
  }));
  return Buffer.from(JSON.stringify(elements));
}

/**
 * Query of the push. `operationId` is free-form; `operationTimeoutSec` in seconds, 60 by default.
 * `webhookUrl`, to which the outcome is posted, is an extension of Headgate (the specification shows no
 * registration).
 */
export const pushQuery = caseless(
  z.object({
    operationId: z.string().max(400).optional(),
    operationTimeoutSec: queryInteger.optional(),
    webhookUrl: z.string().max(2000).optional(),
  }),
);
export type PushQuery = z.infer<typeof pushQuery>;

export const OPERATION_TIMEOUT_DEFAULT_SEC = 60;

/**
 * Queries of /operations (an extension of Headgate): which operations are listed, and how long the next
 * attempt of a failed one may take.
 */
export const operationsQuery = caseless(
  z.object({
    State: inOrder(["failed", "accepted"]),
    ...paging,
  }),
);
export const operationAgainQuery = caseless(z.object({ operationTimeoutSec: queryInteger.optional() }));

/** Response to an accepted push (our choice, "not shown"): accepted, not stored. */
export const pushAccepted = z.object({
  operationId: z.string(),
  status: z.literal("accepted"),
  received: z.number().int().optional(),
});
export type PushAccepted = z.infer<typeof pushAccepted>;
