/**
 * Two variables get the same points. Those of one are packed into blocks; those of the other have a tag, and so stay
 * rows. Whatever happens to them, both give the same answers.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RUN_MIN } from "#hub/store/blocks/plan.ts";
import { row, rows } from "#hub/store/database.ts";
import { openSeries } from "#hub/store/open.ts";
import type { OpenSeries, Span } from "#hub/store/quality/series.ts";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, type Query, startTestHub, type TestHub, until } from "../fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const ROUNDS = Number(process.env["HEADGATE_ROUNDS"] ?? 15);
const STEP_MS = 900_000;
const BEGIN_MS = Date.parse("2025-10-05T00:00:00Z");
const STEPS = 9_000;
const dateOf = (step: number, ms = 0) => new Date(BEGIN_MS + step * STEP_MS + ms).toISOString();
const storeOf = () => hub.inside().store as HubStore;

interface Twins {
  readonly packed: number;
  readonly plain: number;
}

async function createTwins(): Promise<Twins> {
  const { variableIds } = await createChain(hub, { zone: "Europe/Paris", variables: [{}, {}] });
  const [packed = 0, plain = 0] = variableIds;
  return { packed, plain };
}

interface Held {
  readonly rows: number;
  readonly blocks: number;
}

async function heldOf(variableId: number): Promise<Held> {
  let held: Held = { rows: 0, blocks: 0 };
  await storeOf().people.change(function* () {
    const rows = yield* row("SELECT count(*) AS total FROM point WHERE variable_id = ?", variableId);
    const blocks = yield* row("SELECT count(*) AS total FROM point_block WHERE variable_id = ?", variableId);
    held = { rows: Number(rows?.["total"]), blocks: Number(blocks?.["total"]) };
  });
  return held;
}

/** Blocks follow each other, and no row is between the dates of one. */
async function expectApart(variableId: number): Promise<void> {
  await storeOf().people.change(function* () {
    const blocks = yield* rows(
      "SELECT first_ms, last_ms FROM point_block WHERE variable_id = ? ORDER BY first_ms",
      variableId,
    );
    let endMs = Number.NEGATIVE_INFINITY;
    for (const block of blocks) {
      const [firstMs, lastMs] = [Number(block["first_ms"]), Number(block["last_ms"])];
      expect(firstMs).toBeGreaterThan(endMs);
      const between = "SELECT count(*) AS total FROM point WHERE variable_id = ? AND at_ms BETWEEN ? AND ?";
      expect(Number((yield* row(between, variableId, firstMs, lastMs))?.["total"])).toBe(0);
      endMs = lastMs;
    }
  });
}

const value = fc.oneof(
  { arbitrary: fc.integer({ min: -1e6, max: 1e6 }).map((whole) => whole / 1_000), weight: 20 },
  { arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e12, max: 1e12 }), weight: 1 },
  { arbitrary: fc.constantFrom(-0, 5e-324, -1.5e300, 2 ** 53, 0.1 + 0.2), weight: 1 },
);
const span = fc.tuple(fc.nat(STEPS), fc.nat(STEPS)).map(([one, other]) => [Math.min(one, other), Math.max(one, other)]);
const step = fc.oneof(
  {
    arbitrary: fc.record({
      kind: fc.constant("run" as const),
      from: fc.nat(STEPS - 3_000),
      seed: fc.nat(),
      length: fc.oneof(fc.integer({ min: 1_000, max: 3_000 }), fc.integer({ min: 10, max: 200 })),
      ms: fc.constantFrom(0, 0, 1),
      again: fc.constantFrom(0, 0, 1, 300),
    }),
    weight: 4,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant("some" as const),
      from: fc.nat(STEPS),
      values: fc.array(value, { minLength: 1, maxLength: 400 }),
      ms: fc.constantFrom(0, 0, 1),
    }),
    weight: 3,
  },
  {
    // One push after the other.
    arbitrary: fc.record({
      kind: fc.constant("by and by" as const),
      from: fc.nat(STEPS),
      pushes: fc.array(fc.array(value, { minLength: 1, maxLength: 40 }), { minLength: 2, maxLength: 12 }),
      isBackwards: fc.boolean(),
    }),
    weight: 3,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant("newest again" as const),
      back: fc.nat(60),
      values: fc.array(value, { minLength: 1, maxLength: 80 }),
    }),
    weight: 2,
  },
  {
    arbitrary: fc.record({
      kind: fc.constant("labelled" as const),
      from: fc.nat(STEPS),
      values: fc.array(value, { minLength: 1, maxLength: 3 }),
    }),
    weight: 1,
  },
  { arbitrary: fc.record({ kind: fc.constant("remove" as const), span }), weight: 1 },
  { arbitrary: fc.constant({ kind: "restart" as const }), weight: 1 },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const query = fc.record({
  span: fc.option(span),
  PagingOrder: fc.constantFrom("ASC", "DESC"),
  shape: fc.oneof(
    fc.constant({}),
    fc.record({ PageNumber: fc.nat(6), ItemsPerPage: fc.constantFrom(1, 7, 600, 2_000) }).map((Paging) => ({ Paging })),
    fc.constantFrom("Hour", "Day", "Month", "All").map((Granularity) => ({
      Granularity,
      Aggregations: ["SUM", "COUNT", "MIN", "MAX"],
      TimeZoneId: "Europe/Paris",
    })),
    fc.constant({ VersionTag: "final" }),
  ),
});
const history = fc.array(fc.record({ step, queries: fc.array(query, { minLength: 1, maxLength: 3 }) }), {
  minLength: 2,
  maxLength: 7,
});

