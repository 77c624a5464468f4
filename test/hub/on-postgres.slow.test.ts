/**
 * The hub on PostgreSQL passes the same tests as on SQLite: those of each file beside this one, unless it is slow
 * (`postgres.slow.test.ts` kills one of two hubs) or named here.
 */
import { globSync } from "node:fs";
import { describe } from "vitest";
import { usePostgres } from "./fixture.ts";

const APART = [
  "access", // judged before any store is asked
  "openapi",
  "writers", // opens both
  "turns", // of SQLite, whose reads are synchronous
  "target-cache",
  "start", // `postgres.slow.test.ts` says what can be wrong
  // What they test lies before the store.
  "files/bytes",
  "files/kinds",
  "keys",
  "referentials",
  "specification/referentials",
];

await usePostgres();
const names = globSync("**/*.test.ts", { cwd: import.meta.dirname })
  .filter((file) => !file.endsWith(".slow.test.ts"))
  .map((file) => file.slice(0, -".test.ts".length))
  .filter((name) => !APART.includes(name))
  .sort();
describe.each(names)("%s", async (name) => {
  await import(/* @vite-ignore */ `./${name}.test.ts`);
});
