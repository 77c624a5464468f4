/** Points in blocks on PostgreSQL alone: hubs over one schema that write and pack one variable, and short pages. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { row } from "#hub/store/database.ts";
import { createPool } from "#hub/store/postgres/database.ts";
import { readHeads } from "#hub/store/postgres/points.ts";
import type { HubStore, PointStore } from "#hub/store/store.ts";
import { callsOf, createChain, type HubCalls, rawOptions, temporaryDirectory, usePostgres } from "../fixture.ts";

const STEP_MS = 900_000;
const BEGIN_MS = Date.UTC(2025, 9, 5);
const STEPS = 12_000;
const ROUNDS = 25;
const dateOf = (step: number) => new Date(BEGIN_MS + step * STEP_MS).toISOString();

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
const running: RunningHub[] = [];
beforeAll(async () => {
  await usePostgres();
  directory = await temporaryDirectory();
  for (let index = 0; index < 2; index += 1)
    running.push(await startHub(hubOptions.parse(rawOptions(directory.path)), { log }));
});
afterAll(async () => {
  for (const hub of running) await hub.close();
  await directory.remove();
});

/** The same numbers for the same seed. */
function numbersOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Dated {
  readonly date: string;
  readonly rawValue: number;
}

test("two hubs that write between each other's points lose and double none, and count what they replace", async () => {
  const [first, second] = running.map(({ url }) => callsOf(() => url)) as [HubCalls, HubCalls];
  const { variableIds } = await createChain(first, { variables: [{}] });
  const [variableId = 0] = variableIds;
  const stored = new Map<number, number>();
  let writing = 2;
  /** Each hub writes every second date; its next push follows the outcome of the one before. */
  const write = async (hub: HubCalls, parity: number) => {
    const number = numbersOf(parity + 7);
    for (let round = 0; round < ROUNDS; round += 1) {
      const isRun = round < 3 || number(3) === 0;
      const count = isRun ? 1_200 + number(1_500) : 1 + number(40);
      const from = number(STEPS / 2 - count) * 2 + parity;
      const steps = Array.from({ length: count }, (_, index) => from + 2 * index);
      const replaced = steps.filter((step) => stored.has(step)).length;
      const data = steps.map((step) => ({ date: dateOf(step), value: round * 100_000 + step }));
      expect(await hub.push([{ variableId, data }])).toMatchObject({ stored: count, replaced });
      for (const step of steps) stored.set(step, round * 100_000 + step);
    }
    writing -= 1;
  };
  let reads = 0;
  const read = async (hub: HubCalls, PagingOrder: "ASC" | "DESC") => {
    for (; writing > 0; reads += 1) {
      const known = [...stored.keys()];
      const ask = { VariableIds: [variableId], DisplayLevel: "ValueVariableDate", PagingOrder };
      const found: Dated[] = await hub.post("/data", ask);
      const dates = found.map(({ date }) => Temporal.Instant.from(date).epochMilliseconds);
      const ascending = [...new Set(dates)].sort((one, other) => one - other);
      expect(dates).toEqual(PagingOrder === "ASC" ? ascending : ascending.reverse());
      expect(dates.length).toBeGreaterThanOrEqual(known.length);
    }
  };
  await Promise.all([write(first, 0), write(second, 1), read(first, "DESC"), read(second, "ASC")]);
  const expected = [...stored].sort(([one], [other]) => one - other).map(([, value]) => value);
  for (const hub of [first, second]) {
    const found: Dated[] = await hub.get("/data", { VariableId: variableId });
    expect(found.map(({ rawValue }) => rawValue)).toEqual(expected);
  }
  let blocks = 0;
  const [{ inside }] = running as [RunningHub];
  await (inside.store as HubStore).people.change(function* () {
    const found = yield* row("SELECT count(*) AS total FROM point_block WHERE variable_id = ?", variableId);
    blocks = Number(found?.["total"]);
  });
  expect(blocks).toBeGreaterThan(3);
  expect(reads).toBeGreaterThan(3);
});

test("the first and the newest points of many variables in blocks are read by few statements", async () => {
  const [hub] = running as [RunningHub];
  const calls = callsOf(() => hub.url);
  const { variableIds } = await createChain(calls, { variables: Array.from({ length: 205 }, () => ({})) });
  // Two blocks, and some rows.
  const data = Array.from({ length: 1_610 }, (_, step) => ({ date: dateOf(step), value: step }));
  for (const part of [data.slice(0, 1_600), data.slice(1_600)])
    await calls.push(variableIds.map((variableId) => ({ variableId, data: part })));
  const { store } = hubOptions.parse(rawOptions(directory.path));
  if (store.kind !== "postgres") throw new Error("the store is on PostgreSQL");
  const { points } = hub.inside.store as HubStore;
  const variables = await points.select(1, { ids: variableIds });
  const pool = createPool(store, { max: 1 });
  let reads = 0;
  const read: PointStore["read"] = (...given) => {
    reads += 1;
    return points.read(...given);
  };
  const valuesOf = async (order: "ASC" | "DESC", fromStep: number, lastStep: number, limit: number) => {
    const [fromMs, lastMs] = [BEGIN_MS + fromStep * STEP_MS, BEGIN_MS + lastStep * STEP_MS];
    const page = { order, page: { offset: 1, limit }, view: { kind: "latest" }, labels: false } as const;
    const asks = variables.map((variable) => ({ variable, fromMs, lastMs }));
    const found = await readHeads({ pool, read }, asks, page);
    expect(new Set(found.map((one) => JSON.stringify(one.map(({ value }) => value)))).size).toBe(1);
    return found[0]?.map(({ value }) => value);
  };
  expect(await valuesOf("ASC", 0, 2_000, 3)).toEqual([1, 2, 3]);
  expect(await valuesOf("DESC", 0, 700, 3)).toEqual([699, 698, 697]);
  // Rows and a block.
  expect(await valuesOf("DESC", 1_595, 1_601, 5)).toEqual([1_600, 1_599, 1_598, 1_597, 1_596]);
  expect(await valuesOf("ASC", 900, 901, 4)).toEqual([901]);
  expect(reads).toBe(0);
  // Over the end of a block, after which there may be another one.
  expect(await valuesOf("ASC", 797, 2_000, 4)).toEqual([798, 799, 800, 801]);
  expect(await valuesOf("ASC", 1_597, 2_000, 4)).toEqual([1_598, 1_599, 1_600, 1_601]);
  expect(reads).toBe(2 * variables.length);
  await pool.end();
});