async function push({ packed, plain }: Twins, data: readonly object[], more: object = {}): Promise<void> {
  const outcome = await hub.push([{ variableId: packed, data, ...more }]);
  const other = await hub.push([{ variableId: plain, data, ...more, tags: { kept: "as a row" } }]);
  expect(outcome).toMatchObject({ stored: other.stored, replaced: other.replaced });
}

const NEWEST = { DisplayLevel: "ValueVariableDate", Paging: { PageNumber: 0, ItemsPerPage: 1 } };

async function perform(twins: Twins, one: Step): Promise<void> {
  if (one.kind === "restart") return hub.restart();
  if (one.kind === "remove") {
    const [from = 0, to = 0] = one.span;
    const period = { FromDateUtc: dateOf(from), ToDateUtc: dateOf(to) };
    const removed = [twins.packed, twins.plain].map((id) =>
      hub.ok("DELETE", "/data", { query: { VariableIds: [id], ...period } }),
    );
    const [first, second] = await Promise.all(removed);
    expect(textOf(first, twins)).toBe(textOf(second, twins));
    return;
  }
  if (one.kind === "run") {
    const values = Array.from(
      { length: one.length },
      (_, index) => ((Math.imul(index + one.seed, 2_654_435_761) >>> 12) % 99_999) / 100,
    );
    const data = values.map((each, index) => ({ date: dateOf(one.from + index, one.ms), value: each }));
    // Some dates come twice in one push, not in order.
    return push(twins, [...data, ...data.slice(0, one.again).map((each) => ({ ...each, value: -1 }))]);
  }
  if (one.kind === "by and by") {
    let at = one.from;
    for (const values of one.pushes) {
      const from = one.isBackwards ? at - values.length : at;
      await push(
        twins,
        values.map((each, index) => ({ date: dateOf(from + index), value: each })),
      );
      at = one.isBackwards ? from : from + values.length;
    }
    return;
  }
  if (one.kind === "newest again") {
    const newest = await hub.post("/data", { VariableIds: [twins.plain], PagingOrder: "DESC", ...NEWEST });
    const beginMs = newest.length === 0 ? BEGIN_MS : Date.parse(newest[0].date);
    const step = (index: number) => new Date(beginMs + (index - one.back) * STEP_MS).toISOString();
    return push(
      twins,
      one.values.map((each, index) => ({ date: step(index), value: each })),
    );
  }
  if (one.kind === "some")
    return push(
      twins,
      one.values.map((each, index) => ({ date: dateOf(one.from + index, one.ms), value: each })),
    );
  return push(
    twins,
    one.values.map((each, index) => ({ date: dateOf(one.from + index), value: each })),
    { version: "final" },
  );
}

function textOf(answer: unknown, { packed, plain }: Twins): string {
  return JSON.stringify(answer, (name, held) =>
    /^(tags|batchTags)$/i.test(name)
      ? undefined
      : /variableId/i.test(name) && (held === packed || held === plain)
        ? 0
        : held,
  );
}

async function answerOf(
  variableId: number,
  { span: bounds, shape, PagingOrder }: typeof query extends fc.Arbitrary<infer Value> ? Value : never,
) {
  const [from = 0, to = 0] = bounds ?? [];
  const period: Query = bounds === null ? {} : { From: dateOf(from), To: dateOf(to) };
  return await hub.post("/data", {
    ...period,
    ...shape,
    PagingOrder,
    DisplayLevel: "ValueVariableDate",
    VariableIds: [variableId],
  });
}

