/** Notices of a change of an alarm: an event always, and what its template asks for. */
import { ALARM_STATES, type Alarm, type AlarmChange, type AlarmTemplateBody, ianaZone } from "#wire/index.ts";
import { message, text, value } from "../mail/messages.ts";
import type { AlarmDigest } from "../store/alarms/digests.ts";
import type { NewDispatch } from "../store/alarms/dispatches.ts";
import type { Notices, NoticesOf } from "../store/alarms/evaluation.ts";
import type { StoredPause, StoredTemplate } from "../store/alarms/records.ts";
import type { NewEvent } from "../store/events/events.ts";
import type { MailContent } from "../store/mail/mails.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";

/** A mail about a change that is older than this is of no use. */
const MAIL_VALID_MS = 3 * 86_400_000;

export const ALARM_DIGEST = { linesMax: 100, validMs: MAIL_VALID_MS, mailOf: digestMessage } as const;
const ALL = { offset: 0, limit: null };

export interface Notified {
  readonly accountId: number;
  readonly accountName: string;
  readonly alarm: Alarm;
  readonly template: StoredTemplate;
  /** Addresses. */
  readonly recipients: readonly string[];
  /** IANA name: of the site, or of the condition LateFile. */
  readonly zone: string;
  /** The address of the hub, where it is known. */
  readonly publicUrl: string | undefined;
}

/** `changedOf`: of a change that was written. */
export function noticesOf(notified: Notified, recordedMs: number): NoticesOf {
  const { accountId, alarm, template, recipients } = notified;
  const { notifications = {} } = template.body;
  return (change) => {
    const { id, state, atMs, value, limit, user, isQuiet = false } = change;
    const facts: AlarmChange = {
      ...{ id, alarmId: alarm.id, templateId: template.id, variableId: alarm.variableId, state, value, limit, user },
      date: isoOfMs(atMs),
      recorded: isoOfMs(recordedMs),
    };
    const events = [eventOf(notified, facts, recordedMs)];
    if (isQuiet) return { mails: [], dispatches: [...variableDispatch(notified, notifications, facts)], events };
    const dispatches: NewDispatch[] = [
      ...webhookDispatches(
        notified,
        { type: "alarm.changed", account: String(accountId), alarm: shownOf(alarm), change: facts },
        recordedMs,
      ),
      ...variableDispatch(notified, notifications, facts),
    ];
    const mails =
      state === "Acknowledged"
        ? []
        : recipients.map((to) => ({
            ...{ accountId, kind: "alarm" as const, to, createdMs: recordedMs },
            ...alarmMessage(notified, facts),
            expiresMs: recordedMs + MAIL_VALID_MS,
          }));
    return { mails, dispatches, events };
  };
}

/** Notices of the begin of a pause, or of its end (null), which is an event alone. */
export function pauseNotices(notified: Notified, pause: StoredPause | null, recordedMs: number): Notices {
  const { accountId, alarm, template, recipients } = notified;
  const facts = { templateId: template.id, cause: pause?.cause ?? null, reason: pause?.words ?? null };
  const event: NewEvent = {
    accountId,
    type: "alarm.paused",
    subject: { kind: "alarm", id: alarm.id, name: alarm.name },
    atMs: recordedMs,
    state: pause === null ? "resumed" : "paused",
    severity: alarm.severity,
    isFailure: pause !== null,
    ...{ siteId: alarm.siteId, sourceId: alarm.sourceId, variableId: alarm.variableId, facts },
  };
  if (pause === null) return { mails: [], dispatches: [], events: [event] };
  const body = {
    type: "alarm.paused",
    account: String(accountId),
    alarm: shownOf(alarm),
    paused: { cause: pause.cause, reason: pause.words, since: isoOfMs(pause.atMs) },
  };
  return {
    mails: recipients.map((to) => ({
      ...{ accountId, kind: "alarm" as const, to, createdMs: recordedMs },
      ...pauseMessage(notified, pause),
      expiresMs: recordedMs + MAIL_VALID_MS,
    })),
    dispatches: webhookDispatches(notified, body, recordedMs),
    events: [event],
  };
}

