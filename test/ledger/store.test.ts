import { link, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TransientError } from "#core/errors.ts";
import { execute } from "#core/sql/statements.ts";
import { row, SqliteStore } from "#gateway/ledger/sqlite/store.ts";
import { steppingClock } from "./fixtures.ts";

let folder: string;
let db: DatabaseSync;
let store: SqliteStore;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "headgate-"));
  const path = join(folder, "s.sqlite");
  db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT NOT NULL UNIQUE)");
  store = new SqliteStore(db, path, steppingClock(), false);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

const count = () => row<{ n: number }>(store.sql("SELECT count(*) AS n FROM notes"))?.n;
const note = (text: string) => store.write("note", () => execute("INSERT INTO notes VALUES (?)", text));

it("a full disk ends the whole group as a passing fault, changes nothing, and the next write succeeds", async () => {
  db.exec("PRAGMA max_page_count = 10");
  const results = await Promise.allSettled([note("small"), note("x".repeat(100_000)), note("also small")]);
  for (const result of results) {
    expect(result).toMatchObject({ status: "rejected", reason: { code: "HG-LEDG-004" } });
    expect(result.status === "rejected" && result.reason).toBeInstanceOf(TransientError);
  }
  expect(count()).toBe(0);
  await note("small");
  expect(count()).toBe(1);
});

it("a write that breaks a rule of the schema fails alone, and is not a passing fault", async () => {
  const results = await Promise.allSettled([note("one"), note("one"), note("two")]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(results[1]?.status === "rejected" && results[1].reason).not.toBeInstanceOf(TransientError);
  expect(count()).toBe(2);
});

it("a promise resolves only after the commit", async () => {
  const reader = new DatabaseSync(join(folder, "s.sqlite"), { readOnly: true });
  const seen = () => Number(reader.prepare("SELECT count(*) AS n FROM notes").get()?.["n"]);
  const done = note("one");
  expect(seen()).toBe(0);
  await done;
  expect(seen()).toBe(1);
  reader.close();
});

it("more writes than one group holds are all committed, in the order of the requests", async () => {
  const texts = Array.from({ length: 700 }, (_, index) => `note ${index}`);
  const order: string[] = [];
  await Promise.all(texts.map((text) => note(text).then(() => order.push(text))));
  expect(order).toEqual(texts);
  expect(
    store
      .sql("SELECT text FROM notes ORDER BY rowid")
      .all()
      .map((one) => one["text"]),
  ).toEqual(texts);
});

it("a commit that cannot be synced is reported as a passing fault, and later ones continue", async () => {
  // Its log is not where it is looked for.
  const lost = join(folder, "lost.sqlite");
  const blind = new SqliteStore(db, lost, steppingClock(), false);
  const noteBlindly = (text: string) => blind.write("note", () => execute("INSERT INTO notes VALUES (?)", text));
  await expect(noteBlindly("one")).rejects.toMatchObject({ code: "HG-LEDG-004" });
  await expect(noteBlindly("two")).rejects.toBeInstanceOf(TransientError);
  await link(join(folder, "s.sqlite-wal"), `${lost}-wal`);
  await noteBlindly("three");
  await blind.close();
});

it("writes that wait at its end are committed, and later ones are refused", async () => {
  const waiting = note("one");
  const closed = store.close();
  await expect(note("two")).rejects.toMatchObject({ code: "HG-BUG-001" });
  await Promise.all([waiting, closed]);
  const reader = new DatabaseSync(join(folder, "s.sqlite"), { readOnly: true });
  expect(reader.prepare("SELECT text FROM notes").all()).toEqual([{ text: "one" }]);
  reader.close();
});
