/**
 * Alarms: a template says when and for which variables, an alarm is one template at one variable (`docs/alarms.md`).
 * The specification names three addresses and shows no fields; these are an extension of Headgate.
 */
import { z } from "zod";
import { anyCase, caseless, inOrder, listOf, nameText, paging, queryBoolean, queryInteger } from "./caseless.ts";

export const ALARM_KINDS = [
  "Above",
  "Below",
  "Outside",
  "Binary",
  "ChangeRate",
  "FlatLine",
  "Expression",
  "NoData",
  "Gap",
  "LateFile",
  "CalculationFailed",
] as const;
export type AlarmKind = (typeof ALARM_KINDS)[number];
/** In the order of the numbers that are pushed to a variable. */
export const ALARM_STATES = ["NotPresent", "Present", "Acknowledged"] as const;
export type AlarmState = (typeof ALARM_STATES)[number];
export const ALARM_SEVERITIES = ["Information", "Warning", "Critical"] as const;
export type AlarmSeverity = (typeof ALARM_SEVERITIES)[number];
/** Why an alarm is paused: it would write into what it watches, or it changed again and again at one date. */
export const ALARM_PAUSES = ["Feedback", "Repeats"] as const;
export type AlarmPause = (typeof ALARM_PAUSES)[number];
export const RATE_UNITS = ["Second", "Minute", "Hour", "Day"] as const;
export const RATE_DIRECTIONS = ["Any", "Rise", "Fall"] as const;

const MINUTES_MAX = 5_270_400;
const minutes = z.number().positive().max(MINUTES_MAX);
const clockTime = z
  .string()
  .regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, "is a time of day such as 07:30")
  .meta({ examples: ["07:30"] });
const days = z
  .array(z.int().min(1).max(7))
  .min(1)
  .describe("Days of the week, from 1 (Monday) to 7 (Sunday); every day when absent.");
const ids = z.array(z.int()).max(100_000);

type Condition = z.output<typeof conditionFields>;
const conditionFields = z.object({
  kind: inOrder(ALARM_KINDS).describe("Which condition; the other fields depend on it."),
  set: z.number().optional().describe("Above, Below, ChangeRate: the level at which the alarm is present."),
  reset: z.number().optional().describe("The level at which it goes away; that of `set` when absent."),
  low: z.number().optional().describe("Outside: a value below is outside."),
  high: z.number().optional().describe("Outside: a value above is outside."),
  margin: z.number().min(0).optional().describe("Outside: how far inside a value must be for the alarm to go away."),
  inverted: z.boolean().optional().describe("Binary: present at 0, and not at other values."),
  per: anyCase(RATE_UNITS).optional().describe("ChangeRate: unit of time of `set` and `reset`; Hour by default."),
  direction: anyCase(RATE_DIRECTIONS).optional().describe("ChangeRate: which changes count; Any by default."),
  tolerance: z.number().min(0).optional().describe("FlatLine: changes up to this size count as none; 0 by default."),
  minutes: minutes.optional().describe("NoData, Gap, FlatLine: the time without a point, or without a change."),
  within: minutes.optional().describe("Gap: minutes after its end in which a gap is shown; a day by default."),
  expression: z.string().min(1).max(10_000).optional().describe("Expression: present where it is true, or not 0."),
  by: clockTime.optional().describe("LateFile: the time of day by which a file has come, in the zone of `zone`."),
  days: days.optional(),
  zone: z.string().min(1).max(100).optional().describe("LateFile: Windows or IANA name; UTC by default."),
});

/** The fields that a kind needs. */
const NEEDS: Readonly<Record<AlarmKind, readonly (keyof Condition)[]>> = {
  Above: ["set"],
  Below: ["set"],
  Outside: ["low", "high"],
  Binary: [],
  ChangeRate: ["set"],
  FlatLine: ["minutes"],
  Expression: ["expression"],
  NoData: ["minutes"],
  Gap: ["minutes"],
  LateFile: ["by"],
  CalculationFailed: [],
};

export const alarmCondition = caseless(conditionFields).superRefine((condition, context) => {
  const say = (field: string, message: string) => context.addIssue({ code: "custom", path: [field], message });
  for (const field of NEEDS[condition.kind])
    if (condition[field] === undefined) say(field, `is needed by the kind ${condition.kind}`);
  const { kind, set = 0, reset = set, low = 0, high = 0, margin = 0 } = condition;
  if ((kind === "Above" || kind === "ChangeRate") && reset > set) say("reset", "must not be above set");
  if (kind === "Below" && reset < set) say("reset", "must not be below set");
  if (kind === "Outside" && low + margin > high - margin) say("margin", "leaves nothing between low and high");
});
export type AlarmCondition = z.output<typeof alarmCondition>;

