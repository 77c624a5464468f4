/** The mechanism of migrations, by two files of its own, on both databases. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ConfigError } from "#core/errors.ts";
import type { Schema } from "#core/sql/migrations.ts";
import { migrate as migratePostgres, stateOf as postgresState } from "#core/sql/postgres/migrate.ts";
import { migrate as migrateSqlite, stateOf as sqliteState } from "#core/sql/sqlite/migrate.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";

interface Database {
  readonly migrate: () => Promise<readonly string[]>;
  readonly version: () => Promise<number>;
  readonly query: (sql: string) => Promise<readonly unknown[]>;
  readonly close: () => Promise<void>;
}

const FIRST = "CREATE TABLE room (name text NOT NULL CHECK (name IN (:names)));\n-- A comment.\n";
const SECOND = "CREATE TABLE door (width integer); INSERT INTO room VALUES ('hall');";
const NEITHER = "CREATE TABLE door (width integer); INSERT INTO nowhere VALUES (1);";

let folder: string;
let database: Database;
let values: Record<string, string>;
let server: TestDatabase;
const write = (file: string, text: string) => writeFileSync(join(folder, file), text);

beforeAll(async () => {
  server = await openTestDatabase();
});
afterAll(() => server.drop());

const schema = (): Schema => ({
  folder,
  table: "migration",
  values,
  foreign: null,
  otherVersion: (subject, words) => new ConfigError("HG-HUB-002", { operation: "open", subject, message: words }),
});

function openSqlite(): Database {
  const db = new DatabaseSync(":memory:");
  const own = () => ({ ...schema(), applicationId: null });
  return {
    migrate: async () => migrateSqlite(db, own(), "it"),
    version: async () => sqliteState(db, own(), "it").version,
    query: async (sql) => db.prepare(sql).all(),
    close: async () => db.close(),
  };
}

let count = 0;

async function openPostgres(): Promise<Database> {
  count += 1;
  const name = `s${count}`;
  const client = new Client({ connectionString: server.url, options: `-c search_path=${name}` });
  await client.connect();
  const own = () => ({ ...schema(), lock: async () => undefined });
  return {
    migrate: () => migratePostgres(client, own(), name, "it"),
    version: async () => (await postgresState(client, own(), name, "it")).version,
    query: async (sql) => (await client.query<object>(sql)).rows,
    close: () => client.end(),
  };
}

describe.each([
  ["SQLite", openSqlite, "DROP TABLE migration"],
  ["PostgreSQL", openPostgres, "ALTER TABLE migration DROP COLUMN digest"],
])("migrations of %s", (_name, open, forgetDigests) => {
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), "headgate-"));
    values = { names: "'hall', 'attic'" };
    write("001-room.sql", FIRST);
    database = await open();
    return async () => {
      await database.close();
      rmSync(folder, { recursive: true });
    };
  });

  it("are applied once, in the order of their numbers, with the values of the code", async () => {
    expect(await database.version()).toBe(0);
    expect(await database.migrate()).toEqual(["001-room.sql"]);
    await expect(database.query("INSERT INTO room VALUES ('cellar')")).rejects.toThrow(/check/i);
    write("002-door.sql", SECOND);
    expect(await database.version()).toBe(1);
    expect(await database.migrate()).toEqual(["002-door.sql"]);
    expect(await database.migrate()).toEqual([]);
    expect(await database.version()).toBe(2);
    expect(await database.query("SELECT name FROM room")).toEqual([{ name: "hall" }]);
  });

  it("leave nothing when one fails", async () => {
    await database.migrate();
    write("002-door.sql", NEITHER);
    await expect(database.migrate()).rejects.toThrow(/nowhere/);
    expect(await database.version()).toBe(1);
    write("002-door.sql", SECOND);
    expect(await database.migrate()).toEqual(["002-door.sql"]);
  });

  it("refuse a database that is newer, or that other files or values made", async () => {
    write("002-door.sql", SECOND);
    await database.migrate();
    rmSync(join(folder, "002-door.sql"));
    await expect(database.migrate()).rejects.toMatchObject({
      code: "HG-HUB-002",
      message: expect.stringContaining("newer than 1"),
    });
    write("002-door.sql", SECOND);

    write("001-room.sql", `-- Another comment.\n${FIRST}`);
    expect(await database.migrate()).toEqual([]);
    const refusal = { code: "HG-HUB-002", message: expect.stringContaining("(001-room.sql differs)") };
    write("001-room.sql", FIRST.replace("NOT NULL ", ""));
    await expect(database.migrate()).rejects.toMatchObject(refusal);
    write("001-room.sql", FIRST);
    values = { names: "'hall', 'attic', 'cellar'" };
    await expect(database.migrate()).rejects.toMatchObject(refusal);
  });

  it("refuse a database that records no digests", async () => {
    await database.migrate();
    await database.query(forgetDigests);
    await expect(database.migrate()).rejects.toMatchObject({ code: "HG-HUB-002" });
  });
});
