/** The list of ids at a drop is read in parts, between which other writers may remove arrivals. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { AT_DROP, idsBy } from "#gateway/ledger/records/polls/poll.ts";
import { SqliteStore } from "#gateway/ledger/sqlite/store.ts";
import { steppingClock } from "./fixtures.ts";

/** Two full parts, and some more. */
const COUNT = 20_003;
const PART = 10_000;

let folder: string;
let db: DatabaseSync;
let store: SqliteStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
  const path = join(folder, "s.sqlite");
  db = new DatabaseSync(path);
  db.exec(`PRAGMA journal_mode = WAL;
    CREATE TABLE arrivals (id INTEGER PRIMARY KEY, drop_name TEXT, path TEXT, gone_at TEXT, parent_id INTEGER);
    CREATE INDEX by_path ON arrivals (drop_name, path);
    WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${COUNT})
    INSERT INTO arrivals SELECT n, 'field', printf('file-%06d.csv', n), NULL, NULL FROM number`);
  store = new SqliteStore(db, path, steppingClock(), false);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

const idsAtDrop = () => idsBy(store, "field", AT_DROP, "");
const all = Array.from({ length: COUNT }, (_, index) => index + 1);

/** Removes arrivals once the first part was read. */
function removeBehindFirstPart(from: number, to: number): void {
  const look = store.look.bind(store);
  let looks = 0;
  vi.spyOn(store, "look").mockImplementation(async (work) => {
    const found = await look(work);
    looks += 1;
    if (looks === 1) db.prepare("DELETE FROM arrivals WHERE id BETWEEN ? AND ?").run(from, to);
    return found;
  });
}

it("lists the ids of all parts in order of the paths", async () => {
  expect(await idsAtDrop()).toEqual(all);
});

it("continues behind the last arrival that is left when those at the end of a part are removed meanwhile", async () => {
  removeBehindFirstPart(PART - 2, PART);
  expect(await idsAtDrop()).toEqual(all.filter((id) => id < PART - 2 || id > PART));
});

it("continues where a part began when all of it is removed meanwhile", async () => {
  removeBehindFirstPart(1, PART);
  expect(await idsAtDrop()).toEqual(all.slice(PART));
});
