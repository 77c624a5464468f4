/** When rows become blocks, and when they must not. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Packing, packRows } from "#hub/store/blocks/pack.ts";
import { RUN_MIN } from "#hub/store/blocks/plan.ts";
import { change, type Database, row, rows, type Steps } from "#hub/store/database.ts";
import { POSTGRES } from "#hub/store/postgres/dialect.ts";
import { SQLITE } from "#hub/store/sqlite/dialect.ts";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub, until } from "../fixture.ts";

const STEP_MS = 900_000;
const BEGIN_MS = Date.parse("2025-10-05T00:00:00Z");
const FAR_MS = 8_640_000_000_000_000;

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const readings = (from: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({
    date: new Date(BEGIN_MS + (from + index) * STEP_MS).toISOString(),
    value: from + index,
  }));

async function inWrite<T>(work: () => Steps<T>): Promise<T> {
  const results: T[] = [];
  await (hub.inside().store as HubStore).people.change(function* () {
    results.splice(0, results.length, yield* work());
  });
  return results[0] as T;
}

/** As the thread of ingestion does it: no hub writes points of the account meanwhile. */
function* packHeld(variableId: number, afterMs: number): Steps<number | null> {
  yield* dialectOf().holdVariable(variableId);
  return yield* packRows(variableId, afterMs);
}

const dialectOf = () => (hub.options.store.kind === "postgres" ? POSTGRES : SQLITE);

const rowsOf = (variableId: number) =>
  inWrite(function* () {
    const found = yield* row("SELECT count(*) AS total FROM point WHERE variable_id = ?", variableId);
    return Number(found?.["total"]);
  });

const blocksOf = (variableId: number) =>
  inWrite(function* () {
    const found = yield* row("SELECT count(*) AS total FROM point_block WHERE variable_id = ?", variableId);
    return Number(found?.["total"]);
  });

const valuesOf = async (variableId: number) =>
  (await hub.get("/data", { VariableId: variableId })).map((one: { rawValue: number }) => one.rawValue);

test("points of a variable that has versions meanwhile stay rows, where its reads find them", async () => {
  const { variableIds } = await createChain(hub, { variables: [{ isVersioned: true }] });
  const [variableId = 0] = variableIds;
  const data = readings(0, 1_500);
  await hub.push([{ variableId, data }]);
  // A hub had found it due before its points were removed and its versions switched on.
  expect(await inWrite(() => packHeld(variableId, -FAR_MS))).toBe(null);
  expect(await rowsOf(variableId)).toBe(1_500);
  expect(await valuesOf(variableId)).toEqual(data.map(({ value }) => value));
});

/** The points of a variable as rows that the hub does not know to be due. */
async function createRows(count: number): Promise<number> {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const [variableId = 0] = variableIds;
  await hub.push([{ variableId, data: readings(0, count), tags: { kept: "as rows" } }]);
  await inWrite(() => change("UPDATE point SET tags = NULL, batch_tags = NULL WHERE variable_id = ?", variableId));
  return variableId;
}

test.each(["ASC", "DESC"] as const)(
  "a read between whose chunks rows become blocks and blocks rows gives each point once: %s",
  async (order) => {
    const variableId = await createRows(30_000);
    const { points } = hub.inside().store as HubStore;
    const [variable] = await points.select(1, { ids: [variableId] });
    if (variable === undefined) throw new Error("the variable is stored");
    const found: number[] = [];
    let chunks = 0;
    const view = { kind: "latest" } as const;
    const range = { fromMs: null, lastMs: null, order, page: { offset: 3, limit: 29_000 }, labels: false, view };
    for await (const chunk of points.read(variable, range)) {
      found.push(...chunk.map(({ value }) => value));
      chunks += 1;
      // Packed after odd chunks; what was packed around the place of the reader becomes rows after even ones.
      if (chunks % 2 === 1)
        for (let after: number | null = -FAR_MS; after !== null; ) {
          const from: number = after;
          after = await inWrite(() => packHeld(variableId, from));
        }
      else {
        const places = [-700, -1, 1, 700, 1_700].map((by) => (found.at(-1) ?? 0) + by);
        const known = places.filter((place) => place >= 0 && place < 30_000);
        await hub.push([{ variableId, data: known.flatMap((place) => readings(place, 1)) }]);
      }
    }
    expect(chunks).toBeGreaterThan(3);
    const all = Array.from({ length: 30_000 }, (_, value) => value);
    expect(found).toEqual((order === "ASC" ? all : all.toReversed()).slice(3, 29_003));
  },
);

