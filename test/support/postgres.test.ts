import { afterAll, beforeAll, expect, it } from "vitest";
import { openTestDatabase, type TestDatabase } from "./postgres.ts";

let databases: readonly TestDatabase[];
beforeAll(async () => {
  databases = await Promise.all([openTestDatabase(), openTestDatabase()]);
});
afterAll(async () => {
  for (const database of databases) await database.drop();
});

it("each test file has a database of its own", async () => {
  const [first, second] = databases;
  await first?.query("CREATE TABLE notes (text text)");
  await second?.query("CREATE TABLE notes (text text)");
  await first?.query("INSERT INTO notes VALUES ($1)", ["Zählerstand"]);
  expect(await first?.query("SELECT text FROM notes")).toEqual([{ text: "Zählerstand" }]);
  expect(await second?.query("SELECT text FROM notes")).toEqual([]);
});

it("sorts text by the locale, so that statements in the order of code points must declare it", async () => {
  const sorted = await databases[0]?.query(
    `SELECT string_agg(t, '' ORDER BY t) AS t FROM (VALUES ('B'), ('a')) AS v (t)`,
  );
  expect(sorted).toEqual([{ t: "aB" }]);
});
