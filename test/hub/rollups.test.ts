/** Aggregates that come from rollups are those of the points, whatever happened to these. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildRollups } from "#hub/data/rollups/builder.ts";
import { change, row } from "#hub/store/database.ts";
import type { HubStore } from "#hub/store/store.ts";
import { type DataRow, dataRows } from "#wire/index.ts";
import { createChain, type Query, startTestHub, type TestHub, until } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const STEP_MS = 3_600_000;
/** Of both changes of the clocks and the end of a year, in most zones. */
const BEGIN_MS = Date.parse("2025-10-05T00:00:00Z");
const STEPS = 24 * 190;
const MONTHS = 7;
const ZONES = ["Europe/Paris", "America/Havana", "Australia/Lord_Howe", "UTC"];
const AGGREGATIONS = ["SUM", "MIN", "MAX", "AVG", "COUNT"];

const storeOf = () => hub.inside().store as HubStore;
const dateOf = (step: number) => new Date(BEGIN_MS + step * STEP_MS).toISOString();

async function rollupsOf(variableId: number): Promise<number> {
  let total = 0;
  await storeOf().people.change(function* () {
    const found = yield* row("SELECT count(*) AS total FROM rollup WHERE variable_id = ?", variableId);
    total = Number(found?.["total"]);
  });
  return total;
}

async function answerOf(variableId: number, query: Query, aggregations = AGGREGATIONS): Promise<DataRow[]> {
  const shape = { Granularity: "Month", Aggregations: aggregations, DisplayLevel: "ValueVariableDate" };
  return dataRows.parse(await hub.get("/data", { ...shape, ...query, VariableId: variableId }));
}

/** A variance needs the points themselves. */
async function answerOfPoints(variableId: number, query: Query): Promise<DataRow[]> {
  const rows = await answerOf(variableId, query, [...AGGREGATIONS, "VAR"]);
  return rows.map(({ varianceValue: _, ...others }) => others);
}

/** Sums of sums are rounded once more. */
function rounded(expected: DataRow[]): unknown[] {
  const near = (value: number) => ({
    asymmetricMatch: (actual: unknown) =>
      typeof actual === "number" && Math.abs(actual - value) <= Number.EPSILON * Math.abs(value) + 1e-17,
    toString: () => `${value}, or the next double`,
  });
  return expected.map((one) =>
    Object.fromEntries(
      Object.entries(one).map(([name, value]) => [name, /^(sum|avg)Value$/.test(name) ? near(Number(value)) : value]),
    ),
  );
}

async function createFilled(zone: string, isVersioned: boolean): Promise<number> {
  const { variableIds } = await createChain(hub, { zone, variables: [{ isVersioned }] });
  const [variableId = 0] = variableIds;
  const data = Array.from({ length: STEPS / 8 }, (_, index) => ({ date: dateOf(8 * index), value: index / 10 - 100 }));
  await hub.push([{ variableId, data }]);
  return variableId;
}

/** Until the months of both years are stored. */
async function rollUp(variableId: number, query: Query): Promise<void> {
  await answerOf(variableId, query);
  await until(async () => ((await rollupsOf(variableId)) >= MONTHS ? true : undefined));
}

const span = fc.tuple(fc.nat(STEPS), fc.nat(STEPS)).map(([one, other]) => [Math.min(one, other), Math.max(one, other)]);
const value = fc.oneof(
  { arbitrary: fc.double({ min: -1e6, max: 1e6, noNaN: true }), weight: 20 },
  { arbitrary: fc.constant(1e200), weight: 1 },
);
const step = fc.oneof(
  fc.record({
    kind: fc.constant("push" as const),
    from: fc.nat(STEPS),
    values: fc.array(value, { minLength: 1, maxLength: 40 }),
    version: fc.option(fc.constantFrom("draft", "final")),
  }),
  fc.record({ kind: fc.constant("remove" as const), span }),
  fc.record({ kind: fc.constant("restart" as const) }),
);
const query = fc.record({
  Granularity: fc.constantFrom("Day", "Week", "Month", "Year", "All"),
  zone: fc.constantFrom("site", "UTC"),
  span: fc.option(span),
  IncludeToBoundary: fc.boolean(),
  PagingOrder: fc.constantFrom("ASC", "DESC"),
});
const history = fc.record({
  zone: fc.constantFrom(...ZONES),
  isVersioned: fc.boolean(),
  steps: fc.array(fc.record({ step, queries: fc.array(query, { minLength: 2, maxLength: 4 }) }), { maxLength: 5 }),
});

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