function webhookDispatches(
  { accountId, template }: Notified,
  body: Readonly<Record<string, unknown>>,
  nextMs: number,
): readonly NewDispatch[] {
  return (template.body.notifications?.webhooks ?? []).map((target) => ({
    ...{ accountId, kind: "webhook" as const, target, host: new URL(target).host, nextMs },
    body: JSON.stringify(body),
  }));
}

/** Of the alarm, what does not change with its state. */
function shownOf({ id, templateId, name, kind, severity, ...place }: Alarm) {
  const { variableId, variableName, sourceId, sourceName, siteId, siteName, triggerId } = place;
  return {
    ...{ id, templateId, name, kind, severity, variableId, variableName },
    ...{ sourceId, sourceName, siteId, siteName, triggerId },
  };
}

function eventOf({ accountId, alarm, template }: Notified, change: AlarmChange, recordedMs: number): NewEvent {
  const { date, value, limit, user } = change;
  return {
    accountId,
    type: "alarm.changed",
    subject: { kind: "alarm", id: alarm.id, name: alarm.name },
    atMs: recordedMs,
    state: change.state,
    severity: alarm.severity,
    isFailure: change.state === "Present",
    siteId: alarm.siteId,
    sourceId: alarm.sourceId,
    variableId: alarm.variableId,
    facts: { changeId: change.id, templateId: template.id, kind: alarm.kind, date, value, limit, user },
  };
}

/** The state as a number, as a push of its own: the key makes it one, however often it is sent. None while it rests. */
function variableDispatch(
  { accountId, alarm }: Notified,
  { variableId, mappingConfig }: NonNullable<AlarmTemplateBody["notifications"]>,
  change: AlarmChange,
): readonly NewDispatch[] {
  if (alarm.paused !== null) return [];
  const data = [{ date: change.date, value: ALARM_STATES.indexOf(change.state) }];
  const elements = [
    ...(variableId === undefined ? [] : [{ variableId, data }]),
    ...(mappingConfig === undefined || alarm.sourceId === null
      ? []
      : [{ sourceId: alarm.sourceId, mappingConfig, data }]),
  ];
  // One kind of target a push.
  return elements.map((element, at) => ({
    accountId,
    kind: "variable" as const,
    target: `alarm-${alarm.id}-${change.id}-${at + 1}`,
    host: "",
    body: JSON.stringify([element]),
    nextMs: Date.parse(change.recorded),
  }));
}

/** The facts that notices need, by alarm; absent for an alarm that is gone, or whose template is. */
export async function notifiedOf(
  store: HubStore,
  accountId: number,
  alarmIds: readonly number[],
  publicUrl?: string,
): Promise<ReadonlyMap<number, Notified>> {
  const { rows: alarms } = await store.alarms.alarms.list(accountId, [{ ids: alarmIds }], ALL);
  const templateIds = [...new Set(alarms.map(({ templateId }) => templateId))];
  const found = await store.alarms.evaluation.templatesOf(accountId, templateIds);
  const templates = new Map(found.map((one) => [one.id, one]));
  const recipients = await recipientsOf(store, accountId, found);
  const variableIds = alarms.flatMap(({ variableId }) => variableId ?? []);
  const variables = variableIds.length === 0 ? [] : await store.points.select(accountId, { ids: variableIds });
  const zones = new Map(variables.map(({ id, siteZoneId }) => [id, siteZoneId]));
  const accountName = (await store.identity.account(accountId))?.name ?? String(accountId);
  return new Map(
    alarms.flatMap((alarm) => {
      const template = templates.get(alarm.templateId);
      if (template === undefined) return [];
      const { variableId } = alarm;
      const zoneId = variableId === null ? template.body.condition.zone : zones.get(variableId);
      const facts = { recipients: recipients(template), zone: ianaZone(zoneId ?? "UTC") ?? "UTC", publicUrl };
      return [[alarm.id, { accountId, alarm, template, accountName, ...facts }] as const];
    }),
  );
}

async function recipientsOf({ people }: HubStore, accountId: number, templates: readonly StoredTemplate[]) {
  const ids = [...new Set(templates.flatMap(({ body }) => body.notifications?.userIds ?? []))];
  const users = ids.length === 0 ? [] : (await people.members(accountId, { ids }, ALL)).rows;
  const addresses = new Map(
    users.flatMap(({ id, email, state }) => (email === null || state === "Inactive" ? [] : [[id, email] as const])),
  );
  return ({ body }: StoredTemplate): readonly string[] => {
    const { emails = [], userIds = [] } = body.notifications ?? {};
    return [...new Set([...emails, ...userIds.flatMap((id) => addresses.get(id) ?? [])])];
  };
}

