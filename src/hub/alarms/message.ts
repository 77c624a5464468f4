/** Mails about alarms: of one change (what, where, value, limit, since when), and of many. */
import type { AlarmChange } from "../../wire/index.ts";
import { message, text, value } from "../mail/messages.ts";
import type { AlarmDigest } from "../store/alarms/digests.ts";
import type { MailContent } from "../store/mail/mails.ts";
import { isoOfMs } from "../time.ts";
import type { Notified } from "./notices.ts";

/** A mail about a change that is older than this is of no use. */
export const MAIL_VALID_MS = 3 * 86_400_000;

export const ALARM_DIGEST = { linesMax: 100, validMs: MAIL_VALID_MS, mailOf: digestMessage } as const;

function digestMessage({ accountName, count, mails }: AlarmDigest): MailContent {
  const more = count - mails.length;
  return message(`${count} more changes of alarms in ${accountName}`, [
    text(
      `The account “${accountName}” has sent more mails about alarms in an hour than this hub permits ` +
        "(`mail.alarmsAnHour`). These changes were not sent one by one:",
    ),
    ...mails.map(({ subject, recordedMs }) => text(`${wordsOfMs(recordedMs)}  ${subject}`)),
    ...(more > 0 ? [text(`… and ${more} more.`)] : []),
    text("GET /alarms/history has all of them."),
  ]);
}

function wordsOfMs(ms: number): string {
  return `${isoOfMs(ms).slice(0, 19).replace("T", " ")} UTC`;
}

export function alarmMessage({ accountName, alarm, template }: Notified, change: AlarmChange): MailContent {
  const isPresent = change.state === "Present";
  const where = placeOf(alarm);
  const state = isPresent ? "present" : "no longer present";
  const { description } = template.body;
  return message(`${isPresent ? alarm.severity : "Ended"}: ${alarm.name}${where === "" ? "" : ` at ${where}`}`, [
    text(`The alarm “${alarm.name}” of the account “${accountName}” is ${state}.`),
    ...(description === undefined ? [] : [text(description)]),
    ...(where === "" ? [] : [value("Where", where)]),
    ...(change.value === null ? [] : [value("Value", String(change.value))]),
    ...(change.limit === null ? [] : [value("Limit", change.limit)]),
    value("Severity", alarm.severity),
    value(isPresent ? "Since" : "Ended", `${change.date.replace("T", " ").replace(/(?:\.000)?Z$/, "")} UTC`),
    text(`Alarm ${alarm.id} (GET /alarms/${alarm.id} has its history and comments).`),
  ]);
}

function placeOf({ siteName, sourceName, variableName, variableId, triggerId }: Notified["alarm"]): string {
  if (triggerId !== null) return `file trigger ${triggerId}`;
  return [siteName, sourceName, variableName === null ? null : `${variableName} (${variableId})`]
    .filter((name) => name !== null)
    .join(" / ");
}
