import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "#hub/store/sqlite/database.ts";
import { GroupedWrites } from "#hub/store/sqlite/grouped-writes.ts";
import { temporaryDirectory } from "./fixture.ts";

let database: ReturnType<typeof openDatabase>;
let other: ReturnType<typeof openDatabase>;
let writes: GroupedWrites;
let remove: () => Promise<void>;

beforeEach(async () => {
  const folder = await temporaryDirectory();
  remove = folder.remove;
  const path = join(folder.path, "writes.sqlite");
  database = openDatabase({ path, migrations: null, timeoutMs: 0 });
  database.exec(`CREATE TABLE number (value INTEGER NOT NULL);
    CREATE TRIGGER large BEFORE INSERT ON number WHEN NEW.value > 100 BEGIN SELECT RAISE(ROLLBACK, 'large'); END`);
  other = openDatabase({ path, migrations: null, timeoutMs: 0 });
  writes = new GroupedWrites(database, path);
});
afterEach(async () => {
  await writes.close();
  other.close();
  database.close();
  await remove();
});

const insert = (value: number | null) =>
  writes.write(() => database.prepare("INSERT INTO number (value) VALUES (?)").run(value).changes);
const values = () =>
  other
    .prepare("SELECT value FROM number ORDER BY rowid")
    .all()
    .map(({ value }) => value);

test("writes of one moment are done in their order, and each fails alone", async () => {
  const done = await Promise.allSettled([insert(1), insert(null), insert(2)]);
  expect(done).toEqual([
    { status: "fulfilled", value: 1 },
    { status: "rejected", reason: expect.objectContaining({ message: expect.stringContaining("NOT NULL") }) },
    { status: "fulfilled", value: 1 },
  ]);
  expect(values()).toEqual([1, 2]);
});

test("all fail when one ends their transaction, and later ones succeed", async () => {
  const done = await Promise.allSettled([insert(1), insert(101)]);
  expect(done.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(values()).toEqual([]);
  await insert(3);
  expect(values()).toEqual([3]);
});

test("writes wait for another writer, and those that wait are done before the end", async () => {
  other.exec("BEGIN IMMEDIATE");
  const written = insert(4);
  const closed = writes.close();
  expect(values()).toEqual([]);
  other.exec("COMMIT");
  await Promise.all([written, closed]);
  expect(values()).toEqual([4]);
});
