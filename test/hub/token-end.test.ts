/** Tokens that end before their time: of clients that were removed, and after a password or secret was changed. */
import { afterEach, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { LITTLE_HASHING } from "../support/hash-cost.ts";
import { callsOf, rawOptions, temporaryDirectory } from "./fixture.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const CLIENT = { id: "gateway", secret: "gateway-secret" };
const MANAGER = { username: "manager", password: "manager-password", accounts: [1], roles: ["Manager"] };

/** Whether a token of before is still taken after the configuration was changed. */
async function isTakenAfter(change: object): Promise<{ taken: boolean; why: unknown }> {
  const { path, remove } = await temporaryDirectory();
  closers.push(remove);
  const open = async (more: object) => {
    const options = hubOptions.parse(rawOptions(path, { clients: [CLIENT], users: [MANAGER], ...more }));
    const hub = await startHub(options, { log: silentLog, hashCost: LITTLE_HASHING });
    closers.push(() => hub.close());
    return { ...callsOf(() => hub.url), close: () => hub.close() };
  };
  const before = await open({});
  const authorization = `Bearer ${await before.token()}`;
  expect((await before.call("GET", "/sites", { authorization })).status).toBe(200);
  await before.close();
  const after = await open(change);
  const { status, body } = await after.call("GET", "/sites", { authorization });
  expect([200, 401]).toContain(status);
  return { taken: status === 200, why: body.detail };
}

test.each([
  ["the client was removed", { clients: [{ id: "other", secret: "other-secret" }] }],
  ["the client's secret was changed", { clients: [{ ...CLIENT, secret: "another-secret" }] }],
  ["the user's password was changed", { users: [{ ...MANAGER, password: "another-password" }] }],
])("a token is refused at once when %s", async (_, change) => {
  expect(await isTakenAfter(change)).toEqual({
    taken: false,
    why: "the client of the access token was removed, or its password or secret changed",
  });
});

test("a token survives a restart with the same credentials", async () => {
  expect(await isTakenAfter({})).toMatchObject({ taken: true });
});
