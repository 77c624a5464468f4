/** Mails about alarms: of one change (what, where, value, limit, since when), and of many. */
import type { AlarmChange } from "#wire/index.ts";
import { message, text, value } from "../mail/messages.ts";
import type { AlarmDigest } from "../store/alarms/digests.ts";
import type { StoredPause } from "../store/alarms/pauses.ts";
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
export function alarmMessage(notified: Notified, change: AlarmChange): MailContent & { readonly line: string } {
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

export function pauseMessage(notified: Notified, pause: StoredPause): MailContent & { readonly line: string } {
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
