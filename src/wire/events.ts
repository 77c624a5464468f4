/**
 * Events of an account: what happened in it, in one order, for those who read the feed (`GET /events`) and those who
 * are called (subscriptions). An extension of Headgate (`docs/events.md`).
 */
import { z } from "zod";
import { ALARM_SEVERITIES, ALARM_STATES } from "./alarms.ts";
import { anyCase, caseless, listOf, paging, queryBoolean, queryInteger } from "./caseless.ts";
import { FILE_STATE_NAMES } from "./storage.ts";

const EVERYWHERE = ["siteIds", "sourceIds", "variableIds"] as const;
const PUSHES = ["stored", "partly-discarded", "discarded", "failed"];
const FILES = FILE_STATE_NAMES.filter((state) => state !== "processing");
const CALCULATION = { subjects: ["variable"], severities: [], places: EVERYWHERE } as const;

const KINDS: Readonly<Record<EventType, EventKind>> = {
  "push.outcome": { subjects: ["operation"], states: PUSHES, failures: PUSHES.slice(1), severities: [], places: [] },
  "file.state": { subjects: ["file"], states: FILES, failures: FILES, severities: [], places: ["siteIds"] },
  "calculation.recalculated": { ...CALCULATION, states: ["done"], failures: [] },
  "calculation.failed": { ...CALCULATION, states: ["failed"], failures: ["failed"] },
  "alarm.changed": {
    subjects: ["alarm"],
    states: ALARM_STATES,
    failures: ["Present"],
    severities: ALARM_SEVERITIES,
    places: EVERYWHERE,
  },
  "alarm.paused": {
    subjects: ["alarm"],
    states: ["paused", "resumed"],
    failures: ["paused"],
    severities: ALARM_SEVERITIES,
    places: EVERYWHERE,
  },
  "structure.changed": {
    subjects: ["site", "source", "variable", "group", "form", "fileTrigger", "masterData"],
    states: ["created", "changed", "removed"],
    failures: [],
    severities: [],
    places: EVERYWHERE,
  },
};

export const EVENT_STATES: readonly string[] = [...new Set(Object.values(KINDS).flatMap(({ states }) => states))];

