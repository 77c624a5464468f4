/** What is computed in windows, or again after a change, is what the whole would be. */
import { expect, test } from "vitest";
import type { InputVariable } from "#hub/calculated/engines/engine.ts";
import { checkExpression } from "#hub/calculated/engines/expressions/check.ts";
import type { Reach } from "#hub/calculated/engines/expressions/series-functions.ts";
import {
  affectedBy,
  type DirectedSteps,
  type InputReach,
  type Interval,
  type PointSteps,
  seenDates,
} from "#hub/calculated/recalculation/reach.ts";
import { chanceOf } from "../../../../e2e/chance.ts";
import { hourly, run } from "./inputs.ts";

const ZONE = "Europe/Brussels";
/** Around a change of the clocks. */
const BEGIN = Date.UTC(2026, 2, 25);
const DAYS = 8;
const QUARTER = 900_000;

const FORMULAS = [
  "a + b",
  "coalesce(a, 0) - coalesce(b, 1)",
  "consumption(a, 100) + b",
  "previous(previous(a)) * b",
  "delta(a) / b",
  "rate(a) - rate(b)",
  "hold(a) + b",
  "hold(a, 3) + hold(b)",
  "hold(previous(a)) - b",
  'aggregate(a, "Day", "SUM")',
  'aggregate(a, "Hour", "AVG") + hold(b)',
  'a / hold(aggregate(a, "Day", "MAX"))',
  'hold(previous(aggregate(a, "Day", "COUNT"))) + b',
  'previous(aggregate(a, "Hour", "SUM")) + hold(aggregate(b, "Day", "MIN"))',
  'aggregate(delta(a), "Hour", "SUM")',
  'cumulative(delta(a), "Day") + cumulative(b, "Month")',
  "exists(a) + coalesce(hold(b, 2), 9)",
  "if(a > 50, delta(a), hold(b))",
];

type Points = ReadonlyMap<number, number>;

const inputReach = ({ points, granularities }: Reach): InputReach => ({
  granularity: "Raw",
  collected: granularities,
  period: { kind: "window" },
  points,
});

const directed = (beyond: (ms: number) => readonly number[]): DirectedSteps => ({
  nth: async (ms, count) => beyond(ms)[count - 1] ?? null,
  next: async (ms, limit) => beyond(ms).slice(0, limit),
});

function stepsOf(points: Points): PointSteps {
  const dates = [...points.keys()].sort((one, other) => one - other);
  return {
    after: directed((ms) => dates.filter((at) => at > ms)),
    before: directed((ms) => dates.filter((at) => at < ms).reverse()),
  };
}

function inputOf(alias: string, points: Points, seen: { fromMs: number | null; toMs: number | null }): InputVariable {
  const rows = [...points]
    .filter(([ms]) => ms >= (seen.fromMs ?? ms) && ms <= (seen.toMs ?? ms))
    .sort(([one], [other]) => one - other);
  return {
    ...hourly(alias, []),
    atMs: Float64Array.from(rows, ([ms]) => ms),
    values: Float64Array.from(rows, ([, value]) => value),
  };
}

async function outputs(formula: string, variables: readonly InputVariable[], window: Interval): Promise<Points> {
  const result = await run(formula, { variables, window, zone: ZONE });
  if (result.kind === "failed") throw new Error(result.message);
  return new Map(Array.from(result.atMs, (ms, at) => [ms, result.values[at] ?? Number.NaN]));
}

const ALWAYS = { fromMs: -8.64e15, toMs: 8.64e15 };

test.each(FORMULAS)("%s", async (formula) => {
  const chance = chanceOf(formula.length * 7_919);
  const within = (end: number) => Math.trunc(chance() * end);
  const random = (share: number): Map<number, number> => {
    const points = new Map<number, number>();
    for (let nth = 0; nth < DAYS * 96; nth += 1) {
      const ms = BEGIN + nth * QUARTER;
      // Days without a point are among them.
      if (Math.trunc(nth / 96) % 4 !== 2 && chance() < share) points.set(ms, within(100));
    }
    return points;
  };
  const all = { a: random(0.3), b: random(0.1) };
  const symbols = [
    { name: "a", kind: "variable" as const },
    { name: "b", kind: "variable" as const },
  ];
  const { reach, faults } = await checkExpression(formula, symbols);
  expect(faults).toEqual([]);
  const whole = async (points: typeof all) =>
    outputs(formula, [inputOf("a", points.a, ALWAYS), inputOf("b", points.b, ALWAYS)], ALWAYS);
  const before = await whole(all);
  expect(before.size).toBeGreaterThan(4);

  for (let round = 0; round < 12; round += 1) {
    const fromMs = BEGIN + within(DAYS * 96) * QUARTER;
    const window = { fromMs, toMs: fromMs + within(3 * 96) * QUARTER };
    const variables: InputVariable[] = [];
    for (const [alias, of] of reach) {
      const points = alias === "a" ? all.a : all.b;
      const seen = await seenDates(inputReach(of), window, ZONE, stepsOf(points));
      variables.push(inputOf(alias, points, seen));
    }
    const cut = [...before].filter(([ms]) => ms >= window.fromMs && ms <= window.toMs);
    expect([...(await outputs(formula, variables, window))], `window of round ${round}`).toEqual(cut);
  }

  for (let round = 0; round < 12; round += 1) {
    const alias = chance() < 0.5 && reach.has("a") ? "a" : ([...reach.keys()].at(-1) ?? "a");
    const changed = { a: new Map(all.a), b: new Map(all.b) };
    const points = alias === "a" ? changed.a : changed.b;
    const ms = BEGIN + within(DAYS * 96) * QUARTER;
    points.set(ms, 1_000 + within(50));
    const after = await whole(changed);
    const different = [...new Set([...before.keys(), ...after.keys()])].filter(
      (at) => before.get(at) !== after.get(at),
    );
    const terms = { zone: ZONE, extent: { fromMs: BEGIN, toMs: BEGIN + DAYS * 96 * QUARTER }, steps: stepsOf(points) };
    const of = reach.get(alias);
    const affected = of && (await affectedBy(inputReach(of), { fromMs: ms, toMs: ms }, terms));
    const missed = different.filter((at) => !affected || at < affected.fromMs || at > affected.toMs);
    expect(
      missed.map((at) => new Date(at).toISOString()),
      `change of ${alias} at ${new Date(ms).toISOString()}`,
    ).toEqual([]);
  }
});
