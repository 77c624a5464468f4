/** Users of the configuration: an entry is applied again when it says something new, and what people changed stays. */
import { afterEach, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { change, insert, row } from "#hub/store/database.ts";
import { addApiToken } from "#hub/store/people/api-tokens.ts";
import { setPassword } from "#hub/store/people/users.ts";
import { offerSecondFactor } from "#hub/store/sessions/second-factors.ts";
import type { HubStore } from "#hub/store/store.ts";
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

const FAR_MS = 9e12;
const ROOT = { username: "root", password: "root-password", accounts: [2], roles: ["Admin"] };

/** Hubs that start one after the other over one store, with these entries beside that of the Manager. */
async function onOneStore() {
  const { path, remove } = await temporaryDirectory();
  let stop = async () => {};
  closers.push(remove, () => stop());
  return async (...users: readonly object[]) => {
    await stop();
    stop = async () => {};
    const running = await startHub(hubOptions.parse(rawOptions(path, { users: [CHIEF, ...users] })), { log, hashCost });
    stop = () => running.close();
    const hub = callsOf(() => running.url);
    const signIn = async (username: string, password: string) =>
      (await hub.form({ ...GRANT, scope: "datahub-api", username, password })).status;
    return { hub, signIn, people: (running.inside.store as HubStore).people };
  };
}

/** A user of a Manager, with whatever lets its owner in. */
async function makeOwned({ hub, people }: Awaited<ReturnType<Awaited<ReturnType<typeof onOneStore>>>>, body: object) {
  const made = await hub.ok("POST", "/account/users", {
    body: { password: "of-the-owner", mustChangePassword: false, roles: ["Manager"], ...body },
  });
  const token = { userId: made.id, accountId: 1, name: "kept", hash: "kept", scopes: ["datahub-api"] };
  await people.change(function* () {
    yield* addApiToken({ ...token, createdMs: 0, expiresMs: 1 });
    yield* change(
      "INSERT INTO external_identity (issuer, subject, user_id, linked_ms) VALUES ('i', 's', ?, 0)",
      made.id,
    );
    const asked =
      "INSERT INTO sign_on_confirmation (user_id, hash, issuer, subject, expires_ms) VALUES (?, 'h', 'i', 's', ?)";
    yield* change(asked, made.id, FAR_MS);
    yield* offerSecondFactor(made.id, "SECRET");
    yield* insert("session", {
      ...{ token_hash: "kept", user_id: made.id, account_id: 1, generation: "", second_factor: true },
      ...{ created_ms: 0, seen_ms: FAR_MS, expires_ms: FAR_MS, address: "", agent: "" },
    });
  });
  return made.id as number;
}

/** What is left of it. */
async function leftOf({ people }: { people: HubStore["people"] }, id: number) {
  const rowsIn = (table: string) => row(`SELECT COUNT(*) AS rows FROM ${table} WHERE user_id = ?`, id);
  const tables = ["api_token", "external_identity", "session", "sign_on_confirmation"];
  const counted = await people.change(function* () {
    const counts: number[] = [];
    for (const table of tables) counts.push(Number((yield* rowsIn(table))?.["rows"]));
    return counts;
  });
  return { counted, user: await people.userById(id) };
}

test.each(["root", "Root"])("an entry is no user whom people made (%s); adopt ends all that was", async (username) => {
  const start = await onOneStore();
  const first = await start();
  const id = await makeOwned(first, { username, email: "owner@example.org" });
  const at = (await first.hub.get("/account/audit")).at(0).at;

  await expect(start(ROOT)).rejects.toThrow(
    `users: root is the name of the user ${username} (${id}), who was made by manager at ${at} and not by this ` +
      "configuration. Choose another name, or say `adopt: true` at this entry",
  );
  const before = await start();
  expect(await before.signIn(username, "of-the-owner")).toBe(200);
  expect((await leftOf(before, id)).counted).toEqual([1, 1, 1, 1]);

  const adopted = await start({ ...ROOT, adopt: true });
  expect([await adopted.signIn("root", "of-the-owner"), await adopted.signIn("root", "root-password")]).toEqual([
    401, 200,
  ]);
  const { counted, user } = await leftOf(adopted, id);
  expect(counted).toEqual([0, 0, 0, 0]);
  expect(user).toMatchObject({
    ...{ id, username: "root", email: null, totp: null, origin: "configuration", state: "Active" },
    memberships: [{ accountId: 2, roles: ["Admin"] }],
  });
  // It is a user of the configuration from now on, with and without the word.
  await adopted.people.change(() => setPassword(id, "own"));
  for (const entry of [{ ...ROOT, adopt: true }, ROOT])
    expect((await (await start(entry)).people.userById(id))?.passwordHash).toBe("own");
});

test("the address of an entry is none that a user has whom people made; adopt takes it", async () => {
  const start = await onOneStore();
  const first = await start();
  const id = await makeOwned(first, { username: "eve", email: "Root@Example.org" });
  const entry = { ...ROOT, email: "root@example.org" };
  await expect(start(entry)).rejects.toThrow(
    new RegExp(`users: root: root@example.org is the e-mail address of the user eve \\(${id}\\), .* by manager at`),
  );
  await start(ROOT);
  await expect(start(entry)).rejects.toThrow("adopt: true");
  const adopted = await start({ ...entry, adopt: true });
  expect(await adopted.people.userByEmail("root@example.org")).toMatchObject({ username: "root" });
  expect(await adopted.people.userById(id)).toMatchObject({ username: "eve", email: null });
  await start(entry);
  await expect(start(entry, { ...ADA, email: "ROOT@example.org" })).rejects.toThrow("root@example.org occurs twice");
});

test("an entry that comes back, or leads further, has nothing of the one who used it meanwhile", async () => {
  const start = await onOneStore();
  const one = { ...ADA, accounts: [1] };
  const first = await start(one);
  const { id } = (await first.people.userByName("ada")) as { id: number };
  const used = async ({ hub, people }: typeof first) => {
    if ((await people.userById(id))?.state === "Inactive") await hub.ok("POST", `/account/users/${id}/activate`);
    await hub.ok("PUT", `/account/users/${id}`, { body: { email: "owner@example.org" } });
    await people.change(function* () {
      yield* setPassword(id, ofOwner);
      yield* addApiToken({
        ...{ userId: id, accountId: 1, name: "kept", hash: "kept", scopes: [], createdMs: 0, expiresMs: 1 },
      });
    });
  };
  const ofOwner = await hashPassword("of-the-owner", hashCost);
  const expectNew = async (started: typeof first) => {
    expect(await leftOf(started, id)).toMatchObject({ counted: [0, 0, 0, 0], user: { email: null, state: "Active" } });
    const passwords = ["of-the-owner", "ada-password"].map((password) => started.signIn("ada", password));
    expect(await Promise.all(passwords)).toEqual([401, 200]);
  };

  await used(await start());
  const back = await start({ ...one, roles: ["Manager"] });
  await expectNew(back);
  await used(back);
  await expectNew(await start({ ...one, roles: ["Admin"] }));

  // A Manager had deactivated the user before its entry left.
  const deactivated = await start(one);
  await deactivated.hub.ok("POST", `/account/users/${id}/deactivate`);
  await used(await start());
  const again = await start(one);
  await expectNew(again);
  await used(again);
  await expectNew(await start({ ...one, accounts: [1, 2] }));
});