export const EVENT_TYPES = [
  "push.outcome",
  "file.state",
  "calculation.recalculated",
  "calculation.failed",
  "alarm.changed",
  "alarm.paused",
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
  "subscription",
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

const MAX_IDS = 1_000;
const ids = z.array(z.int().positive()).min(1).max(MAX_IDS);
const state = anyCase(EVENT_STATES);
const severity = anyCase(ALARM_SEVERITIES);

/** All fields combine with AND; a list means any of its values. An unknown field would let all events through. */
export const eventFilter = caseless(
  z.strictObject({
    subjects: z.array(anyCase(EVENT_SUBJECTS)).min(1).optional().describe("Kinds of subjects."),
    states: z.array(state).min(1).optional().describe("States since the event, such as `quarantined` of a file."),
    severities: z.array(severity).min(1).optional().describe("Severities of alarms."),
    siteIds: ids.optional().describe("Only events that belong to one of these sites."),
    sourceIds: ids.optional().describe("Only events that belong to one of these sources."),
    variableIds: ids.optional().describe("Only events that belong to one of these variables."),
    onlyFailures: z.boolean().optional().describe("Only events that a person should see."),
  }),
);
export type EventFilterBody = z.infer<typeof eventFilter>;

export const EVENTS_PAGE_MAX = 1_000;
export const EVENTS_WAIT_SEC_MAX = 60;

export const eventsQuery = caseless(
  z.object({
    after: queryInteger
      .refine((id) => id >= 0, "is no id of an event: it counts from 0")
      .optional()
      .describe("Events after this one: `next` of the answer before. Without it, from the oldest that is kept."),
    types: listOf(anyCase(EVENT_TYPES)).optional().describe("Types of events."),
    subjects: listOf(anyCase(EVENT_SUBJECTS)).optional().describe("Kinds of subjects."),
    states: listOf(state).optional().describe("States since the event."),
    severities: listOf(severity).optional().describe("Severities of alarms."),
    siteIds: listOf(queryInteger).optional(),
    sourceIds: listOf(queryInteger).optional(),
    variableIds: listOf(queryInteger).optional(),
    onlyFailures: queryBoolean.optional().describe("Only events that a person should see."),
    subscriptionId: queryInteger.optional().describe("Types and filter of this subscription; then no others."),
    limit: queryInteger
      .refine((limit) => limit >= 1 && limit <= EVENTS_PAGE_MAX, `is between 1 and ${EVENTS_PAGE_MAX}`)
      .default(100)
      .describe(`Events of the answer at most, up to ${EVENTS_PAGE_MAX}; 100 by default.`),
    waitSec: queryInteger
      .refine((sec) => sec >= 0 && sec <= EVENTS_WAIT_SEC_MAX, `is between 0 and ${EVENTS_WAIT_SEC_MAX}`)
      .default(0)
      .describe("Where there is no event yet, the answer waits so long for one; 0 by default."),
  }),
);

export const eventsPage = z.object({
  events: z.array(accountEvent),
  next: z.int().describe("What the next call gives as `after`."),
  last: z.int().describe("The newest event of the account; where `next` is less, more events wait."),
});

export const SUBSCRIPTION_CHANNELS = ["webhook", "feed"] as const;
export const SUBSCRIPTION_BATCH_MAX = 500;

export const subscriptionBody = caseless(
  z.object({
    name: z.string().trim().min(1).max(200),
    types: z.array(anyCase(EVENT_TYPES)).min(1).describe("Types of events."),
    filter: eventFilter.optional().describe("Which events of these types; all of them when absent."),
    channel: anyCase(SUBSCRIPTION_CHANNELS)
      .default("webhook")
      .describe("webhook: events are sent to `url`; feed: they are read by `GET /events?subscriptionId=`."),
    url: z.string().max(2_000).optional().describe("Where events are sent, by POST; required with `webhook`."),
    secret: z
      .string()
      .min(16)
      .max(200)
      .optional()
      .describe("Key of the signature. Without one a new subscription gets one, and its answer shows that, once."),
    batch: z
      .int()
      .min(1)
      .max(SUBSCRIPTION_BATCH_MAX)
      .default(1)
      .describe(`Events of one delivery at most, up to ${SUBSCRIPTION_BATCH_MAX}; 1 by default.`),
    active: z.boolean().default(true).describe("Inactive ones get nothing; active again, they begin with new events."),
  }),
);
export type SubscriptionBody = z.infer<typeof subscriptionBody>;

export const SUBSCRIPTION_STATES = ["Active", "Failing", "Paused", "Inactive"] as const;

export const subscription = z.object({
  id: z.int(),
  name: z.string(),
  types: z.array(z.enum(EVENT_TYPES)),
  filter: z.record(z.string(), z.unknown()),
  channel: z.enum(SUBSCRIPTION_CHANNELS),
  url: z.string().nullable(),
  batch: z.int(),
  active: z.boolean(),
  created: z.string(),
  createdBy: z.string(),
  state: z
    .enum(SUBSCRIPTION_STATES)
    .describe("Failing: the last attempt failed, and it is tried again. Paused: it waits until a person resumes it."),
  since: z.string().nullable().describe("When it began to fail, or was paused."),
  failure: z.string().nullable().describe("What became of the last attempt."),
  attempts: z.int().describe("Attempts that failed since the last success."),
  nextAttempt: z.string().nullable(),
  delivered: z.string().nullable().describe("When it last succeeded."),
  position: z.int().nullable().describe("The last event that was sent, or that does not fit the filter."),
  behind: z.int().nullable().describe("How many events came since then, whether they fit the filter or not."),
  lostTo: z
    .int()
    .nullable()
    .describe("Events up to this one were no longer kept when it was to be sent (`keep.undeliveredEvents`)."),
});
export type Subscription = z.infer<typeof subscription>;

export const newSubscription = subscription.extend({
  secret: z.string().optional().describe("Key of the signature, where the hub made it; shown this once."),
});

export const subscriptionTest = z.object({
  accepted: z.boolean(),
  status: z.int().nullable().describe("What the receiver answered; null without an answer."),
  words: z.string(),
});

export const subscriptionsQuery = caseless(z.object(paging));

/** Body of a delivery; signed as outcomes are (`webhook.ts`). */
export const eventDelivery = z.object({
  account: z.string(),
  subscription: z.object({ id: z.int(), name: z.string() }),
  test: z.boolean().optional().describe("True in a test, whose event is none of the account."),
  events: z.array(accountEvent.extend({ type: z.enum([...EVENT_TYPES, "subscription.test"]) })),
});
export type EventDelivery = z.infer<typeof eventDelivery>;

// The facts that events of each type have. A filter that no event can fit is refused: it would wait in silence.

interface EventKind {
  readonly subjects: readonly EventSubject[];
  readonly states: readonly string[];
  /** States in which a person should see it. */
  readonly failures: readonly string[];
  readonly severities: readonly string[];
  /** Fields of filters that may select such events. */
  readonly places: readonly ("siteIds" | "sourceIds" | "variableIds")[];
}

export interface Misfit {
  /** Of the filter; null: its fields together. */
  readonly field: string | null;
  readonly message: string;
}

/**
 * Why events of these types cannot fit the filter; null when those of each type can (`of` some: of one type at least).
 * Ids are not looked up.
 */
export function misfitOf(types: readonly EventType[], filter: EventFilterBody, of: "each" | "some"): Misfit | null {
  const unfit = types.filter((type) => !canFit(KINDS[type], filter));
  const others = types.length - unfit.length;
  if (unfit.length === 0 || (of === "some" && others > 0)) return null;
  const named = others > 0 ? unfit.slice(0, 1) : unfit;
  const which = `no event of ${named.join(", ")}`;
  const hint = others > 0 ? `; leave ${named[0]} out of the types, or give it a filter of its own` : "";
  for (const [field, value] of Object.entries(filter))
    if (!named.some((type) => canFit(KINDS[type], { [field]: value })))
      return { field, message: `${which} can fit it${hint}` };
  return { field: null, message: `${which} can fit all of its fields${hint}` };
}

function canFit(kind: EventKind, { subjects, states, severities, onlyFailures, ...ids }: EventFilterBody): boolean {
  const wanted = states ?? kind.states;
  const known = onlyFailures === true ? kind.failures : kind.states;
  return (
    (subjects ?? kind.subjects).some((one) => kind.subjects.includes(one)) &&
    wanted.some((one) => known.includes(one)) &&
    (severities === undefined || severities.some((one) => kind.severities.includes(one))) &&
    EVERYWHERE.every((place) => ids[place] === undefined || kind.places.includes(place))
  );
}
