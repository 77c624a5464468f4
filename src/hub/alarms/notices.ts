/** Notices of a change of an alarm: an event always, and what its template asks for. */
import { ALARM_STATES, type Alarm, type AlarmChange, type AlarmTemplateBody } from "../../wire/index.ts";
import type { NewDispatch } from "../store/alarms/dispatches.ts";
import type { NoticesOf } from "../store/alarms/evaluation.ts";
import type { StoredTemplate } from "../store/alarms/records.ts";
import type { NewEvent } from "../store/events/events.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";
import { alarmMessage } from "./message.ts";

/** A mail about a change that is older than this is of no use. */
const MAIL_VALID_MS = 3 * 86_400_000;

export interface Notified {
  readonly accountId: number;
  readonly accountName: string;
  readonly alarm: Alarm;
  readonly template: StoredTemplate;
  /** Addresses. */
  readonly recipients: readonly string[];
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
      ...(notifications.webhooks ?? []).map((target) => ({
        ...{ accountId, kind: "webhook" as const, target, nextMs: recordedMs },
        body: JSON.stringify({
          type: "alarm.changed",
          account: String(accountId),
          alarm: shownOf(alarm),
          change: facts,
        }),
      })),
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

/** The state as a number, as a push of its own: the key makes it one, however often it is sent. */
function variableDispatch(
  { accountId, alarm }: Notified,
  { variableId, mappingConfig }: NonNullable<AlarmTemplateBody["notifications"]>,
  change: AlarmChange,
): readonly NewDispatch[] {
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
    body: JSON.stringify([element]),
    nextMs: Date.parse(change.recorded),
  }));
}

/** The facts that its notices need; null when the alarm or its template is gone. */
export async function notifiedOf(store: HubStore, accountId: number, alarmId: number): Promise<Notified | null> {
  const one = { offset: 0, limit: 1 };
  const [alarm] = (await store.alarms.alarms.list(accountId, [{ ids: [alarmId] }], one)).rows;
  if (alarm === undefined) return null;
  const [template] = (await store.alarms.templates.list(accountId, [{ templateIds: [alarm.templateId] }], one)).rows;
  if (template === undefined) return null;
  const { emails = [], userIds = [] } = template.body.notifications ?? {};
  const users =
    userIds.length === 0
      ? []
      : (await store.people.members(accountId, { ids: userIds }, { offset: 0, limit: null })).rows;
  const own = users.flatMap(({ email, state }) => (email === null || state === "Inactive" ? [] : [email]));
  const account = await store.identity.account(accountId);
  return {
    ...{ accountId, alarm, template, accountName: account?.name ?? String(accountId) },
    recipients: [...new Set([...emails, ...own])],
  };
}
