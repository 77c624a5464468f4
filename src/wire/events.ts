/**
 * Events of an account: what happened in it, in one order, for those who read the feed (`GET /events`) and those who
 * are called (subscriptions). An extension of Headgate (`docs/events.md`).
 */
import { z } from "zod";

export const EVENT_TYPES = [
  "push.outcome",
  "file.state",
  "calculation.recalculated",
  "calculation.failed",
  "alarm.changed",
  "structure.changed",
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** The kinds of things that events are about. Master data: a file of it, with all of its rows. */
export const EVENT_SUBJECTS = [
  "operation",
  "file",
  "variable",
  "source",
  "site",
  "group",
  "form",
  "fileTrigger",
  "user",
  "alarm",
  "masterData",
] as const;
export type EventSubject = (typeof EVENT_SUBJECTS)[number];

export const accountEvent = z.object({
  id: z.int().describe("Number of the event in its account: without gaps, in the order in which events are read."),
  date: z.string().describe("When it happened."),
  type: z.enum(EVENT_TYPES),
  subject: z.object({
    kind: z.enum(EVENT_SUBJECTS),
    id: z.string(),
    name: z.string().nullable(),
  }),
  state: z.string().nullable().describe("State of the subject since then."),
  severity: z.string().nullable(),
  isFailure: z.boolean().describe("Whether a person should see it."),
  siteId: z.int().nullable(),
  sourceId: z.int().nullable(),
  variableId: z.int().nullable(),
  facts: z.record(z.string(), z.unknown()).describe("What else there is to say; its fields depend on the type."),
});
export type AccountEvent = z.infer<typeof accountEvent>;