// Mails about alarms: of one change (what, where, value, limit, since when), and of many.

function digestMessage({ accountName, count, mails }: AlarmDigest): MailContent {
  const more = count - mails.length;
  return message(`${count} more changes of alarms in ${accountName}`, [
    text(
      `The account “${accountName}” has sent more mails about alarms in an hour than this hub permits ` +
        "(`mail.alarmsAnHour`). These changes were not sent one by one:",
    ),
    ...mails.map(({ line }) => text(line)),
    ...(more > 0 ? [text(`… and ${more} more.`)] : []),
    text("The history of the account's alarms has all of them."),
  ]);
}

/** `2026-03-01 05:00:00 in Europe/Paris (2026-03-01 04:00:00 UTC)`. */
function wordsOf(date: string, zone: string): string {
  const at = Temporal.Instant.from(date);
  const wordsIn = (one: string) =>
    at.toZonedDateTimeISO(one).toPlainDateTime().toString({ smallestUnit: "second" }).replace("T", " ");
  return zone === "UTC" ? `${wordsIn("UTC")} UTC` : `${wordsIn(zone)} in ${zone} (${wordsIn("UTC")} UTC)`;
}

/** The variable in the explorer, with the day of the change and the one before it. */
function linkTo({ alarm: { variableId }, zone, publicUrl }: Notified, date: string): string | null {
  if (variableId === null || publicUrl === undefined) return null;
  const day = Temporal.Instant.from(date).toZonedDateTimeISO(zone).toPlainDate();
  const period = `from=${day.subtract({ days: 1 })}&to=${day.add({ days: 1 })}`;
  return `${publicUrl.replace(/\/$/, "")}/?variables=${variableId}&${period}`;
}

/** `line`: of the mail that names many changes. */
function alarmMessage(notified: Notified, change: AlarmChange): MailContent & { readonly line: string } {
  const { accountName, alarm, template, zone } = notified;
  const isPresent = change.state === "Present";
  const where = placeOf(alarm);
  const state = isPresent ? "present" : "no longer present";
  const { description } = template.body;
  const subject = `${isPresent ? alarm.severity : "Ended"}: ${alarm.name}${where === "" ? "" : ` at ${where}`}`;
  const link = linkTo(notified, change.date);
  const content = message(subject, [
    text(`The alarm “${alarm.name}” of the account “${accountName}” is ${state}.`),
    ...(description === undefined ? [] : [text(description)]),
    ...(where === "" ? [] : [value("Where", where)]),
    ...(change.value === null ? [] : [value("Value", String(change.value))]),
    ...(change.limit === null ? [] : [value("Limit", change.limit)]),
    value("Severity", alarm.severity),
    value(isPresent ? "Since" : "Ended", wordsOf(change.date, zone)),
    value("Number of the alarm", String(alarm.id)),
    ...(link === null ? [] : [{ kind: "link", words: "See the values in the explorer", href: link } as const]),
  ]);
  return { ...content, line: `${wordsOf(change.recorded, zone)}  ${content.subject}` };
}

function pauseMessage(notified: Notified, pause: StoredPause): MailContent & { readonly line: string } {
  const { accountName, alarm, zone } = notified;
  const where = placeOf(alarm);
  const content = message(`Paused: ${alarm.name}${where === "" ? "" : ` at ${where}`}`, [
    text(`The alarm “${alarm.name}” of the account “${accountName}” is paused: it says nothing until that is mended.`),
    ...(where === "" ? [] : [value("Where", where)]),
    value("Reason", pause.words),
    value("Number of the alarm", String(alarm.id)),
  ]);
  return { ...content, line: `${wordsOf(isoOfMs(pause.atMs), zone)}  ${content.subject}` };
}

function placeOf({ siteName, sourceName, variableName, variableId, triggerId }: Notified["alarm"]): string {
  if (triggerId !== null) return `file trigger ${triggerId}`;
  return [siteName, sourceName, variableName === null ? null : `${variableName} (${variableId})`]
    .filter((name) => name !== null)
    .join(" / ");
}
