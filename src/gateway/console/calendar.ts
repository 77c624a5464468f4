/** The calendar of expected files: when each was due, and when it came. */

import { type Clock, isoInstant } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import type { Ledger, TriggerFile } from "../ledger/ledger.ts";
import type { IsoInstant } from "../model.ts";
import { CALENDAR_DAYS_MAX, type Calendar } from "../operations/api/overview.ts";
import { dueTimesBetween, type Expectation } from "../triggers/expectation.ts";

interface ExpectingTrigger {
  readonly name: string;
  readonly state: string;
  readonly expect?: Expectation | undefined;
}

interface CalendarParts {
  readonly ledger: Pick<Ledger, "firstFilesOf">;
  readonly clock: Clock;
  readonly startedAt: IsoInstant;
}

type ExpectedFile = Calendar["triggers"][number]["expectations"][number];

const PAST_DAYS = 30;
const COMING_DAYS = 7;
const DAY_HOURS = 24;

export async function calendarOf(
  triggers: readonly ExpectingTrigger[],
  asked: { readonly from?: string | undefined; readonly to?: string | undefined },
  parts: CalendarParts,
): Promise<Calendar> {
  const now = parts.clock.now();
  const from = asked.from === undefined ? now.subtract({ hours: PAST_DAYS * DAY_HOURS }) : instantOf(asked.from);
  const until = endOf(from, asked.to, now);
  const found: Calendar["triggers"] = [];
  for (const { name, state, expect } of triggers) {
    if (expect === undefined || state === "Inactive" || state === "Deleted") continue;
    found.push({ trigger: name, expectations: await expectedFiles(name, expect, { from, until, now }, parts) });
  }
  return { triggers: found };
}

/** Throws `ConfigError` for an end that is not in the days after the begin. */
function endOf(from: Temporal.Instant, to: string | undefined, now: Temporal.Instant): Temporal.Instant {
  const last = from.add({ hours: CALENDAR_DAYS_MAX * DAY_HOURS });
  const end = to === undefined ? now.add({ hours: COMING_DAYS * DAY_HOURS }) : instantOf(to);
  if (Temporal.Instant.compare(end, last) <= 0 && Temporal.Instant.compare(end, from) >= 0) return end;
  if (to === undefined) return last;
  throw new ConfigError("HG-OPS-006", {
    operation: "show calendar",
    subject: to,
    message: `${to} is not in the ${CALENDAR_DAYS_MAX} days after ${isoInstant(from)}`,
    hint: `Ask for ${CALENDAR_DAYS_MAX} days at most, and for a longer time in several requests.`,
  });
}

/**
 * A file counts for the due time that follows it, as for warnings about late files; after a due time without a file,
 * the first one until the next due time is shown as the late one too.
 */
async function expectedFiles(
  trigger: string,
  expectation: Expectation,
  {
    from,
    until,
    now,
  }: { readonly from: Temporal.Instant; readonly until: Temporal.Instant; readonly now: Temporal.Instant },
  { ledger, startedAt }: CalendarParts,
): Promise<ExpectedFile[]> {
  // With the due time before the first, which begins its time, and the one after the last.
  const dues = dueTimesBetween(expectation, from, until, { before: 1, after: 1 }).map((due) => due.epochMilliseconds);
  const spans = dues.slice(1).map((due, at) => ({ fromMs: (dues[at] ?? due) + 1, untilMs: due + 1 }));
  // Nothing was watched before the first file, or the start of the gateway where there is none.
  const ever = { fromMs: 0, untilMs: now.epochMilliseconds + 1 };
  const [first, ...files] = await ledger.firstFilesOf(trigger, [ever, ...spans]);
  const watchedMs = first === null || first === undefined ? Date.parse(startedAt) : Date.parse(first.at);
  const expected: ExpectedFile[] = [];
  for (const [at, { untilMs }] of spans.slice(0, -1).entries()) {
    const dueMs = untilMs - 1;
    const file = files[at] ?? null;
    if (dueMs < watchedMs) continue;
    const late = file === null && dueMs <= now.epochMilliseconds ? (files[at + 1] ?? null) : null;
    expected.push(shown(dueMs, file, late, now));
  }
  return expected;
}

function shown(dueMs: number, file: TriggerFile | null, late: TriggerFile | null, now: Temporal.Instant): ExpectedFile {
  const due = isoInstant(Temporal.Instant.fromEpochMilliseconds(dueMs));
  const came = file ?? late;
  const status =
    file !== null ? "on-time" : late !== null ? "late" : dueMs > now.epochMilliseconds ? "pending" : "missing";
  return { due, status, file: came?.arrivalId ?? null, arrivedAt: came?.at ?? null };
}

function instantOf(text: string): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(Date.parse(text));
}
