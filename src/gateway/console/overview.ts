/** The overview: the flow with its backlogs and rates, and the handlers of history and calendar. */

import { setImmediate } from "node:timers/promises";
import { type Clock, isoInstant } from "#core/clock.ts";
import { ConfigError } from "#core/errors.ts";
import { shareQuery } from "#core/shared-query.ts";
import type { GatewayConfig } from "../config.ts";
import type { Backlog, Ledger, RunTotals, TriggerFile } from "../ledger/ledger.ts";
import { nodeName } from "../ledger/options.ts";
import type { DropState, IsoInstant, RunState } from "../model.ts";
import type { HandlersOf } from "../operations/api/endpoint.ts";
import {
  CALENDAR_DAYS_MAX,
  type Calendar,
  type History,
  type Overview,
  type overviewEndpoints,
  type Period,
} from "../operations/api/overview.ts";
import { dropWords, type HealthPart, isPaused } from "../operations/state-of-work.ts";
import { RUN_STATES, type RunFacts } from "../states.ts";
import { dueTimesBetween, type Expectation } from "../triggers/expectation.ts";
import type { SharedInbox } from "./inbox.ts";
import type { QueryParts } from "./parts.ts";

type OverviewParts = Pick<
  QueryParts,
  "ledger" | "drops" | "scheduler" | "quota" | "observers" | "clock" | "log" | "startedAt"
> & { health(): Promise<readonly HealthPart[]>; readonly inbox: SharedInbox };

const HOUR_MS = 3_600_000;
const PERIODS: Readonly<Record<Period, { readonly hours: number; readonly steps: number }>> = {
  day: { hours: 1, steps: 24 },
  month: { hours: 24, steps: 30 },
};
/** An hour is read again after a tenth of its age, but not more often than this. */
const FRESH_MS = 5_000;
const FRESH_SHARE = 0.1;
const NONE: RunTotals = { files: 0, points: 0, errors: 0, delaySumMs: 0, delayed: 0 };
const PAST_DAYS = 30;
const COMING_DAYS = 7;
const DAY_HOURS = 24;

export function overviewHandlers(config: GatewayConfig, parts: OverviewParts): HandlersOf<typeof overviewEndpoints> {
  const history = new RunHistory(parts.ledger, parts.clock);
  // All pages ask when something has changed.
  const overview = shareQuery(() => overviewOf(config, parts));
  return {
    overview: () => overview.within(SHARED_MS),
    history: ({ query }) => history.of(query.period),
    calendar: ({ query }) => calendarOf(config.triggers, query, parts),
  };
}

const SHARED_MS = 500;

async function overviewOf(config: GatewayConfig, parts: OverviewParts): Promise<Overview> {
  const { ledger, drops, quota, clock } = parts;
  const backlog = await ledger.backlog();
  const { usedBytes, budgetBytes, freeBytes, full } = await quota.state();
  const self = nodeName(config.ledger);
  return {
    at: isoInstant(clock.now()),
    flow: {
      drops: drops.statuses().map(dropFacts),
      stages: stagesOf(backlog, (state) => parts.observers.rates.perMinute(state)),
      services: servicesOf(config, backlog, parts),
    },
    // A disk that was not counted yet has no number that JSON could hold.
    spool: { usedBytes, budgetBytes, freeBytes: Number.isFinite(freeBytes) ? freeBytes : null, full },
    nodes: (await ledger.fleet.nodes()).map((one) => ({
      node: one.node,
      drops: [...one.drops],
      runs: one.runs,
      seenAt: one.lastSeenAt,
      isAlive: one.alive,
      isSelf: one.node === self,
    })),
    health: [...(await parts.health())],
    attention: (await parts.inbox.recent()).total,
  };
}

function dropFacts(state: DropState): Overview["flow"]["drops"][number] {
  return {
    name: state.drop,
    kind: state.kind,
    state: isPaused(state) ? "paused" : state.lastError === null ? "ok" : "trouble",
    words: dropWords(state),
    waiting: state.settlingCount + state.leftCount,
  };
}

/** Of each stage the states of its runs, those that it works on, and the state in which a run leaves it. */
const STAGES = [
  {
    name: "mapping",
    has: ({ index }) => index === "runs_intake",
    isRunning: ({ stage }) => stage === null,
    to: "mapped",
  },
  {
    name: "delivery",
    has: ({ stage }) => stage === "delivery",
    isRunning: ({ next }) => next.includes("accepted"),
    to: "accepted",
  },
  { name: "confirmation", has: ({ stage }) => stage === "confirming", isRunning: () => true, to: "confirmed" },
] as const satisfies readonly {
  name: string;
  has: (facts: RunFacts) => boolean;
  isRunning: (facts: RunFacts) => boolean;
  to: RunState;
}[];

