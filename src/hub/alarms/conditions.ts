/** Whether a point makes an alarm present: pure functions of the condition, of what came before, and of the point. */
import type { AlarmCondition } from "#wire/index.ts";

export interface AlarmPoint {
  readonly atMs: number;
  readonly value: number;
}

interface Run {
  readonly fromMs: number;
  readonly low: number;
  readonly high: number;
}

/** Facts that an alarm remembers between two points; kept in its row. */
export interface Memory {
  /** The newest evaluated point, and the one before it. */
  readonly last?: AlarmPoint;
  readonly before?: AlarmPoint;
  /** FlatLine: the run of values within the tolerance that ends in the newest point, and in the one before it. */
  readonly run?: Run;
  readonly ran?: Run;
  /** Date of the first point of those that wanted the other state, while the hold lasts. */
  readonly pendingMs?: number;
  /** LateFile, CalculationFailed: when this was last judged. */
  readonly askedMs?: number;
  /** How many of the newest changes are of one date, where that date is. */
  readonly repeats?: { readonly atMs: number; readonly count: number };
  /** Gap: the newest gap. */
  readonly gap?: { readonly fromMs: number; readonly untilMs: number };
}

/** `same`: between Set and Reset, where the state stays as it is. */
export type Verdict = "present" | "absent" | "same";

export interface Judgement {
  readonly verdict: Verdict;
  readonly memory: Memory;
}

/** Whether the value of an expression is one at which the alarm is present; null: it has none. */
export type Expression = (point: AlarmPoint, memory: Memory) => boolean | null;

const RATE_MS = { Second: 1_000, Minute: 60_000, Hour: 3_600_000, Day: 86_400_000 } as const;
const MINUTE_MS = 60_000;

/** `point` is not older than the newest one in the memory; of the same date it is a correction of that one. */
export function judgePoint(
  condition: AlarmCondition,
  memory: Memory,
  point: AlarmPoint,
  expression: Expression | null = null,
): Judgement {
  const { last } = memory;
  const isCorrection = last !== undefined && last.atMs === point.atMs;
  if (isCorrection && last.value === point.value) return { verdict: "same", memory };
  const before = isCorrection ? memory.before : last;
  const { pendingMs, gap } = memory;
  const next: Memory = {
    last: point,
    ...(before === undefined ? {} : { before }),
    ...(pendingMs === undefined ? {} : { pendingMs }),
    ...(gap === undefined ? {} : { gap }),
  };
  switch (condition.kind) {
    case "FlatLine":
      return flatLine(condition, isCorrection ? memory.ran : memory.run, next);
    case "Gap":
      return gapBefore(condition, next);
    case "ChangeRate":
      return { verdict: rateVerdict(condition, before, point), memory: next };
    case "Expression": {
      const isTrue = expression?.(point, next) ?? null;
      return { verdict: isTrue === null ? "same" : isTrue ? "present" : "absent", memory: next };
    }
    default:
      return { verdict: levelVerdict(condition, point.value), memory: next };
  }
}

/** For the kinds that depend on one value alone. */
function levelVerdict(condition: AlarmCondition, value: number): Verdict {
  const { kind, set = 0, reset = set, low = 0, high = 0, margin = 0, inverted = false } = condition;
  if (kind === "Above") return value >= set ? "present" : value <= reset ? "absent" : "same";
  if (kind === "Below") return value <= set ? "present" : value >= reset ? "absent" : "same";
  if (kind === "Binary") return (value !== 0) !== inverted ? "present" : "absent";
  if (kind !== "Outside") return "same";
  if (value < low || value > high) return "present";
  return value >= low + margin && value <= high - margin ? "absent" : "same";
}

export function isLevel({ kind }: AlarmCondition): boolean {
  return kind === "Above" || kind === "Below" || kind === "Outside" || kind === "Binary";
}

/** Whether values between two bounds, both included, all leave the state as it is. */
export function leavesState(condition: AlarmCondition, isPresent: boolean, min: number, max: number): boolean {
  const harmless = (verdict: Verdict) => verdict === "same" || verdict === (isPresent ? "present" : "absent");
  if (condition.kind === "Binary") return min === max && harmless(levelVerdict(condition, min));
  // Values outside are at both ends: two harmless ends say nothing about those between them.
  if (condition.kind === "Outside" && isPresent)
    return (
      max < (condition.low ?? 0) + (condition.margin ?? 0) || min > (condition.high ?? 0) - (condition.margin ?? 0)
    );
  return harmless(levelVerdict(condition, min)) && harmless(levelVerdict(condition, max));
}

function rateVerdict(condition: AlarmCondition, before: AlarmPoint | undefined, point: AlarmPoint): Verdict {
  if (before === undefined) return "same";
  const { set = 0, reset = set, per = "Hour", direction = "Any" } = condition;
  const rate = ((point.value - before.value) / (point.atMs - before.atMs)) * RATE_MS[per];
  const size = direction === "Any" ? Math.abs(rate) : direction === "Rise" ? rate : -rate;
  return size >= set ? "present" : size <= reset ? "absent" : "same";
}

/** `run`: that ended in the point before. */
function flatLine(condition: AlarmCondition, run: Run | undefined, next: Memory): Judgement {
  const { last } = next;
  if (last === undefined) return { verdict: "same", memory: next };
  const { atMs, value } = last;
  const [low, high] = [Math.min(run?.low ?? value, value), Math.max(run?.high ?? value, value)];
  const isFlat = run !== undefined && high - low <= (condition.tolerance ?? 0);
  const now = isFlat ? { fromMs: run.fromMs, low, high } : { fromMs: atMs, low: value, high: value };
  const isLong = atMs - now.fromMs >= (condition.minutes ?? 0) * MINUTE_MS;
  const memory = { ...next, run: now, ...(run === undefined ? {} : { ran: run }) };
  return { verdict: isLong ? "present" : isFlat ? "same" : "absent", memory };
}

function gapBefore(condition: AlarmCondition, next: Memory): Judgement {
  const { before, last } = next;
  if (before === undefined || last === undefined || last.atMs - before.atMs <= (condition.minutes ?? 0) * MINUTE_MS)
    return { verdict: "same", memory: next };
  return { verdict: "present", memory: { ...next, gap: { fromMs: before.atMs, untilMs: last.atMs } } };
}
