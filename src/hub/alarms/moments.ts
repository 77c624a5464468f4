/**
 * Changes by time: no data, the end of a gap's notice, late files, and the ends of calculations, which are asked
 * for.
 */
import type { AlarmState } from "#wire/index.ts";
import type { EndedCalculation } from "../store/alarms/evaluation.ts";
import type { HubStore } from "../store/store.ts";
import type { Memory } from "./conditions.ts";
import type { Rule, StateChange } from "./progress.ts";
import { lastTime, nextCounted, nextTime } from "./schedule.ts";
import { GAP_SHOWN_MS, type Watched, zoneOf } from "./watched.ts";

const MINUTE_MS = 60_000;
const NEVER = Number.NEGATIVE_INFINITY;
/** How often files and calculations are asked for, while an alarm waits for one. */
const ASK_MS = 60_000;

/** Facts of the store about the variables and triggers of some alarms. */
export interface MomentFacts {
  /** The newest point of each variable, up to now. */
  readonly newest: ReadonlyMap<number, { readonly atMs: number; readonly value: number }>;
  /** Dates of points around the newest gap, by alarm. */
  readonly around: ReadonlyMap<number, readonly number[]>;
  /** When the newest file of each trigger came. */
  readonly files: ReadonlyMap<number, number>;
  readonly calculations: ReadonlyMap<number, EndedCalculation>;
}

export interface Judged {
  readonly changes: readonly StateChange[];
  readonly watermarkMs: number | null;
  /** Absent: as it was. */
  readonly memory?: Memory;
}

const NEWEST = { order: "DESC", page: { offset: 0, limit: 1 }, view: { kind: "latest" }, labels: false } as const;
/** Points in a gap that is filled; a gap with more of them counts as filled. */
const FILL_MAX = 2_000;

export async function readMoments(
  { points, alarms }: HubStore,
  due: readonly Watched[],
  nowMs: number,
): Promise<MomentFacts> {
  const facts = {
    newest: new Map<number, { readonly atMs: number; readonly value: number }>(),
    around: new Map<number, readonly number[]>(),
    files: new Map<number, number>(),
    calculations: new Map<number, EndedCalculation>(),
  };
  const variables = new Map(
    due.filter(kindIs("NoData")).flatMap(({ facts: one }) => (one === null ? [] : [[one.id, one]])),
  );
  const asks = [...variables.values()].map((variable) => ({ variable, fromMs: null, lastMs: nowMs }));
  for (const [index, head] of (await points.heads(asks, NEWEST)).entries())
    for (const { atMs, value } of head) facts.newest.set(asks[index]?.variable.id ?? 0, { atMs, value });
  for (const { stored, facts: variable } of due.filter(kindIs("Gap"))) {
    const { gap } = stored.memory;
    if (gap === undefined || variable === null) continue;
    const page = {
      order: "ASC",
      page: { offset: 0, limit: FILL_MAX },
      view: { kind: "latest" },
      labels: false,
    } as const;
    const ask = { variable, fromMs: gap.fromMs, lastMs: gap.untilMs };
    const [found = []] = await points.heads([ask], page);
    facts.around.set(stored.id, found.length === FILL_MAX ? [] : found.map(({ atMs }) => atMs));
  }
  for (const [account, own] of Map.groupBy(due, ({ stored }) => stored.accountId)) {
    const triggerIds = own.flatMap(({ stored }) => stored.triggerId ?? []);
    if (triggerIds.length > 0)
      for (const [id, ms] of await alarms.evaluation.newestFiles(account, triggerIds)) facts.files.set(id, ms);
    const ids = own.filter(kindIs("CalculationFailed")).flatMap(({ facts: one }) => one?.id ?? []);
    if (ids.length > 0)
      for (const [id, ended] of await alarms.evaluation.calculations(account, ids)) facts.calculations.set(id, ended);
  }
  return facts;
}

function kindIs(kind: string): (watched: Watched) => boolean {
  return ({ rule }) => rule.condition.kind === kind;
}

/** When it is next to be judged, which may be over; null: not by the time. */
export function nextMoment(watched: Watched, nowMs: number): number | null {
  const { rule, stored, zone } = watched;
  const { condition } = rule;
  const isPresent = stored.state !== "NotPresent";
  switch (condition.kind) {
    case "NoData": {
      // Data came: it goes away at once.
      if (isPresent) return (watched.newestMs ?? NEVER) > (stored.watermarkMs ?? NEVER) ? nowMs : null;
      const sinceMs = nextCounted(rule.schedule, zone, dueOf(watched));
      return sinceMs <= nowMs ? nextCounted(rule.schedule, zone, nowMs) : sinceMs;
    }
    case "Gap":
      return isPresent ? shownUntil(rule, stored.memory) : null;
    case "LateFile": {
      if (isPresent) return (stored.memory.askedMs ?? 0) + ASK_MS;
      const from = stored.memory.askedMs ?? stored.createdMs;
      return nextTime(condition.by ?? "00:00", condition.days, zoneOf(condition), from);
    }
    case "CalculationFailed":
      return (stored.memory.askedMs ?? 0) + ASK_MS;
    default:
      return null;
  }
}

