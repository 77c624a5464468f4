/** Refresh tokens, as clients of OAuth 2.0 use them (`docs/hub/people.md`, *Tokens and rights*). */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { LITTLE_HASHING } from "../support/hash-cost.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { callsOf, GRANT, rawOptions, temporaryDirectory } from "./fixture.ts";

const GATEWAY = { id: "gateway", secret: "gateway-secret" };
const OTHER = { id: "other", secret: "other-secret" };
const MANAGER = { username: "manager", password: "manager-password", accounts: [1, 2], roles: ["Manager"] };
const SECOND = { username: "second", password: "second-password", accounts: [1], roles: ["User"] };
const USERS = [MANAGER, SECOND];

const closers: (() => Promise<void>)[] = [];
let directory = "";
let clock: JumpingClock;
let running: RunningHub;
beforeEach(async () => {
  const { path, remove } = await temporaryDirectory();
  closers.push(remove);
  directory = path;
  clock = new JumpingClock();
  await open();
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const hub = callsOf(() => running.url);
async function open(more: object = {}): Promise<void> {
  const options = hubOptions.parse(rawOptions(directory, { clients: [GATEWAY, OTHER], users: USERS, ...more }));
  const hubOf = await startHub(options, { log: silentLog, hashCost: LITTLE_HASHING, clock });
  closers.push(() => hubOf.close());
  running = hubOf;
}
async function reopen(more: object): Promise<void> {
  await running.close();
  await open(more);
}

interface Answer {
  readonly status: number;
  readonly body: { readonly access_token: string; readonly refresh_token: string; readonly scope: string };
}
async function asked(fields: Record<string, string>): Promise<Answer> {
  const answer = await hub.form({ ...GRANT, ...fields });
  return { status: answer.status, body: (await answer.json()) as Answer["body"] };
}
const signIn = (fields: Record<string, string> = {}) =>
  asked({ username: "manager", password: "manager-password", scope: "openid datahub-api offline_access", ...fields });
const refresh = (refresh_token: string, fields: Record<string, string> = {}) =>
  asked({ grant_type: "refresh_token", refresh_token, ...fields });
const given = async (fields?: Record<string, string>) => (await signIn(fields)).body.refresh_token;
const REFUSED = { status: 400, body: { error: "invalid_grant" } };

test("are given with the scope offline_access alone, and take the place of the password", async () => {
  expect((await signIn({ scope: "datahub-api" })).body).not.toHaveProperty("refresh_token");
  const { body } = await signIn({ account: "2" });
  expect(body).toMatchObject({ scope: "datahub-api offline_access", refresh_expires_in: 2_592_000 });
  const renewed = await refresh(body.refresh_token);
  expect(renewed).toMatchObject({ status: 200, body: { scope: "datahub-api offline_access", expires_in: 3_600 } });
  expect(renewed.body.refresh_token).not.toBe(body.refresh_token);
  const authorization = `Bearer ${renewed.body.access_token}`;
  expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
});

test("keep the account of the sign-in, also when another became the default", async () => {
  const value = await given({ account: "2" });
  await signIn({ account: "1" });
  const { body } = await refresh(value);
  expect(decodeJwt(body.access_token)["account"]).toBe(2);
  expect(await refresh(body.refresh_token, { account: "1" })).toMatchObject(REFUSED);
  expect(await refresh(body.refresh_token, { account: "2" })).toMatchObject({ status: 200 });
});

test("give fewer scopes when asked, never more", async () => {
  const value = await given({ scope: "datahub-api push-data offline_access" });
  const fewer = await refresh(value, { scope: "push-data" });
  expect(fewer.body.scope).toBe("push-data offline_access");
  expect((await refresh(fewer.body.refresh_token)).body.scope).toBe("datahub-api push-data offline_access");
  const more = await refresh(await given(), { scope: "datahub-api push-data" });
  expect(more).toMatchObject({ status: 400, body: { error: "invalid_scope" } });
});

test("outlive a restart, and the store has their hashes alone", async () => {
  const value = await given();
  await running.close();
  const files = (await readdir(directory)).filter((name) => name.startsWith("hub.sqlite"));
  for (const name of files) expect((await readFile(join(directory, name))).includes(value), name).toBe(false);
  await open();
  expect(await refresh(value)).toMatchObject({ status: 200 });
});

describe("a used one", () => {
  test("is taken again for a short time, since the answer may be lost", async () => {
    const value = await given();
    const [lost, repeated] = [await refresh(value), await refresh(value)];
    expect([lost.status, repeated.status]).toEqual([200, 200]);
    expect(await refresh(repeated.body.refresh_token)).toMatchObject({ status: 200 });
  });

  test("ends all that follow from the same sign-in, and no others", async () => {
    const value = await given();
    const other = await given();
    const { body } = await refresh(value);
    clock.jump(60_000);
    expect(await refresh(value)).toMatchObject(REFUSED);
    expect(await refresh(body.refresh_token)).toMatchObject(REFUSED);
    expect(await refresh(other)).toMatchObject({ status: 200 });
  });

  test("of two requests at one time both get tokens of one family", async () => {
    const value = await given();
    const answers = await Promise.all([refresh(value), refresh(value)]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe("are refused", () => {
  test("when they are unknown, of another client, or missing", async () => {
    expect(await refresh("never-given")).toMatchObject(REFUSED);
    const other = { client_id: "other", client_secret: "other-secret" };
    const value = await given();
    expect(await refresh(value, other)).toMatchObject(REFUSED);
    expect(await refresh(value, { client_secret: "wrong-secret" })).toMatchObject({ status: 401 });
    expect(await refresh(value)).toMatchObject({ status: 200 });
    const without = await asked({ grant_type: "refresh_token" });
    expect(without).toMatchObject({ status: 400, body: { error_description: "the refresh_token is missing" } });
  });

  test("after their time", async () => {
    await reopen({ refreshTokens: { lifetime: "2h" } });
    const value = await given();
    clock.jump(7_100_000);
    const { body } = await refresh(value);
    clock.jump(7_100_000);
    const next = await refresh(body.refresh_token);
    expect(next.status).toBe(200);
    clock.jump(7_300_000);
    expect(await refresh(next.body.refresh_token)).toMatchObject(REFUSED);
  });

  test.each([
    ["the password was changed", { users: [{ ...MANAGER, password: "another-password" }, SECOND] }],
    ["the user was deactivated", { users: [SECOND] }],
    ["the user may no longer enter the account", { users: [{ ...MANAGER, accounts: [1] }, SECOND] }],
    ["the client's secret was changed", { clients: [{ ...GATEWAY, secret: "another-secret" }] }],
  ])("after %s", async (_, change) => {
    const value = await given({ account: "2" });
    await reopen(change);
    const secret = "clients" in change ? { client_secret: "another-secret" } : {};
    expect(await refresh(value, secret)).toMatchObject(REFUSED);
  });

  test("after the client was removed, also when it comes back", async () => {
    const value = await given();
    await reopen({ clients: [OTHER] });
    expect(await refresh(value)).toMatchObject({ status: 401 });
    await reopen({});
    expect(await refresh(value)).toMatchObject(REFUSED);
  });
});
