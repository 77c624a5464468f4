/** The mail about a change of an alarm: what, where, value, limit, since when. */
import type { AlarmChange } from "../../wire/index.ts";
import { message, text, value } from "../mail/messages.ts";
import type { MailContent } from "../store/mail/mails.ts";
import type { Notified } from "./notices.ts";

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
