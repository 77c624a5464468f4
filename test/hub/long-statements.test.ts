/** A statement of a filter ends with its time, whatever it tests, and with the store. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { rows } from "#hub/store/database.ts";
import { type FilterNode, LongFilter } from "#hub/store/filter.ts";
import { conditionOf } from "#hub/store/filter-sql.ts";
import { createApart } from "#hub/store/sqlite/apart.ts";
import { openDatabase } from "#hub/store/sqlite/database.ts";
import { SQLITE } from "#hub/store/sqlite/dialect.ts";
import { temporaryDirectory } from "./fixture.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
beforeAll(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, "hub.sqlite");
  openDatabase({ path, migrations: "migrations", timeoutMs: 20 }).close();
});
afterAll(() => directory.remove());

/** Takes hours. */
const MANY = "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS unit_id FROM n) AS variable";

test("a test of numbers ends with its time, and its thread before the store is closed", async () => {
  const node = {
    ...{ kind: "compare", operator: ">", value: -1 },
    field: { kind: "standard", entity: "variable", name: "unitId", type: "number" },
  } as unknown as FilterNode;
  const { sql, values } = conditionOf(node, "variable", SQLITE);
  const apart = createApart(path, 1_000);
  const counted = apart.ask(1, () => rows(`SELECT count(*) FROM ${MANY} WHERE ${sql}`, ...values));
  await expect(counted).rejects.toThrow(LongFilter);
  // It waits for threads that do not end.
  await apart.close();
  await expect(apart.ask(1, () => rows("SELECT 1"))).rejects.toThrow("the store is closed");
});