/** What reports of quality, removals and alarms ask. */
async function factsOf(id: number, series: OpenSeries, { fromMs, untilMs }: Span): Promise<object> {
  const { points } = storeOf();
  const samples: (readonly [number, number | undefined])[] = [];
  for await (const { atMs, values } of series.read(id, { fromMs, untilMs }))
    for (const [index, ms] of atMs.entries()) samples.push([ms, values[index]]);
  return {
    first: await series.firstMs(id),
    next: await series.nextMs(id, { fromMs, untilMs }),
    newest: await series.newest(id, untilMs, 1_500),
    count: await series.count(id, { fromMs, untilMs }),
    tally: await series.tally(id, { fromMs, untilMs }, { phaseMs: BEGIN_MS, stepMs: 4 * STEP_MS }),
    samples,
    holding: await points.holding(id, fromMs, untilMs),
    all: await points.holding(id, null, null),
  };
}

async function countOf(id: number, { fromMs, untilMs }: Span): Promise<number> {
  const { points } = storeOf();
  const [variable] = await points.select(1, { ids: [id] });
  if (variable === undefined) throw new Error("the variable is stored");
  const page = { offset: 0, limit: null };
  return await points.count(variable, { fromMs, lastMs: untilMs, order: "ASC", page, view: { kind: "latest" } });
}

test("points of blocks give the answers of rows, over random histories", async () => {
  let blocks = 0;
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      const twins = await createTwins();
      for (const { step: one, queries } of steps) {
        await perform(twins, one);
        const series = openSeries(hub.options.store);
        for (const { span: bounds } of queries) {
          const [from = 0, to = STEPS] = bounds ?? [];
          const asked = { fromMs: BEGIN_MS + from * STEP_MS, untilMs: BEGIN_MS + to * STEP_MS };
          expect(await factsOf(twins.packed, series, asked)).toEqual(await factsOf(twins.plain, series, asked));
          expect(await countOf(twins.packed, asked)).toBe(await countOf(twins.plain, asked));
        }
        await series.close();
        for (const asked of queries)
          expect(textOf(await answerOf(twins.packed, asked), twins)).toBe(
            textOf(await answerOf(twins.plain, asked), twins),
          );
        for (const PagingOrder of ["ASC", "DESC"])
          for (const ItemsPerPage of [1, 3])
            for (const { span: bounds } of [{ span: null }, ...queries]) {
              const [from = 0, to = 0] = bounds ?? [];
              const period = bounds === null ? {} : { From: dateOf(from), To: dateOf(to) };
              const ids = { VariableIds: [twins.packed, twins.plain], DisplayLevel: "ValueVariableDate", PagingOrder };
              const heads = await hub.post("/data", { ...ids, ...period, Paging: { PageNumber: 0, ItemsPerPage } });
              const half = heads.length / 2;
              expect(textOf(heads.slice(0, half), twins)).toBe(textOf(heads.slice(half), twins));
            }
      }
      await expectApart(twins.packed);
      blocks += (await heldOf(twins.packed)).blocks;
      expect((await heldOf(twins.plain)).blocks).toBe(0);
    }),
    { numRuns: ROUNDS },
  );
  expect(blocks).toBeGreaterThan(10);
}, 600_000);

test("who reads while blocks become rows and rows blocks sees each point once", async () => {
  const { packed } = await createTwins();
  const data = Array.from({ length: 4_000 }, (_, index) => ({ date: dateOf(index), value: 1 }));
  await hub.push([{ variableId: packed, data }]);
  let isCorrecting = true;
  const correct = async () => {
    for (let round = 0; round < 15; round += 1) {
      // A point with a tag makes rows of its block, of which nearly all are packed again.
      const tags = { kept: "as a row" };
      await hub.push([{ variableId: packed, data: [{ date: dateOf(250 * round), value: 1, tags }] }]);
      await until(async () => ((await heldOf(packed)).rows < RUN_MIN ? true : undefined));
      await hub.push([{ variableId: packed, data: [{ date: dateOf(250 * round), value: 1 }] }]);
    }
    isCorrecting = false;
  };
  let reads = 0;
  const ask = { VariableIds: [packed], DisplayLevel: "ValueVariableDate" };
  const read = async () => {
    for (; isCorrecting; reads += 1) {
      expect(await hub.post("/data", ask)).toHaveLength(4_000);
      const all = await hub.post("/data", { ...ask, Granularity: "All", Aggregations: ["COUNT"] });
      expect(all[0].countValue).toBe(4_000);
    }
  };
  await Promise.all([correct(), read()]);
  expect(reads).toBeGreaterThan(3);
});

