import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AlarmPoint, isLevel, judgePoint, leavesState, type Memory } from "#hub/alarms/conditions.ts";
import { carried, progressed, type Rule } from "#hub/alarms/progress.ts";
import { type AlarmCondition, alarmCondition } from "#wire/index.ts";

const HOUR_MS = 3_600_000;
const START = Date.UTC(2026, 2, 1);

const conditionOf = (condition: object): AlarmCondition => alarmCondition.parse(condition);
const ruleOf = (condition: object, more: Partial<Rule> = {}): Rule => ({
  condition: conditionOf(condition),
  holdMs: 0,
  schedule: undefined,
  expression: null,
  ...more,
});
const hourly = (values: readonly number[]): AlarmPoint[] =>
  values.map((value, hour) => ({ atMs: START + hour * HOUR_MS, value }));
const FRESH = { state: "NotPresent", memory: {} } as const;
/** Hours of the changes, negative where the alarm goes away. */
const changesOf = (rule: Rule, values: readonly number[]) =>
  progressed(rule, "UTC", FRESH, hourly(values)).changes.map(({ state, atMs, value }) => [
    state,
    (atMs - START) / HOUR_MS,
    value,
  ]);

describe("Set and Reset", () => {
  test("High: present at or above Set, not present at or below Reset, unchanged between", () => {
    expect(changesOf(ruleOf({ kind: "Above", set: 10, reset: 8 }), [9, 10, 9, 8.5, 8, 9, 11])).toEqual([
      ["Present", 1, 10],
      ["NotPresent", 4, 8],
      ["Present", 6, 11],
    ]);
  });

  test("Low: the other way round", () => {
    expect(changesOf(ruleOf({ kind: "Below", set: 8, reset: 10 }), [9, 8, 9, 10, 9, 7])).toEqual([
      ["Present", 1, 8],
      ["NotPresent", 3, 10],
      ["Present", 5, 7],
    ]);
  });

  test("without a Reset level it is the Set level", () => {
    expect(changesOf(ruleOf({ kind: "Above", set: 10 }), [10, 9.99, 10])).toEqual([
      ["Present", 0, 10],
      ["NotPresent", 1, 9.99],
      ["Present", 2, 10],
    ]);
  });

  test("any values: as a naive machine, in whatever parts they come, and with points that come again", () => {
    const value = fc.integer({ min: -5, max: 25 });
    const parts = fc.array(fc.array(value, { maxLength: 6 }), { maxLength: 8 });
    const levels = fc.tuple(value, value).map(([a, b]) => ({ set: Math.max(a, b), reset: Math.min(a, b) }));
    fc.assert(
      fc.property(parts, levels, fc.boolean(), (groups, { set, reset }, isHigh) => {
        const condition = isHigh ? { kind: "Above", set, reset } : { kind: "Below", set: reset, reset: set };
        const all = groups.flat();
        const points = hourly(all);
        const wanted: boolean[] = [];
        for (const one of all) {
          const was = wanted.at(-1) ?? false;
          if (isHigh) wanted.push(one >= set ? true : one <= reset ? false : was);
          else wanted.push(one <= reset ? true : one >= set ? false : was);
        }
        const naive = wanted.flatMap((isPresent, at) =>
          isPresent === (wanted[at - 1] ?? false) ? [] : [[isPresent ? "Present" : "NotPresent", at, all[at]]],
        );
        let standing: { state: "NotPresent" | "Present" | "Acknowledged"; memory: Memory } = FRESH;
        const changes: unknown[] = [];
        let done = 0;
        for (const group of groups) {
          const known = Math.max(0, done - 1);
          const next = progressed(ruleOf(condition), "UTC", standing, points.slice(known, done + group.length));
          done += group.length;
          standing = next;
          changes.push(...next.changes.map(({ state, atMs, value: at }) => [state, (atMs - START) / HOUR_MS, at]));
        }
        expect(changes).toEqual(naive);
      }),
    );
  });

  test("bounds that leave the state as it is hide no value that would change it", () => {
    const value = fc.integer({ min: -5, max: 25 });
    const conditions = fc.oneof(
      fc.tuple(value, value).map(([a, b]) => ({ kind: "Above", set: Math.max(a, b), reset: Math.min(a, b) })),
      fc.tuple(value, value).map(([a, b]) => ({ kind: "Below", set: Math.min(a, b), reset: Math.max(a, b) })),
      fc.tuple(value, value).map(([a, b]) => ({ kind: "Outside", low: Math.min(a, b), high: Math.max(a, b) })),
      fc.boolean().map((inverted) => ({ kind: "Binary", inverted })),
    );
    fc.assert(
      fc.property(
        conditions,
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        (raw, values, isPresent) => {
          const condition = conditionOf(raw);
          expect(isLevel(condition)).toBe(true);
          if (!leavesState(condition, isPresent, Math.min(...values), Math.max(...values))) return;
          const state = isPresent ? "Present" : "NotPresent";
          const { changes } = progressed(ruleOf(raw), "UTC", { state, memory: {} }, hourly(values));
          expect(changes).toEqual([]);
        },
      ),
    );
  });
});

