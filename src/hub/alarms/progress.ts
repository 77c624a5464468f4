/** The points of one variable through one alarm, in order of date: its changes, and what it remembers then. */
import type { AlarmCondition, AlarmSchedule, AlarmState } from "#wire/index.ts";
import { type AlarmPoint, type Expression, judgePoint, type Memory, type Verdict } from "./conditions.ts";
import { counts } from "./schedule.ts";

export interface Rule {
  readonly condition: AlarmCondition;
  readonly holdMs: number;
  readonly schedule: AlarmSchedule | undefined;
  readonly expression: Expression | null;
}

export interface Standing {
  readonly state: AlarmState;
  readonly memory: Memory;
}

export interface StateChange {
  readonly state: AlarmState;
  readonly atMs: number;
  readonly value: number | null;
}

export interface Progress extends Standing {
  readonly changes: readonly StateChange[];
}

/** For a rule that has changed: it judges the newest point again, by what came before that. A hold begins again. */
export function carried({ before, ran, gap, askedMs }: Memory): Memory {
  return {
    ...(before === undefined ? {} : { last: before }),
    ...(ran === undefined ? {} : { run: ran }),
    ...(gap === undefined ? {} : { gap }),
    ...(askedMs === undefined ? {} : { askedMs }),
  };
}

/** `points`: none is older than the newest one that the memory knows. */
export function progressed(rule: Rule, zone: string, from: Standing, points: readonly AlarmPoint[]): Progress {
  let { state, memory } = from;
  const changes: StateChange[] = [];
  for (const point of points) {
    const judged = judgePoint(rule.condition, memory, point, rule.expression);
    // The newest point again: it has counted.
    if (judged.memory === memory) continue;
    memory = judged.memory;
    // A point outside of the schedule is known to later ones, but changes nothing.
    if (!counts(rule.schedule, zone, point.atMs)) continue;
    const wanted = held(rule, state, judged.verdict, point, memory);
    memory = wanted.memory;
    if (wanted.state === null) continue;
    state = wanted.state;
    changes.push({ state, atMs: point.atMs, value: point.value });
  }
  return { state, memory, changes };
}

/** `state` null: it stays. */
function held(
  { holdMs }: Rule,
  state: AlarmState,
  verdict: Verdict,
  { atMs }: AlarmPoint,
  memory: Memory,
): { readonly state: AlarmState | null; readonly memory: Memory } {
  const { pendingMs, ...rest } = memory;
  if (state !== "NotPresent") return { state: verdict === "absent" ? "NotPresent" : null, memory: rest };
  if (verdict !== "present") return { state: null, memory: rest };
  const sinceMs = pendingMs ?? atMs;
  if (atMs - sinceMs < holdMs) return { state: null, memory: { ...rest, pendingMs: sinceMs } };
  return { state: "Present", memory: rest };
}
