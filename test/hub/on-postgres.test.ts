/**
 * The hub on PostgreSQL passes the same tests as on SQLite: those of each file beside this one, unless it is
 * named here.
 */
import { globSync } from "node:fs";
import { describe } from "vitest";
import { usePostgres } from "./fixture.ts";

const APART = [
  "on-postgres", // this file
  "access", // judged before any store is asked
  "openapi",
  "crash", // `postgres.test.ts` kills one of two hubs
  "postgres",
  "writers", // opens both
  "turns", // of SQLite, whose reads are synchronous
  "start", // `postgres.test.ts` says what can be wrong
  // What they test lies before the store.
  "access",
  "files/bytes",
  "files/crash",
  "files/kinds",
  "keys",
  "openapi",
  "referentials",
  "specification/access",
  "specification/referentials",
  "token",
];

await usePostgres();
const names = globSync("**/*.test.ts", { cwd: import.meta.dirname })
  .map((file) => file.slice(0, -".test.ts".length))
  .filter((name) => !APART.includes(name))
  .sort();
describe.each(names)("%s", async (name) => {
  await import(/* @vite-ignore */ `./${name}.test.ts`);
});
