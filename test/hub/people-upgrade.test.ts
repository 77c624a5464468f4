/** A store whose users had their roles in every account alike, all from the configuration. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RunningHub, startHub } from "../../src/hub/hub.ts";
import { hubOptions } from "../../src/hub/options.ts";
import type { HubStore } from "../../src/hub/store/store.ts";
import { silentLog as log } from "../../src/support/log.ts";
import { hashPassword } from "../../src/support/sign-in/passwords.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";
import { callsOf, GRANT, type HubCalls, rawOptions, temporaryDirectory } from "./fixture.ts";
import { writeOldStore } from "./old-store.ts";

const USERS = [
  { username: "Chief", password: "chief-password", accounts: [2, 1], roles: ["Manager", "datapusher.standard"] },
  { username: "chief", password: "other-password", accounts: [1], roles: ["User"] },
];

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let running: RunningHub;
let hub: HubCalls;
beforeAll(async () => {
  directory = await temporaryDirectory();
  const rowsOf = async (table: string) => {
    const rows = ["INSERT INTO account (id, name) VALUES (1, 'First'), (2, 'Second')"];
    const gone = { username: "gone", password: "gone-password", accounts: [1], roles: ["Manager"] };
    for (const { username, password, accounts, roles } of [...USERS, gone]) {
      const cells = [username, await hashPassword(password, hashCost), JSON.stringify(roles), JSON.stringify(accounts)];
      const values = cells.map((cell) => `'${cell}'`).join(", ");
      rows.push(`INSERT INTO ${table} (username, password_hash, roles, accounts) VALUES (${values})`);
    }
    return [...rows, `UPDATE ${table} SET enabled = FALSE WHERE username = 'gone'`];
  };
  await writeOldStore(directory.path, "people", { sqlite: await rowsOf("user"), postgres: await rowsOf("hub_user") });
  const users = USERS.map((user) => ({ ...user }));
  running = await startHub(hubOptions.parse(rawOptions(directory.path, { users })), { log, hashCost });
  hub = callsOf(() => running.url);
});
afterAll(async () => {
  await running.close();
  await directory.remove();
});

test("everybody signs in as before, and may do the same", async () => {
  const sites = async (username: string, password: string, account: string) => {
    const answer = await hub.form({ ...GRANT, scope: "datahub-api", username, password, account });
    const { access_token: token, error } = (await answer.json()) as { access_token?: string; error?: string };
    if (token === undefined) return error;
    const body = { name: "Site", typeId: 3, timeZoneId: "UTC" };
    return (await hub.call("POST", "/sites", { authorization: `Bearer ${token}`, body })).status;
  };
  expect(await sites("Chief", "chief-password", "1")).toBe(200);
  expect(await sites("Chief", "chief-password", "2")).toBe(200);
  expect(await sites("chief", "other-password", "1")).toBe(403);
  expect(await sites("chief", "other-password", "2")).toBe("invalid_grant");
  expect(await sites("CHIEF", "chief-password", "1")).toBe(200);
  expect(await sites("gone", "gone-password", "1")).toBe("invalid_grant");
});

test("roles belong to memberships, in the order of the accounts", async () => {
  const { people } = running.inside.store as HubStore;
  expect(await people.userByName("Chief")).toMatchObject({
    id: 1,
    state: "Active",
    origin: "configuration",
    memberships: [
      { accountId: 2, roles: ["Manager", "datapusher.standard"], businessId: null },
      { accountId: 1, roles: ["Manager", "datapusher.standard"], businessId: null },
    ],
  });
  expect(await people.userByName("gone")).toMatchObject({ id: 3, state: "Inactive" });
  expect(await people.entrantByName("gone")).toBeNull();
  expect((await people.audit(1, {}, { offset: 0, limit: null })).total).toBe(0);
});
