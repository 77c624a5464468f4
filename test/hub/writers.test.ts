/** Groups written to PostgreSQL leave what the same operations leave in SQLite, applied one by one. */

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { applyOperations } from "#hub/push/apply.ts";
import { ReadingColumns } from "#hub/store/columns.ts";
import type { IngestStore } from "#hub/store/ingest.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { temporaryDirectory, waitingOperation } from "./fixture.ts";
import { allPoints } from "./stored-points.ts";

const VARIABLES = 3;
const HORIZON = { byDefault: 1e14, byAccount: new Map<number, number>() };
const RETENTION = { byDefault: 2, byAccount: new Map<number, number>() };
const SCHEMA = "writers";

type StoreOptions = Parameters<typeof openStore>[0];
type Contents = Readonly<Record<"points" | "versions" | "outcomes", readonly object[]>>;

interface Opened {
  readonly store: HubStore;
  readonly ingest: IngestStore;
}

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let database: TestDatabase;
let postgres: Opened;

beforeAll(async () => {
  directory = await temporaryDirectory();
  database = await openTestDatabase();
  postgres = await open({
    kind: "postgres",
    url: database.url,
    schema: SCHEMA,
    pool: 2,
    connectTimeout: 5_000,
  });
});
afterAll(async () => {
  await close(postgres);
  await database.drop();
  await directory.remove();
});
beforeEach(empty);

/** An empty store with a versioned variable and two others. */
async function open(options: StoreOptions): Promise<Opened> {
  const store = await openStore(options);
  await store.identity.putAccount({ id: 1, name: "First" });
  const siteId = await store.structure.createSite(1, { name: "Site", typeId: 3, timeZoneId: "UTC" });
  const source = await store.structure.createSource(1, { name: "Source", siteId, sourceTypeId: 1 });
  const variable = { name: "Energy", sourceId: source?.id ?? 0, variableTypeId: 0, unitId: 8 };
  for (let index = 0; index < VARIABLES; index += 1)
    await store.structure.createVariable(1, { ...variable, isVersioned: index === 0 });
  return { store, ingest: await openIngestStore(options, RETENTION, systemClock) };
}

async function close({ store, ingest }: Opened): Promise<void> {
  await ingest.close();
  await store.close();
}

async function empty(): Promise<void> {
  const tables = ["point", "point_block", "point_version", "operation", "body", "outcome"];
  await database.query(`TRUNCATE ${tables.map((table) => `${SCHEMA}.${table}`).join(", ")}`);
}

/** Applies all elements, an operation each; `bytes`: of a group, `capacity`: readings in memory. */
async function apply(
  { store, ingest }: Opened,
  operations: readonly object[],
  bytes: number,
  capacity: number,
): Promise<void> {
  for (const [index, elements] of operations.entries())
    await store.operations.accept(waitingOperation(`op-${index}`, elements));
  const columns = new ReadingColumns(capacity);
  const parts = { discardsMax: 10, horizon: HORIZON, clock: systemClock, columns };
  for (let after = 0; ; ) {
    const group = await ingest.next(after, { readings: 1_000_000, bytes });
    if (group.length === 0) return;
    after = group.at(-1)?.seq ?? after;
    await ingest.apply(group, (...all) => applyOperations(...all, parts));
  }
}

const POINTS = "SELECT variable_id, at_ms, value, version, tags, batch_tags FROM";

async function ofPostgres(): Promise<Contents> {
  const rows = async (sql: string) =>
    (await database.query(sql)).map((row) =>
      "at_ms" in row ? { ...row, at_ms: Number(row["at_ms"]), variable_id: Number(row["variable_id"]) } : row,
    );
  return {
    points: allPoints(
      await rows(`${POINTS} ${SCHEMA}.point`),
      await database.query(`SELECT * FROM ${SCHEMA}.point_block`),
    ),
    versions: await rows(`${POINTS} ${SCHEMA}.point_version ORDER BY variable_id, at_ms, version_us`),
    outcomes: await rows(`SELECT stored::float8, replaced::float8 FROM ${SCHEMA}.outcome ORDER BY seq`),
  };
}

function ofSqlite(path: string): Contents {
  const file = new DatabaseSync(path, { readOnly: true });
  const rows = (sql: string) => file.prepare(sql).all();
  const contents = {
    points: allPoints(rows(`${POINTS} point`), rows("SELECT * FROM point_block")),
    versions: rows(`${POINTS} point_version ORDER BY variable_id, at_ms, version_us`),
    outcomes: rows("SELECT stored, replaced FROM outcome ORDER BY seq"),
  };
  file.close();
  return contents;
}

const tag = fc.option(fc.constantFrom("a", 'b"\\,{}', "NULL", ""), { nil: undefined });
/** Few dates, so that many come again, on both sides of the ends of months and of the partitions by month. */
const date = fc
  .tuple(
    fc.constantFrom("0050-01-31", "1989-12-31", "1990-01-01", "2026-02-28", "2026-03-01", "2100-01-01"),
    fc.integer({ min: 0, max: 3 }),
  )
  .map(([day, hour]) => `${day}T0${hour}:00:00Z`);
const tags = fc.option(fc.constant({ note: 'said "no" \\ é' }), { nil: undefined });
const reading = fc.record({
  date,
  value: fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0),
  version: tag,
  tags,
});
const run = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 60 })).map(([from, count]) =>
  Array.from({ length: count }, (_, index) => ({
    date: new Date(Date.UTC(2026, 1, 28, 12) + (from + index) * 1_800_000).toISOString(),
    value: index,
  })),
);
const element = fc.record({
  variableId: fc.integer({ min: 1, max: VARIABLES }),
  version: tag,
  tags,
  data: fc.oneof(fc.array(reading, { maxLength: 12 }), run),
});

