/** The hub on PostgreSQL passes the same tests as on SQLite: those of each file beside this one, unless it is named here. */
import { readdirSync } from "node:fs";
import { describe } from "vitest";
import { usePostgres } from "./fixture.ts";

const APART = [
  "on-postgres", // this file
  "access", // judged before any store is asked
  "openapi",
  "crash", // `postgres.test.ts` kills one of two hubs
  "postgres",
  "referentials", // come from no store
  "start", // `postgres.test.ts` says what can be wrong
];

await usePostgres();
const names = readdirSync(import.meta.dirname)
  .flatMap((file) => /^(.+)\.test\.ts$/.exec(file)?.[1] ?? [])
  .filter((name) => !APART.includes(name));
describe.each(names)("%s", async (name) => {
  await import(`./${name}.test.ts`);
});