function stagesOf(backlog: readonly Backlog[], ratePerMinute: (state: RunState) => number): Overview["flow"]["stages"] {
  const count = (isMeant: (facts: RunFacts) => boolean) =>
    backlog.reduce((sum, { state, runs }) => sum + (isMeant(RUN_STATES[state]) ? runs : 0), 0);
  return STAGES.map(({ name, has, isRunning, to }) => ({
    name,
    running: count((facts) => has(facts) && isRunning(facts)),
    waiting: count((facts) => has(facts) && !isRunning(facts)),
    ratePerMinute: ratePerMinute(to),
  }));
}

function servicesOf(
  { services }: GatewayConfig,
  backlog: readonly Backlog[],
  { scheduler, observers }: OverviewParts,
): Overview["flow"]["services"] {
  const waits = scheduler.serviceWaits();
  const known = observers.services.states();
  return services.map(({ name }) => {
    const state = known.get(name);
    const wait = waits.get(name) ?? null;
    return {
      name,
      state: state?.state ?? "unused",
      reason: wait ?? state?.reason ?? null,
      breaker: wait === null ? "closed" : "open",
      lastError: state?.lastReason ?? null,
      waiting: backlog
        .filter((one) => one.service === name && RUN_STATES[one.state].stage === "delivery")
        .reduce((sum, { runs }) => sum + runs, 0),
    };
  });
}

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

/** The calendar of expected files: when each was due, and when it came. */
async function calendarOf(
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

interface KeptHour {
  readonly totals: RunTotals;
  readonly readAtMs: number;
}

/**
 * Files, points, errors and delays over time, from the ledger. It is read hour by hour, since one query of a month
 * would occupy the event loop, and each hour is kept: the older it is, the more seldom its runs still change.
 */
class RunHistory {
  readonly #ledger: Pick<Ledger, "runTotals">;
  readonly #clock: Clock;
  /** By the begin of the hour. */
  readonly #hours = new Map<number, KeptHour>();
  /** Requests at the same time share the queries. */
  readonly #reading = new Map<Period, Promise<History>>();

  constructor(ledger: Pick<Ledger, "runTotals">, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  async of(period: Period): Promise<History> {
    const reading = this.#reading.getOrInsertComputed(period, () =>
      this.#read(period).finally(() => this.#reading.delete(period)),
    );
    return await reading;
  }

  async #read(period: Period): Promise<History> {
    const { hours, steps } = PERIODS[period];
    const from = beginOf(period, this.#clock.now());
    this.#forget(from.epochMilliseconds - PERIODS.month.steps * PERIODS.month.hours * HOUR_MS);
    const all: RunTotals[] = [];
    for (let step = 0; step < steps; step += 1) {
      const beginMs = from.epochMilliseconds + step * hours * HOUR_MS;
      const parts: RunTotals[] = [];
      for (let hour = 0; hour < hours; hour += 1) parts.push(await this.#hour(beginMs + hour * HOUR_MS));
      all.push(sumOf(parts));
    }
    return {
      stepMs: hours * HOUR_MS,
      from: isoInstant(from),
      series: {
        files: all.map(({ files }) => files),
        points: all.map(({ points }) => points),
        errors: all.map(({ errors }) => errors),
        delayMs: all.map(({ delaySumMs, delayed }) => (delayed === 0 ? null : Math.round(delaySumMs / delayed))),
      },
    };
  }

  async #hour(beginMs: number): Promise<RunTotals> {
    const nowMs = this.#clock.now().epochMilliseconds;
    if (beginMs > nowMs) return NONE;
    const kept = this.#hours.get(beginMs);
    const ageMs = nowMs - (beginMs + HOUR_MS);
    if (kept !== undefined && nowMs - kept.readAtMs < Math.max(FRESH_MS, ageMs * FRESH_SHARE)) return kept.totals;
    await setImmediate();
    const totals = await this.#ledger.runTotals({ fromMs: beginMs, untilMs: beginMs + HOUR_MS });
    this.#hours.set(beginMs, { totals, readAtMs: nowMs });
    return totals;
  }

  #forget(beforeMs: number): void {
    for (const beginMs of this.#hours.keys()) if (beginMs < beforeMs) this.#hours.delete(beginMs);
  }
}

function sumOf(parts: readonly RunTotals[]): RunTotals {
  return parts.reduce(
    (sum, part) => ({
      files: sum.files + part.files,
      points: sum.points + part.points,
      errors: sum.errors + part.errors,
      delaySumMs: sum.delaySumMs + part.delaySumMs,
      delayed: sum.delayed + part.delayed,
    }),
    NONE,
  );
}

/** The last step has begun and is not over: the present hour, or the present day in the zone of the gateway. */
function beginOf(period: Period, now: Temporal.Instant): Temporal.Instant {
  const { hours, steps } = PERIODS[period];
  const zoned = now.toZonedDateTimeISO(Temporal.Now.timeZoneId());
  const last = period === "day" ? zoned.round({ smallestUnit: "hour", roundingMode: "floor" }) : zoned.startOfDay();
  return last.toInstant().subtract({ hours: hours * (steps - 1) });
}
