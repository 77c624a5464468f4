/** Work of many rows lets others have their turn at the event loop. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countReadings } from "#hub/push/routes.ts";
import { DUE_RECEIVERS } from "#hub/store/operation-rows.ts";
import type { PointRange } from "#hub/store/records.ts";
import { OPENED_BY } from "#hub/store/sessions/sessions.ts";
import { openDatabase, statements, write } from "#hub/store/sqlite/database.ts";
import { SQLITE } from "#hub/store/sqlite/dialect.ts";
import { sqliteDatabase } from "#hub/store/sqlite/driver.ts";
import { createPointStore } from "#hub/store/sqlite/points.ts";
import { Where } from "#hub/store/where.ts";
import { temporaryDirectory } from "./fixture.ts";
import { variableFacts } from "./variable-facts.ts";

/** How often others had their turn meanwhile. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next: NodeJS.Immediate;
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  next = setImmediate(count);
  await work();
  clearImmediate(next);
  return turns;
}

test.each([
  ['{"data":[]}', 1_500_000],
  ['{"DATA":[]}', 200_000],
])("a body of many elements is checked in turns, also when it has no readings: %s", async (element, length) => {
  const body = Buffer.from(`[${Array.from({ length }, () => element).join(",")}]`);
  expect(await turnsOf(() => countReadings(body))).toBeGreaterThanOrEqual(15);
});

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let database: ReturnType<typeof openDatabase>;
beforeAll(async () => {
  directory = await temporaryDirectory();
  database = openDatabase({
    path: join(directory.path, "hub.sqlite"),
    migrations: "migrations",
    timeoutMs: 20,
  });
  database.exec(`WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 49999)
    INSERT INTO point (variable_id, at_ms, value, origin_id) SELECT 1, i * 1000, i, 1 FROM n`);
});
afterAll(async () => {
  database.close();
  await directory.remove();
});
function storeOf(file: typeof database) {
  const tools = statements(file);
  return createPointStore(
    tools,
    sqliteDatabase(tools, (work) => write(file, work)),
  );
}
const WHOLE: PointRange = {
  fromMs: null,
  lastMs: null,
  order: "ASC",
  page: { offset: 0, limit: null },
  view: { kind: "latest" },
};

test("points of SQLite are read, counted and summed up in turns", async () => {
  const points = storeOf(database);
  let read = 0;
  const reading = async () => {
    for await (const chunk of points.read(variableFacts(1), WHOLE)) read += chunk.length;
  };
  expect(await turnsOf(reading)).toBeGreaterThanOrEqual(9);
  expect(read).toBe(50_000);
  expect(await turnsOf(() => points.count(variableFacts(1), WHOLE))).toBeGreaterThanOrEqual(1);
  expect(await turnsOf(() => points.holding(1, null, null))).toBeGreaterThanOrEqual(1);
});

test("a thousand variables without points are looked up in turns", async () => {
  const points = storeOf(database);
  const reading = async () => {
    for (let id = 2; id < 1_002; id += 1)
      for await (const chunk of points.read(variableFacts(id), WHOLE)) expect(chunk).toEqual([]);
  };
  expect(await turnsOf(reading)).toBeGreaterThanOrEqual(15);
});

test("each receiver of outcomes is found by its account and host, without reading all hosts of the account", () => {
  const queue = openDatabase({
    path: join(directory.path, "hub.sqlite.queue"),
    migrations: "intake-migrations",
    timeoutMs: 20,
  });
  try {
    const plan = queue.prepare(`EXPLAIN QUERY PLAN ${DUE_RECEIVERS} SELECT * FROM at`).all();
    expect(plan.map((step) => step["detail"]).join("\n")).toContain("(account_id=? AND webhook_host>?)");
  } finally {
    queue.close();
  }
});

test("sessions that a person opened are found without those of others being read", () => {
  const steps = database.prepare(`EXPLAIN QUERY PLAN SELECT * FROM session WHERE ${OPENED_BY}`).all(1);
  expect(steps.map(({ detail }) => detail)).toEqual(["SEARCH session USING INDEX session_by_opener (<expr>=?)"]);
});

describe("an account with many variables", () => {
  const MANY = 20_000;
  beforeAll(() => {
    database.exec(`INSERT INTO account (id, name) VALUES (1, 'First');
      INSERT INTO site (id, account_id, name, type_id, time_zone_id) VALUES (1, 1, 'Site', 3, 'UTC');
      INSERT INTO source (id, account_id, site_id, name, source_type_id, tags) VALUES (1, 1, 1, 'Source', 1, '[]');
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY})
        INSERT INTO variable (id, account_id, source_id, name, variable_type_id, unit_id, tags)
        SELECT i, 1, 1, 'Variable', 0, 8, '[]' FROM n`);
  });

  test("has them read in turns, in their order", async () => {
    let found: readonly { readonly id: number }[] = [];
    const read = async () => {
      found = await storeOf(database).select(1, {});
    };
    expect(await turnsOf(read)).toBeGreaterThanOrEqual(9);
    expect(found.map(({ id }) => id)).toEqual(Array.from({ length: MANY }, (_, nth) => nth + 1));
  });

  test.each([
    ["id", "SEARCH variable USING INTEGER PRIMARY KEY (rowid=?)"],
    ["source_id", "SEARCH variable USING INDEX variable_by_source (source_id=?)"],
  ])("has one found by its %s without the others being read", (column, search) => {
    const where = new Where(SQLITE).equal("account_id", 1).among(column, [1]);
    const steps = database.prepare(`EXPLAIN QUERY PLAN SELECT * FROM variable ${where.sql} ORDER BY id`).all(1, "[1]");
    expect(steps.map(({ detail }) => detail)).toContain(search);
  });
});