test("groups on PostgreSQL leave the points, versions and counts that operations applied one by one leave " +
  "on SQLite", async () => {
  let round = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(element, { maxLength: 4 }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 200 }),
      fc.constantFrom(1, 2_000, 1_000_000),
      async (operations, capacity, bytes) => {
        round += 1;
        const path = join(directory.path, `alone-${round}`);
        const alone = await open({ kind: "sqlite", path });
        await apply(alone, operations, 1, 1_000);
        await close(alone);
        await empty();
        await apply(postgres, operations, bytes, capacity);
        expect(await ofPostgres()).toEqual(ofSqlite(path));
      },
    ),
    { numRuns: 30 },
  );
}, 60_000);

const monthOf = (count: number, month: number) =>
  Array.from({ length: count }, (_, index) => ({
    date: new Date(Date.UTC(2026, month) + index * 60_000).toISOString(),
    value: index,
  }));
const partition = `${SCHEMA}.point_2026_06`;
const count = async () => (await database.query(`SELECT count(*)::int AS total FROM ${SCHEMA}.point`))[0]?.["total"];

test("a month whose partition an administrator dropped is created again, and its readings are stored", async () => {
  await apply(postgres, [[{ variableId: 2, data: monthOf(10, 5) }]], 1, 100);
  await database.query(`DROP TABLE ${partition}`);
  expect(await count()).toBe(0);
  // More than the server takes before it refuses.
  const many = 40_000;
  const tags = { kept: "as rows" };
  await apply(postgres, [[{ variableId: 2, tags, data: monthOf(many, 5) }]], 1, many);
  expect(await count()).toBe(many);
});

test("a partition that was detached keeps its name and its points, and the month gets another one", async () => {
  await apply(postgres, [[{ variableId: 2, data: monthOf(10, 5) }]], 1, 100);
  await database.query(`ALTER TABLE ${SCHEMA}.point DETACH PARTITION ${partition}`);
  const tags = { kept: "as rows" };
  await apply(postgres, [[{ variableId: 3, tags, data: monthOf(20, 5) }]], 1, 100);
  expect(await count()).toBe(20);
  expect(await database.query(`SELECT count(*)::int AS total FROM ${partition}`)).toEqual([{ total: 10 }]);
  await database.query(`DROP TABLE ${partition}, ${partition}_2`);
});

test("months that an administrator merged into one partition stay in it", async () => {
  await database.query(
    `CREATE TABLE ${SCHEMA}.point_2019 PARTITION OF ${SCHEMA}.point FOR VALUES FROM ` +
      `('${Date.UTC(2019, 0)}') TO ('${Date.UTC(2020, 0)}')`,
  );
  const data = [{ date: "2019-03-01T00:00:00Z", value: 1 }];
  await apply(postgres, [[{ variableId: 2, data }]], 1, 100);
  expect(await database.query(`SELECT count(*)::int AS total FROM ${SCHEMA}.point_2019`)).toEqual([{ total: 1 }]);
});

/** Serial numbers that many sources share, and sources without a variable; a second account has the same ones. */
async function addMeters({ store }: Opened): Promise<void> {
  await store.identity.putAccount({ id: 2, name: "Second" });
  for (const accountId of [2, 1]) {
    const siteId = await store.structure.createSite(accountId, { name: "Meters", typeId: 3, timeZoneId: "UTC" });
    for (let index = 0; index < 700; index += 1) {
      const serialNumber = index < 250 ? "SHARED" : `METER ${(index * 37) % 300}`;
      const body = { name: `Source ${index % 5}`, siteId, sourceTypeId: 1, serialNumber };
      const source = await store.structure.createSource(accountId, body);
      const variable = {
        name: "Energy",
        sourceId: source?.id ?? 0,
        unitId: 8,
        mappingConfig: index % 2 ? "kWh" : "m3",
      };
      if (index % 3 > 0) await store.structure.createVariable(accountId, { ...variable, variableTypeId: index % 2 });
    }
  }
}

const targets = ["METER 17", "SHARED", "Z", "", "A", ...Array.from({ length: 301 }, (_, at) => `METER ${at}`)].flatMap(
  (value) =>
    [
      { mappingConfig: "kWh", variableTypeId: undefined },
      { mappingConfig: "m3", variableTypeId: 0 },
      { mappingConfig: undefined, variableTypeId: 1 },
      { mappingConfig: "none", variableTypeId: undefined },
    ].map((more) => ({ by: "sourceSerialNumber" as const, value, ...more })),
);

async function found({ store, ingest }: Opened): Promise<readonly (number | undefined)[]> {
  const ids: (number | undefined)[] = [];
  await store.operations.accept(waitingOperation("targets", []));
  const group = await ingest.next(0, { readings: 1, bytes: 1 });
  const columns = new ReadingColumns(1);
  await ingest.apply(group, async (transaction, operations) => {
    for (const target of targets) ids.push((await transaction.findVariable(1, target))?.id);
    for (let index = 0; index < 5; index += 1)
      ids.push((await transaction.findVariable(1, { ...KWH, by: "sourceName", value: `Source ${index}` }))?.id);
    return await applyOperations(transaction, operations, {
      discardsMax: 10,
      horizon: HORIZON,
      clock: systemClock,
      columns,
    });
  });
  return ids;
}
const KWH = { mappingConfig: "kWh", variableTypeId: undefined };

test("each target finds the variable that it finds on SQLite, whose statements are for one target", async () => {
  const alone = await open({ kind: "sqlite", path: join(directory.path, "targets") });
  await addMeters(alone);
  await addMeters(postgres);
  const expected = await found(alone);
  await close(alone);
  expect(expected.filter((id) => id !== undefined).length).toBeGreaterThan(300);
  expect(await found(postgres)).toEqual(expected);
});