/** Whether points from this date on may have filled the gap that is shown. */
export function isFilled({ rule, stored }: Watched, fromMs: number): boolean {
  const { gap } = stored.memory;
  return rule.condition.kind === "Gap" && stored.state !== "NotPresent" && gap !== undefined && fromMs < gap.untilMs;
}

export function judgeMoment(watched: Watched, facts: MomentFacts, nowMs: number): Judged {
  switch (watched.rule.condition.kind) {
    case "NoData":
      return noData(watched, facts, nowMs);
    case "Gap":
      return gapEnd(watched, facts, nowMs);
    case "LateFile":
      return lateFile(watched, facts, nowMs);
    case "CalculationFailed":
      return calculation(watched, facts, nowMs);
    default:
      return { changes: [], watermarkMs: null };
  }
}

function limitMs({ rule }: Watched): number {
  return (rule.condition.minutes ?? 0) * MINUTE_MS;
}

/** NoData: whether a point of this date means that there is data. */
export function isFresh({ condition }: Rule, atMs: number, nowMs: number): boolean {
  return atMs + (condition.minutes ?? 0) * MINUTE_MS > nowMs;
}

/** A variable without any point has been silent since its alarm was made. */
function dueOf(watched: Watched): number {
  return (watched.newestMs ?? watched.stored.createdMs) + limitMs(watched);
}

function noData(watched: Watched, { newest }: MomentFacts, nowMs: number): Judged {
  const { rule, stored, zone, facts } = watched;
  const point = newest.get(facts?.id ?? 0);
  watched.newestMs = point?.atMs ?? null;
  const watermarkMs = point?.atMs ?? null;
  const dueMs = dueOf(watched);
  if (stored.state === "NotPresent") {
    const sinceMs = nextCounted(rule.schedule, zone, dueMs);
    const isLate = sinceMs <= nowMs && nextCounted(rule.schedule, zone, nowMs) === nowMs;
    return isLate ? changed("Present", sinceMs, null, { watermarkMs }) : { changes: [], watermarkMs };
  }
  if (dueMs <= nowMs || point === undefined) return { changes: [], watermarkMs };
  return changed("NotPresent", point.atMs, point.value, { watermarkMs });
}

/** When a gap ends by the time. */
export function shownUntil({ condition: { within } }: Rule, { gap }: Memory): number {
  return (gap?.untilMs ?? 0) + (within === undefined ? GAP_SHOWN_MS : within * MINUTE_MS);
}

function gapEnd(watched: Watched, { around }: MomentFacts, nowMs: number): Judged {
  const { stored } = watched;
  if (stored.state === "NotPresent") return { changes: [], watermarkMs: null };
  // Its template had another condition when it became present.
  if (stored.memory.gap === undefined) return changed("NotPresent", nowMs, null, {});
  const endMs = shownUntil(watched.rule, stored.memory);
  if (endMs <= nowMs) return changed("NotPresent", endMs, null, {});
  const dates = around.get(stored.id);
  const isHole = (at: number, index: number) => at - (dates?.[index - 1] ?? at) > limitMs(watched);
  if (dates === undefined || dates.some(isHole)) return { changes: [], watermarkMs: null };
  return changed("NotPresent", nowMs, null, {});
}

/** Whether a file came between the last two moments at which one is expected. */
function lateFile({ rule, stored }: Watched, { files }: MomentFacts, nowMs: number): Judged {
  const { by = "00:00", days } = rule.condition;
  const zone = zoneOf(rule.condition);
  const memory = { ...stored.memory, askedMs: nowMs };
  const newest = files.get(stored.triggerId ?? 0) ?? null;
  if (stored.state !== "NotPresent") {
    const isHere = newest !== null && newest > (stored.sinceMs ?? 0);
    return isHere ? changed("NotPresent", newest, null, { memory }) : { changes: [], watermarkMs: null, memory };
  }
  const dueMs = lastTime(by, days, zone, nowMs);
  const from = stored.memory.askedMs ?? stored.createdMs;
  if (dueMs === null || dueMs <= from) return { changes: [], watermarkMs: null, memory };
  const before = lastTime(by, days, zone, dueMs - 1) ?? dueMs - 86_400_000;
  if (newest !== null && newest > before) return { changes: [], watermarkMs: null, memory };
  return changed("Present", dueMs, null, { memory });
}

function calculation({ stored, facts }: Watched, { calculations }: MomentFacts, nowMs: number): Judged {
  const memory = { ...stored.memory, askedMs: nowMs };
  const ended = calculations.get(facts?.id ?? 0);
  const isPresent = stored.state !== "NotPresent";
  if (ended === undefined || ended.hasFailed === isPresent) return { changes: [], watermarkMs: null, memory };
  return changed(ended.hasFailed ? "Present" : "NotPresent", ended.atMs, null, { memory });
}

function changed(
  state: AlarmState,
  atMs: number,
  value: number | null,
  more: { readonly memory?: Memory; readonly watermarkMs?: number | null },
): Judged {
  return { changes: [{ state, atMs, value }], watermarkMs: null, ...more };
}
