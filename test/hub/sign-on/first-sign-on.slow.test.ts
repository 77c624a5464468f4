/** First sign-ins on PostgreSQL, where transactions run side by side. */
import { basename } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { startTestHub, type TestHub, usePostgres } from "../fixture.ts";

let hub: TestHub;
let url: string;
beforeAll(async () => {
  ({ url } = await usePostgres());
  hub = await startTestHub();
});
afterAll(() => hub.close());

const OCCASION = {
  atMs: Date.now(),
  actor: { id: null, name: "company", impersonator: null, address: null },
  confirmation: null,
};

function enter(subject: string) {
  const person = { issuer: "https://login.example.org", subject, usernames: [subject], email: null };
  const granted = [{ accountId: 1, roles: ["User"] }];
  const { externalIdentities } = hub.inside().store as HubStore;
  return externalIdentities.enter(
    { ...person, matchesEmail: false, firstName: null, lastName: null, granted },
    OCCASION,
  );
}

test("a first sign-in waits for no transaction of an account", async () => {
  const other = new Client({ connectionString: url });
  await other.connect();
  const schema = basename(hub.directory)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "_");
  await other.query(`BEGIN; SELECT 1 FROM ${schema}.account FOR KEY SHARE`);
  expect(await enter("carl")).toMatchObject({ kind: "user", user: { username: "carl" } });
  await other.end();
});

test("many first sign-ins of one person at one moment are one user", async () => {
  const entered = await Promise.all(Array.from({ length: 8 }, () => enter("dora")));
  expect(entered.map((one) => (one.kind === "user" ? one.user.username : one.kind))).toEqual(Array(8).fill("dora"));
});
