/** Users of the configuration: an entry is applied again when it says something new, and what people changed stays. */
import { afterEach, expect, test } from "vitest";
import { startHub } from "../../src/hub/hub.ts";
import { hubOptions } from "../../src/hub/options.ts";
import { setPassword } from "../../src/hub/store/people/users.ts";
import type { HubStore } from "../../src/hub/store/store.ts";
import { silentLog as log } from "../../src/support/log.ts";
import { hashPassword } from "../../src/support/sign-in/passwords.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";
import { callsOf, GRANT, rawOptions, temporaryDirectory } from "./fixture.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const CHIEF = { username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] };
const ADA = { username: "ada", password: "ada-password", accounts: [1, 2], roles: ["User"] };

test("a restart keeps changes of people; a changed entry is applied; one that left can no longer sign in", async () => {
  const { path, remove } = await temporaryDirectory();
  closers.push(remove);
  let stop = async () => {};
  const start = async (...users: readonly object[]) => {
    await stop();
    const options = hubOptions.parse(rawOptions(path, { users: [CHIEF, ...users] }));
    const running = await startHub(options, { log, hashCost });
    stop = () => running.close();
    closers.push(stop);
    const hub = callsOf(() => running.url);
    const [ada] = await hub.get("/user/users", { "BusinessKeys.Name": "Username", "BusinessKeys.Values": "ada" });
    const { people } = running.inside.store as HubStore;
    const signIn = async (password: string) =>
      (await hub.form({ ...GRANT, scope: "datahub-api", username: "ada", password })).status;
    return { hub, ada, people, signIn, memberships: (await people.userByName("ada"))?.memberships };
  };

  const first = await start(ADA);
  const { id } = first.ada;
  await first.hub.ok("PUT", `/account/users/${id}/roles`, { body: ["Datapusher"] });
  const passwordHash = await hashPassword("own-password", hashCost);
  await first.people.change(() => setPassword(id, passwordHash));

  const restarted = await start(ADA);
  expect(restarted.ada).toMatchObject({ id, roles: [{ id: "Datapusher" }] });
  expect([await restarted.signIn("own-password"), await restarted.signIn("ada-password")]).toEqual([200, 401]);

  // The roles are new, and the password is not.
  const promoted = await start({ ...ADA, accounts: [1], roles: ["Manager"], email: "ada@example.org" });
  expect(promoted.ada).toMatchObject({ email: "ada@example.org", roles: [{ id: "Manager" }] });
  expect(promoted.memberships).toMatchObject([{ accountId: 1 }]);
  expect(await promoted.signIn("own-password")).toBe(200);

  const given = await start({ ...ADA, password: "given-password" });
  expect([await given.signIn("own-password"), await given.signIn("given-password")]).toEqual([401, 200]);
  await given.hub.ok("PUT", `/account/users/${id}/roles`, { body: ["User"] });

  const left = await start();
  expect(left.ada).toMatchObject({ id, state: "Inactive" });
  expect(await left.signIn("given-password")).toBe(401);
  const back = await start({ ...ADA, password: "given-password" });
  expect(back.ada).toMatchObject({ id, state: "Active" });
  expect(await back.signIn("given-password")).toBe(200);
  const trail = await back.hub.get("/account/audit", { UserId: id });
  expect(
    trail.map(({ action, actor }: { action: string; actor: { name: string } }) => `${action} by ${actor.name}`),
  ).toEqual([
    "user.changed by configuration of the hub",
    "user.deactivated by configuration of the hub",
    "user.changed by configuration of the hub",
    "user.changed by configuration of the hub",
    "roles.changed by manager",
    "user.created by configuration of the hub",
  ]);
});

test("a user whom a manager deactivated stays so, though the configuration has him", async () => {
  const { path, remove } = await temporaryDirectory();
  closers.push(remove);
  const parts = { log, hashCost };
  const options = hubOptions.parse(rawOptions(path, { users: [CHIEF, { ...ADA, accounts: [1] }] }));
  const before = await startHub(options, parts);
  const hub = callsOf(() => before.url);
  const [, ada] = await hub.get("/account/users");
  await hub.ok("POST", `/account/users/${ada.id}/deactivate`);
  expect((await hub.call("PUT", `/account/users/${ada.id}`, { body: { username: "eve" } })).status).toBe(409);
  await before.close();
  const after = await startHub(options, parts);
  closers.push(() => after.close());
  expect(await callsOf(() => after.url).get("/account/users")).toMatchObject([{}, { id: ada.id, state: "Inactive" }]);
});