test("points that come by and by wait as few rows until they continue the block before them", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const [variableId = 0] = variableIds;
  const data = readings(0, 400);
  for (let from = 0; from < data.length; from += 5) {
    await hub.push([{ variableId, data: data.slice(from, from + 5) }]);
    expect(await rowsOf(variableId)).toBeLessThan(RUN_MIN);
  }
  expect(await blocksOf(variableId)).toBe(1);
  expect(await valuesOf(variableId)).toEqual(data.map(({ value }) => value));
});

test("a block that is full is continued by another one", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const [variableId = 0] = variableIds;
  const data = readings(0, 2_600);
  for (let from = 0; from < data.length; from += 100)
    await hub.push([{ variableId, data: data.slice(from, from + 100) }]);
  expect(await rowsOf(variableId)).toBe(0);
  expect(await blocksOf(variableId)).toBe(3);
  expect(await valuesOf(variableId)).toEqual(data.map(({ value }) => value));
});

test("a file that is sent again writes no block again", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const [variableId = 0] = variableIds;
  const data = readings(0, 3_000);
  await hub.push([{ variableId, data }]);
  // A row that is written again has another place on PostgreSQL.
  const place = dialectOf() === POSTGRES ? "ctid" : "rowid";
  const sql = `SELECT ${place} AS place, first_ms, data FROM point_block WHERE variable_id = ? ORDER BY first_ms`;
  const written = () => inWrite(() => rows(sql, variableId));
  const before = await written();
  expect(await hub.push([{ variableId, data }])).toMatchObject({ stored: 3_000, replaced: 3_000 });
  expect(await written()).toEqual(before);
  const [corrected] = readings(1_500, 1);
  await hub.push([{ variableId, data: [{ ...corrected, value: -1 }] }]);
  const after = await written();
  expect(after.filter((_, index) => JSON.stringify(after[index]) !== JSON.stringify(before[index]))).toHaveLength(1);
});

test("rows that could not be packed while the store was in trouble are packed later", async () => {
  const { variableIds } = await createChain(hub, { variables: [{}] });
  const [variableId = 0] = variableIds;
  const data = readings(0, 1_000);
  // The hub itself does not know of them: it creates the partition.
  await hub.push([{ variableId, data: data.slice(0, 1), tags: { kept: "as a row" } }]);
  await inWrite(function* () {
    yield* change("UPDATE point SET tags = NULL, batch_tags = NULL WHERE variable_id = ?", variableId);
    for (const { date, value } of data.slice(1))
      yield* change(
        "INSERT INTO point (variable_id, at_ms, value, origin_id) VALUES (?, ?, ?, 1)",
        ...[variableId, Date.parse(date), value],
      );
  });
  let isFull = true;
  const database: Database = {
    dialect: dialectOf(),
    ask: inWrite,
    askApart: (_, work) => inWrite(work),
    snapshot: inWrite,
    run: () => Promise.reject(new Error("no statement of its own is expected")),
    write: async (work) => {
      if (isFull) throw Object.assign(new Error("database or disk is full"), { errcode: 13, code: "ERR_SQLITE_ERROR" });
      return await inWrite(work);
    },
  };
  const packing = new Packing(database);
  packing.opened(variableId, BEGIN_MS);
  await expect(packing.next()).rejects.toThrow("full");
  expect(await rowsOf(variableId)).toBe(1_000);
  isFull = false;
  await packing.next();
  expect(await rowsOf(variableId)).toBe(0);
  expect(await valuesOf(variableId)).toEqual(data.map(({ value }) => value));
});

test("rows that a hub left behind are packed after the next start, and read as before", async () => {
  const variableId = await createRows(5_000);
  const tagged = 'UPDATE point SET tags = \'{"a":"b"}\' WHERE variable_id = ? AND value BETWEEN 2000 AND 2499';
  await inWrite(() => change(tagged, variableId));
  const before = await valuesOf(variableId);
  await hub.restart();
  // 500 with tags stay rows.
  await until(async () => ((await rowsOf(variableId)) === 500 ? true : undefined));
  expect(await blocksOf(variableId)).toBeGreaterThan(4);
  expect(await valuesOf(variableId)).toEqual(before);
});