export const alarmSchedule = caseless(
  z.object({
    days: days.optional(),
    from: clockTime.optional().describe("00:00 by default."),
    until: clockTime
      .optional()
      .describe("Excluded; midnight by default. Before `from`: on the next day. Belongs to the day of `from`."),
  }),
);
export type AlarmSchedule = z.output<typeof alarmSchedule>;

const selection = caseless(
  z.object({
    variableIds: ids.optional(),
    sourceIds: ids.optional(),
    siteIds: ids.optional(),
    variableTypeIds: ids.optional(),
    tags: z.array(z.string().min(1)).optional().describe("Of the variable: any of them."),
    customFilter: z.string().min(1).max(10_000).optional().describe("Of the source, as CustomFilter of /sources."),
    viewId: z.int().optional().describe("A view of /views, of sites or of sources."),
    triggerIds: ids.optional().describe("LateFile: the file triggers that are watched; the other fields are not used."),
  }),
);
export type AlarmSelection = z.output<typeof selection>;

const notifications = caseless(
  z.object({
    emails: z.array(z.email()).max(50).optional().describe("Addresses that get a mail when it comes and goes."),
    userIds: z.array(z.int()).max(50).optional().describe("Users of the account, at their own e-mail."),
    webhooks: z
      .array(z.url({ protocol: /^https?$/ }))
      .max(10)
      .optional(),
    variableId: z.int().optional().describe("Variable that gets the state: 0 not present, 1 present, 2 acknowledged."),
    mappingConfig: z
      .string()
      .min(1)
      .optional()
      .describe("The same for the variable with this mappingConfig at the source of the watched one."),
  }),
);

const templateFields = z.object({
  name: nameText(200),
  description: z.string().max(2_000).optional().describe("Stands in mails."),
  enabled: z.boolean().optional().describe("true by default. The alarms of a disabled template stay as they are."),
  severity: inOrder(ALARM_SEVERITIES).optional().describe("Warning by default."),
  selection: selection.describe("Variables that fit every field; a list means any of its values."),
  condition: alarmCondition,
  holdMinutes: minutes.optional().describe("How long the condition holds, in the dates of points, before it counts."),
  schedule: alarmSchedule.optional().describe("When the alarm counts, in the zone of the site; always when absent."),
  notifications: notifications.optional(),
});

export const alarmTemplateBody = caseless(templateFields);
export type AlarmTemplateBody = z.output<typeof alarmTemplateBody>;

export const alarmTemplate = templateFields.extend({
  id: z.int(),
  enabled: z.boolean(),
  severity: z.enum(ALARM_SEVERITIES),
  creationDate: z.string(),
  lastEditDate: z.string(),
  alarms: z.int().describe("How many it has."),
  present: z.int().describe("How many of them are present or acknowledged."),
  paused: z.int().describe("How many of them are paused: each says why."),
});
export type AlarmTemplate = z.output<typeof alarmTemplate>;

/** POST /alarms/template/test. */
export const alarmTestBody = caseless(
  z.object({
    template: alarmTemplateBody,
    from: z.string().describe("Beginning of the period, included. Without a designator in UTC."),
    to: z.string().optional().describe("Its end, excluded; now when absent."),
  }),
);

export const alarmTest = z.object({
  variables: z.int().describe("How many the template selects."),
  tested: z.int().describe("How many of them were tested."),
  changes: z.array(
    z.object({
      variableId: z.int(),
      state: z.enum(ALARM_STATES),
      date: z.string(),
      value: z.number().nullable(),
    }),
  ),
  complete: z.boolean().describe("False where the limits of a test left variables or changes out."),
});
export type AlarmTest = z.output<typeof alarmTest>;

