/** Writes a store as an earlier version left it. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Client } from "pg";
import { installTextFunctions } from "../../src/hub/store/sqlite/dialect.ts";
import { installRenumbering } from "../../src/hub/store/sqlite/renumbered.ts";
import { storeAt } from "./fixture.ts";

/** `before`: name of the first migration that it had not seen; `rows`: SQL of both databases, or of each. */
export async function writeOldStore(
  directory: string,
  before: string,
  rows: readonly string[] | Readonly<Record<"sqlite" | "postgres", readonly string[]>>,
): Promise<void> {
  const store = storeAt(directory) as { kind: "sqlite" | "postgres"; path: string; url: string; schema: string };
  const own = "sqlite" in rows ? rows[store.kind] : rows;
  const folder = resolve(import.meta.dirname, "../../src/hub/store", store.kind, "migrations");
  const all = readdirSync(folder).filter((file) => file.endsWith(".sql"));
  const old = all.sort().slice(
    0,
    all.findIndex((file) => file.endsWith(`-${before}.sql`)),
  );
  const texts = old.map((file) => readFileSync(join(folder, file), "utf8"));
  const version = Number(old.at(-1)?.slice(0, 3));
  if (store.kind === "sqlite") {
    const database = new DatabaseSync(store.path);
    installTextFunctions(database);
    installRenumbering(database);
    for (const sql of [...texts, ...own, `PRAGMA user_version = ${version}`]) database.exec(sql);
    database.close();
    return;
  }
  const client = new Client({ connectionString: store.url });
  await client.connect();
  await client.query(`CREATE SCHEMA ${store.schema}; SET search_path TO ${store.schema}`);
  for (const sql of [...texts, ...own]) await client.query(sql);
  await client.query("CREATE TABLE migration (version bigint PRIMARY KEY, file text NOT NULL)");
  await client.query("INSERT INTO migration VALUES ($1, $2)", [version, old.at(-1)]);
  await client.end();
}