test("a corrected point, its origin and the reports of quality are those of a row", async () => {
  const twins = await createTwins();
  const data = Array.from({ length: 4_000 }, (_, index) => ({ date: dateOf(index), value: index / 10 }));
  await push(twins, data);
  expect((await heldOf(twins.packed)).blocks).toBe(4);
  expect((await heldOf(twins.packed)).rows).toBe(0);
  const originOf = async (variableId: number, at: number) => {
    const [origin] = await hub.get("/data/origin", { VariableId: variableId, Date: dateOf(at) });
    return {
      value: origin.value,
      receivedAt: typeof origin.receivedAt,
      user: origin.user,
      operation: origin.operationId,
    };
  };
  const before = await originOf(twins.packed, 1_500);
  expect(before).toMatchObject({ value: 150, user: expect.any(String) });
  await hub.push([{ variableId: twins.packed, data: [{ date: dateOf(1_500), value: 7 }] }], {
    query: { operationId: "late" },
  });
  expect(await originOf(twins.packed, 1_500)).toMatchObject({ value: 7, operation: "late" });
  // An equal value does not change where the point came from.
  await hub.push([{ variableId: twins.packed, data: [{ date: dateOf(1_501), value: 150.1 }] }], {
    query: { operationId: "repeat" },
  });
  expect((await originOf(twins.packed, 1_501)).operation).toBe(before.operation);
  // A point with a tag makes rows of its block, which is packed again.
  await hub.push([{ variableId: twins.packed, data: [{ date: dateOf(1_400), value: 7, tags: { a: "b" } }] }]);
  await until(async () => ((await heldOf(twins.packed)).rows === 1 ? true : undefined));
  expect(await originOf(twins.packed, 1_500)).toMatchObject({ value: 7, operation: "late" });
  expect(await originOf(twins.packed, 1_501)).toEqual(
    before.operation === "" ? undefined : { ...before, value: 150.1 },
  );
});

test("two blocks that became rows are not joined over the block between them", async () => {
  const { packed } = await createTwins();
  const data = Array.from({ length: 4_000 }, (_, index) => ({ date: dateOf(index), value: index }));
  await hub.push([{ variableId: packed, data }]);
  const more = { date: dateOf(100, 1), value: -1, tags: { a: "b" } };
  await hub.push([{ variableId: packed, data: [more, { date: dateOf(2_100), value: -2 }] }]);
  await until(async () => ((await heldOf(packed)).rows === 1 ? true : undefined));
  await expectApart(packed);
  const found = await hub.get("/data", { VariableId: packed });
  const expected = data.flatMap(({ value: each }) => (each === 100 ? [100, -1] : each === 2_100 ? [-2] : [each]));
  expect(found.map((one: { rawValue: number }) => one.rawValue)).toEqual(expected);
});

test.each(["ASC", "DESC"])(
  "more blocks than a chunk reads, with rows on both sides, come in order: %s",
  async (PagingOrder) => {
    const { packed } = await createTwins();
    const run = Array.from({ length: 13_000 }, (_, index) => ({ date: dateOf(500 + index), value: 500 + index }));
    await hub.push([{ variableId: packed, data: run }]);
    const early = Array.from({ length: 100 }, (_, index) => ({ date: dateOf(index), value: index }));
    await hub.push([{ variableId: packed, data: early }]);
    expect((await heldOf(packed)).blocks).toBeGreaterThan(8);
    const values = [...early, ...run].map(({ value: each }) => each);
    const expected = PagingOrder === "ASC" ? values : values.toReversed();
    const valuesOf = async (query: Query) =>
      (await hub.get("/data", { VariableId: packed, PagingOrder, ...query })).map(
        (one: { rawValue: number }) => one.rawValue,
      );
    expect(await valuesOf({})).toEqual(expected);
    const page = await hub.post("/data", {
      VariableIds: [packed],
      PagingOrder,
      Paging: { PageNumber: 2, ItemsPerPage: 6_000 },
    });
    expect(page.map((one: { rawValue: number }) => one.rawValue)).toEqual(expected.slice(12_000));
  },
);