export const alarm = z.object({
  id: z.int(),
  templateId: z.int(),
  name: z.string().describe("Of the template."),
  kind: z.enum(ALARM_KINDS),
  severity: z.enum(ALARM_SEVERITIES),
  state: z.enum(ALARM_STATES),
  variableId: z.int().nullable(),
  variableName: z.string().nullable(),
  sourceId: z.int().nullable(),
  sourceName: z.string().nullable(),
  siteId: z.int().nullable(),
  siteName: z.string().nullable(),
  triggerId: z.int().nullable().describe("LateFile: the file trigger."),
  since: z.string().nullable().describe("When it came to its state, by the dates of the points; null: never changed."),
  value: z.number().nullable().describe("With which it came to its state."),
  limit: z.string().nullable().describe("Which level was passed, in words."),
  evaluatedUntil: z.string().nullable().describe("Date of the newest point that is known to be evaluated."),
  paused: z
    .object({
      cause: z.enum(ALARM_PAUSES),
      reason: z.string().describe("Why, and what to do."),
      since: z.string(),
    })
    .nullable()
    .describe("Null: it is evaluated. A paused alarm keeps its state, and writes nothing."),
});
export type Alarm = z.output<typeof alarm>;

export const alarmChange = z.object({
  id: z.int(),
  alarmId: z.int(),
  templateId: z.int(),
  variableId: z.int().nullable(),
  state: z.enum(ALARM_STATES),
  date: z.string().describe("Of the point that changed it, or of the moment."),
  recorded: z.string().describe("When the hub noticed."),
  value: z.number().nullable(),
  limit: z.string().nullable(),
  user: z.string().nullable().describe("Who acknowledged; null: a change by evaluation."),
});
export type AlarmChange = z.output<typeof alarmChange>;

export const alarmComment = z.object({
  id: z.int(),
  author: z.string(),
  date: z.string(),
  text: z.string(),
});
export type AlarmComment = z.output<typeof alarmComment>;
export const alarmCommentBody = caseless(
  z.object({ text: z.string().trim().min(1).max(4_000).describe("What is to be known.") }),
);
export const acknowledgeBody = caseless(z.object({ comment: z.string().trim().min(1).max(4_000).optional() }));

export const alarmDetails = alarm.extend({ history: z.array(alarmChange), comments: z.array(alarmComment) });

/** The conditions of GET /alarms, which a view keeps. */
const alarmFilter = {
  states: listOf(inOrder(ALARM_STATES)).optional(),
  severities: listOf(inOrder(ALARM_SEVERITIES)).optional(),
  templateIds: listOf(queryInteger).optional(),
  variableIds: listOf(queryInteger).optional(),
  sourceIds: listOf(queryInteger).optional(),
  siteIds: listOf(queryInteger).optional(),
};
/** The conditions of GET /alarms/template, which a view of templates keeps. */
const templateFilter = {
  templateIds: listOf(queryInteger).optional(),
  severities: listOf(inOrder(ALARM_SEVERITIES)).optional(),
  kinds: listOf(inOrder(ALARM_KINDS)).optional(),
  name: z.string().min(1).optional().describe("A part of the name, in any case."),
};
const viewFilter = z.object({ ...alarmFilter, ...templateFilter });
export type AlarmFilter = z.output<typeof viewFilter>;

export const alarmViewBody = caseless(
  z.object({
    name: nameText(200),
    templateViews: z.boolean().optional().describe("true: a view of templates; a view of alarms by default."),
    filter: caseless(viewFilter).describe("The conditions, named as the parameters of the list."),
  }),
);
export type AlarmViewBody = z.output<typeof alarmViewBody>;
export const alarmView = z.object({
  id: z.int(),
  name: z.string(),
  templateViews: z.boolean(),
  filter: viewFilter,
});
export type AlarmView = z.output<typeof alarmView>;

export const alarmTemplatesQuery = caseless(
  z.object({
    viewId: queryInteger.optional().describe("A view of templates: GET /alarms/views?templateViews=true."),
    ...templateFilter,
    ...paging,
  }),
);
export const alarmsQuery = caseless(
  z.object({
    viewId: queryInteger.optional().describe("A view of alarms: GET /alarms/views."),
    ...alarmFilter,
    ...paging,
  }),
);
export const alarmHistoryQuery = caseless(
  z.object({
    alarmIds: listOf(queryInteger).optional(),
    templateIds: listOf(queryInteger).optional(),
    variableIds: listOf(queryInteger).optional(),
    from: z.string().optional().describe("By the date of the change, included. Without a designator in UTC."),
    to: z.string().optional().describe("Excluded."),
    ...paging,
  }),
);
export const alarmViewsQuery = caseless(
  z.object({
    templateViews: queryBoolean
      .optional()
      .describe("false, the default: views of alarms only; true: views of templates only."),
    ...paging,
  }),
);
export const alarmViewQuery = caseless(
  z.object({ templateViews: queryBoolean.optional().describe("true: a view of templates is meant.") }),
);