async function perform(variableId: number, one: Step): Promise<void> {
  if (one.kind === "restart") return hub.restart();
  if (one.kind === "remove") {
    const [from = 0, to = 0] = one.span;
    const period = { FromDateUtc: dateOf(from), ToDateUtc: dateOf(to) };
    await hub.ok("DELETE", "/data", { query: { VariableIds: [variableId], ...period } });
    return;
  }
  const data = one.values.map((each, index) => ({ date: dateOf(one.from + index), value: each }));
  await hub.push([{ variableId, data, ...(one.version === null ? {} : { version: one.version }) }]);
}

test("aggregates from rollups are those of the points, over random histories", async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ zone, isVersioned, steps }) => {
      const variableId = await createFilled(zone, isVersioned);
      await rollUp(variableId, { UseReportingTimezone: true });
      await answerOf(variableId, { TimeZoneId: "UTC" });
      for (const { step: one, queries } of steps) {
        await perform(variableId, one);
        for (const { zone: asked, span: bounds, ...shape } of queries) {
          const [from = 0, to = 0] = bounds ?? [];
          const period = bounds === null ? {} : { From: dateOf(from), To: dateOf(to) };
          const zoned = asked === "site" ? { UseReportingTimezone: true } : { TimeZoneId: "UTC" };
          const whole = { ...shape, ...period, ...zoned };
          expect(await answerOf(variableId, whole)).toEqual(rounded(await answerOfPoints(variableId, whole)));
        }
      }
    }),
    { numRuns: 20 },
  );
});

test("a period that was read before is not read again from its points", async () => {
  const variableId = await createFilled("Europe/Paris", false);
  const query = { UseReportingTimezone: true };
  await rollUp(variableId, query);
  const before = await answerOf(variableId, query);
  // The day of the last point is read from points, since it may get more.
  const wholeDays = { ...query, To: "2026-04-01T00:00:00" };
  const known = await answerOf(variableId, wholeDays);
  expect(known.length).toBe(before.length - 1);
  await storeOf().people.change(() => change("DELETE FROM point WHERE variable_id = ?", variableId));
  expect(await answerOf(variableId, wholeDays)).toEqual(known);
});

test("rollups are not stored when a point changed while they were made", async () => {
  const variableId = await createFilled("Europe/Paris", false);
  const { points } = storeOf();
  const [variable] = await points.select(1, { ids: [variableId] });
  if (variable === undefined) throw new Error("the variable is stored");
  const asked = { variable, zone: "UTC", fromMs: BEGIN_MS, endMs: Date.parse("2026-01-01T00:00:00Z") };
  const push = (date: string) => hub.push([{ variableId, data: [{ date, value: 1 }] }]);
  const during = (work: () => Promise<unknown>) =>
    buildRollups(
      {
        ...points,
        async *pieces(of, range) {
          yield* points.pieces(of, range);
          await work();
        },
      },
      asked,
    );
  expect(await during(() => push("2025-12-31T23:00:00Z"))).toBe(false);
  expect(await during(() => points.remove(variableId, BEGIN_MS, BEGIN_MS + 1))).toBe(false);
  expect(await rollupsOf(variableId)).toBe(0);
  // Later points are not in them.
  expect(await during(() => push("2026-01-01T00:00:00Z"))).toBe(true);
  expect(await rollupsOf(variableId)).toBe(3);
});

test("rollups go with their variable", async () => {
  const variableId = await createFilled("Europe/Paris", false);
  await rollUp(variableId, { UseReportingTimezone: true });
  await hub.ok("DELETE", `/variables/${variableId}`, { query: { WithData: true } });
  expect(await rollupsOf(variableId)).toBe(0);
});