describe("the other conditions", () => {
  test("Outside is left by the margin alone", () => {
    const rule = ruleOf({ kind: "Outside", low: 10, high: 20, margin: 1 });
    expect(changesOf(rule, [15, 9, 10.5, 11, 20.1, 19.5, 19])).toEqual([
      ["Present", 1, 9],
      ["NotPresent", 3, 11],
      ["Present", 4, 20.1],
      ["NotPresent", 6, 19],
    ]);
  });

  test("Binary is present at any value but 0, or inverted at 0", () => {
    expect(changesOf(ruleOf({ kind: "Binary" }), [0, 1, 0])).toEqual([
      ["Present", 1, 1],
      ["NotPresent", 2, 0],
    ]);
    expect(changesOf(ruleOf({ kind: "Binary", inverted: true }), [1, 0])).toEqual([["Present", 1, 0]]);
  });

  test("ChangeRate compares with the point before, by the time between them", () => {
    const rule = ruleOf({ kind: "ChangeRate", set: 5, per: "Hour", direction: "Rise" });
    expect(changesOf(rule, [0, 4, 10, 0, 6])).toEqual([
      ["Present", 2, 10],
      ["NotPresent", 3, 0],
      ["Present", 4, 6],
    ]);
  });

  test("FlatLine is present when the value has not changed for the time, until it changes", () => {
    const rule = ruleOf({ kind: "FlatLine", minutes: 120 });
    expect(changesOf(rule, [1, 2, 2, 2, 2, 3, 3, 3])).toEqual([
      ["Present", 3, 2],
      ["NotPresent", 5, 3],
      ["Present", 7, 3],
    ]);
  });

  test("FlatLine measures its tolerance over the whole run, so that a slow drift is none", () => {
    const rule = ruleOf({ kind: "FlatLine", minutes: 180, tolerance: 1 });
    expect(changesOf(rule, [1, 2, 3, 4, 5, 6, 7, 8])).toEqual([]);
    expect(changesOf(rule, [1, 2, 1.5, 2, 2.5])).toEqual([
      ["Present", 3, 2],
      ["NotPresent", 4, 2.5],
    ]);
    const first = progressed(rule, "UTC", FRESH, hourly([2, 2, 9]));
    const corrected = progressed(rule, "UTC", first, hourly([2, 2, 2, 2]).slice(2));
    expect(corrected.changes).toMatchObject([{ state: "Present", atMs: START + 3 * HOUR_MS }]);
  });

  test("FlatLine keeps its run when its rule is changed", () => {
    const points = hourly([2, 2, 2, 2]);
    const first = progressed(ruleOf({ kind: "FlatLine", minutes: 120 }), "UTC", FRESH, points);
    const from = { ...first, memory: carried(first.memory) };
    const changed = ruleOf({ kind: "FlatLine", minutes: 180 });
    const next = progressed(changed, "UTC", from, points.slice(-1));
    expect([next.changes, next.state, next.memory.run?.fromMs]).toEqual([[], "Present", START]);
  });

  test("Gap is present from the point after it", () => {
    const points = [0, 1, 5, 6].map((hour) => ({ atMs: START + hour * HOUR_MS, value: 1 }));
    const { changes, memory } = progressed(ruleOf({ kind: "Gap", minutes: 90 }), "UTC", FRESH, points);
    expect(changes).toEqual([{ state: "Present", atMs: START + 5 * HOUR_MS, value: 1 }]);
    expect(memory.gap).toEqual({ fromMs: START + HOUR_MS, untilMs: START + 5 * HOUR_MS });
  });

  test("a corrected newest point counts anew, and the same one does not", () => {
    const rule = ruleOf({ kind: "Above", set: 10 });
    const point = { atMs: START, value: 12 };
    const first = progressed(rule, "UTC", FRESH, [point]);
    expect(progressed(rule, "UTC", first, [point]).changes).toEqual([]);
    expect(progressed(rule, "UTC", first, [{ ...point, value: 3 }]).changes).toMatchObject([{ state: "NotPresent" }]);
  });

  test("an acknowledged alarm stays so until it goes away", () => {
    const rule = ruleOf({ kind: "Above", set: 10, reset: 8 });
    const { changes, state } = progressed(rule, "UTC", { state: "Acknowledged", memory: {} }, hourly([12, 9, 11]));
    expect([changes, state]).toEqual([[], "Acknowledged"]);
    expect(progressed(rule, "UTC", { state: "Acknowledged", memory: {} }, hourly([8])).state).toBe("NotPresent");
  });

  test("a hold counts from the first point that wants the alarm, and begins again after one that does not", () => {
    const rule = ruleOf({ kind: "Above", set: 10 }, { holdMs: 2 * HOUR_MS });
    expect(changesOf(rule, [11, 11, 3, 11, 12, 13, 2])).toEqual([
      ["Present", 5, 13],
      ["NotPresent", 6, 2],
    ]);
  });

  test("a hold ends between Reset and Set, and not with a point that comes again", () => {
    const rule = ruleOf({ kind: "Above", set: 500, reset: 100 }, { holdMs: 2 * HOUR_MS });
    expect(changesOf(rule, [600, 200, 200, 200, 600, 600])).toEqual([]);
    const points = hourly([600, 600, 600]);
    const first = progressed(rule, "UTC", FRESH, points.slice(0, 2));
    expect(progressed(rule, "UTC", first, points.slice(1)).state).toBe("Present");
  });

  test("points outside of the schedule change nothing", () => {
    const rule = ruleOf({ kind: "Above", set: 10 }, { schedule: { from: "02:00", until: "04:00" } });
    expect(changesOf(rule, [11, 11, 11, 3, 11, 3])).toEqual([
      ["Present", 2, 11],
      ["NotPresent", 3, 3],
    ]);
  });

  test("the memory of judged points is small", () => {
    let memory: Memory = {};
    for (const point of hourly([1, 2, 3, 4]))
      ({ memory } = judgePoint(conditionOf({ kind: "Above", set: 9 }), memory, point));
    expect(Object.keys(memory).sort()).toEqual(["before", "last"]);
  });
});
