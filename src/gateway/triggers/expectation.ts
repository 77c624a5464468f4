/** "A file by 07:00 every day": when the last one was due, and whether it is late. */
import { z } from "zod";
import { ianaZone } from "#wire/zones.ts";

export const expectOptions = z
  .strictObject({
    by: z
      .string()
      .regex(/^([01]\d|2[0-3]):[0-5]\d$/, "expected a time such as 07:00")
      .describe("Time of day, in the time zone, by which a file must have come since the time before."),
    every: z
      .enum(["day", "weekday", "week", "month"])
      .default("day")
      .describe("day: every day; weekday: Monday to Friday; week: on Mondays, or `on`; month: on the first, or `on`."),
    on: z.int().min(1).max(28).optional().describe("For week: 1 Monday to 7 Sunday. For month: the day, 1 to 28."),
    timeZone: z
      .string()
      .refine((zone) => ianaZone(zone) !== undefined, "expected an IANA or Windows time zone, such as Europe/Brussels")
      .describe("Zone of `by`. It has no default.")
      .meta({ examples: ["Europe/Brussels"] }),
  })
  .refine((expect) => expect.every !== "week" || (expect.on ?? 1) <= 7, {
    path: ["on"],
    message: "expected 1 (Monday) to 7 (Sunday)",
  });
export type Expectation = z.output<typeof expectOptions>;

export interface LateFile {
  readonly trigger: string;
  /** When the file was due. */
  readonly due: Temporal.Instant;
  /** When a file last came, or null. */
  readonly lastSeen: Temporal.Instant | null;
}

/** Limit in days of the search for a due time: beyond the longest period. */
const DAYS_BACK_MAX = 62;

/**
 * Null when no file is late. A file counts for the due time that follows it. A due time before `watchedSince` does not
 * count, since nothing was watched then.
 */
export function lateness(
  trigger: string,
  expectation: Expectation,
  facts: {
    readonly lastSeen: Temporal.Instant | null;
    readonly now: Temporal.Instant;
    readonly watchedSince: Temporal.Instant;
  },
): LateFile | null {
  const [due, before] = dueTimes(expectation, facts.now);
  if (due === undefined || before === undefined) return null;
  if (Temporal.Instant.compare(due, facts.watchedSince) < 0) return null;
  const { lastSeen } = facts;
  if (lastSeen !== null && Temporal.Instant.compare(lastSeen, before) > 0) return null;
  return { trigger, due, lastSeen };
}

/** The two latest due times that are not after `now`, latest first. */
function dueTimes(expectation: Expectation, now: Temporal.Instant): Temporal.Instant[] {
  const zone = ianaZone(expectation.timeZone) ?? "UTC";
  const today = now.toZonedDateTimeISO(zone).toPlainDate();
  const found: Temporal.Instant[] = [];
  for (let back = 0; back <= DAYS_BACK_MAX && found.length < 2; back += 1) {
    const day = today.subtract({ days: back });
    if (!isDueOn(expectation, day)) continue;
    const due = dueOn(expectation, day, zone);
    if (Temporal.Instant.compare(due, now) <= 0) found.push(due);
  }
  return found;
}

/** The due times from one instant to another, earliest first, with as many more `before` and `after` as are wanted. */
export function dueTimesBetween(
  expectation: Expectation,
  from: Temporal.Instant,
  until: Temporal.Instant,
  more: { readonly before: number; readonly after: number },
): readonly Temporal.Instant[] {
  const zone = ianaZone(expectation.timeZone) ?? "UTC";
  const dayOf = (instant: Temporal.Instant, days: number) =>
    instant.toZonedDateTimeISO(zone).toPlainDate().add({ days });
  const last = dayOf(until, DAYS_BACK_MAX);
  const dues: Temporal.Instant[] = [];
  for (let day = dayOf(from, -DAYS_BACK_MAX); Temporal.PlainDate.compare(day, last) <= 0; day = day.add({ days: 1 }))
    if (isDueOn(expectation, day)) dues.push(dueOn(expectation, day, zone));
  const first = dues.findIndex((due) => Temporal.Instant.compare(due, from) >= 0);
  const end = dues.findLastIndex((due) => Temporal.Instant.compare(due, until) <= 0) + 1;
  return dues.slice(Math.max(0, first - more.before), end + more.after);
}

function dueOn({ by }: Expectation, day: Temporal.PlainDate, timeZone: string): Temporal.Instant {
  return day.toZonedDateTime({ timeZone, plainTime: Temporal.PlainTime.from(by) }).toInstant();
}

function isDueOn({ every, on }: Expectation, day: Temporal.PlainDate): boolean {
  if (every === "day") return true;
  if (every === "weekday") return day.dayOfWeek <= 5;
  return every === "week" ? day.dayOfWeek === (on ?? 1) : day.day === (on ?? 1);
}

/** The file history that due times are compared with; the ledger implements it. */
export interface RunHistory {
  latestRunOf(trigger: string): Promise<{ readonly createdAt: string } | null>;
}

/** The triggers whose expected file has not come, with times in ISO 8601. */
export async function missingFiles(
  triggers: readonly {
    readonly name: string;
    readonly state: string;
    readonly expect?: Expectation | undefined;
  }[],
  history: RunHistory,
  watchedSince: Temporal.Instant,
  now: Temporal.Instant,
): Promise<readonly { readonly trigger: string; readonly due: string; readonly lastSeen: string | null }[]> {
  const missing = [];
  for (const { name, state, expect } of triggers) {
    if (expect === undefined || state === "Inactive" || state === "Deleted") continue;
    const latest = await history.latestRunOf(name);
    const lastSeen = latest === null ? null : Temporal.Instant.from(latest.createdAt);
    const found = lateness(name, expect, {
      lastSeen,
      now,
      watchedSince: latest === null ? watchedSince : Temporal.Instant.from(latest.createdAt),
    });
    if (found !== null) missing.push({ trigger: name, due: found.due.toString(), lastSeen: latest?.createdAt ?? null });
  }
  return missing;
}
