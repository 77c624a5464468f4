/** Where points came from: the stored file of a push, and GET {base_url}/data/origin (extensions of Headgate). */
import { z } from "zod";
import { caseless, queryInteger } from "./caseless.ts";
import { FILE_WAYS } from "./storage.ts";

/** A file that the service took; its fields are null when it was removed since. */
export const pushOrigin = z.object({
  /** GET /storage/{id} says what became of it. */
  id: z.number().int(),
  fileName: z.string().nullable(),
  via: z.enum(FILE_WAYS).nullable(),
  /** The user who sent it. */
  createdBy: z.string().nullable(),
  /** The file trigger that claimed it. */
  trigger: z.object({ id: z.number().int(), name: z.string().nullable() }),
});
export type PushOrigin = z.infer<typeof pushOrigin>;

/** Parameters of GET /data/origin, an extension of Headgate: one point with all of its versions. */
export const originQuery = caseless(
  z.object({
    VariableId: queryInteger,
    Date: z.string().describe("Of the point; without an offset in the zone of `TimeZoneId`, or in UTC."),
    TimeZoneId: z.string().optional(),
  }),
);

/** A version of a point, and what stored it. */
export const originRow = z.object({
  variableId: z.int(),
  unitId: z.int(),
  date: z.string(),
  value: z.number(),
  version: z.string().nullable(),
  /** Null on variables without versions. */
  versionTimestamp: z.string().nullable(),
  tags: z.record(z.string(), z.string()).nullable(),
  operationId: z.string().describe("The operation that stored it."),
  receivedAt: z.string(),
  user: z.string().nullable().describe("Who pushed it, or sent its file."),
  calculationId: z.int().nullable().describe("The calculation that made it."),
  file: pushOrigin.nullable().describe("The stored file that it came from."),
  row: z.int().nullable().describe("Line or row of the file, while the hub keeps what it read of the file."),
  sheet: z.string().nullable(),
  link: z.string().nullable().describe("Where the sender of the push shows its origin (`X-Trace-Link`)."),
});
export type OriginRow = z.infer<typeof originRow>;
