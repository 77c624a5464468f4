/** Rights and sessions that end between the guard of a request and its transaction. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Steps } from "#hub/store/database.ts";
import { putMembership, removeMembership, setPassword, setState } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";

const LOSSES: Readonly<Record<string, (id: number) => Steps<unknown>>> = {
  "a lost role": (id) => putMembership(id, { accountId: 1, roles: ["User"], origin: "people" }),
  deactivation: (id) => setState(id, "Inactive"),
  "an account left": (id) => removeMembership(id, 1),
  "another password": (id) => setPassword(id, "$hash"),
};

const NEW_USER = { username: "made", password: "three quiet words", roles: ["Manager"] };
/** Requests of a manager, of which the last one needs no role. */
const REQUESTS: Readonly<Record<string, (plain: number) => [method: string, path: string, body?: object]>> = {
  "a new user": () => ["POST", "/account/users", NEW_USER],
  "a changed user": (plain) => ["PUT", `/account/users/${plain}`, { firstName: "Other" }],
  "an invitation": () => ["POST", "/account/invitations", { email: "made@example.com", roles: ["Manager"] }],
  "a link to the password of another": (plain) => ["GET", `/user/updatePasswordLink?UserId=${plain}`],
  "a link to the own password": () => ["GET", "/user/updatePasswordLink"],
  "a personal token": () => ["POST", "/user/tokens", { name: "made", days: 1 }],
};
const OWN = ["a link to the own password", "a personal token"];

let hub: TestHub;
const users = Object.keys(REQUESTS).flatMap((_, request) =>
  Object.keys(LOSSES).map((_name, loss) => {
    const username = `m${request}${loss}`;
    return { username, password: `${username}-password`, accounts: [1, 2], roles: ["Manager"] };
  }),
);
beforeAll(async () => {
  const plain = { username: "plain", password: "plain-password", accounts: [1], roles: ["User"] };
  hub = await startTestHub({
    users: [...users, plain, ...["own1", "own2"].map((username) => ({ ...plain, username }))],
  });
});
afterAll(() => hub.close());

const people = () => (hub.inside().store as HubStore).people;
const idOf = async (name: string) => (await people().userByName(name))?.id ?? 0;

/** The loss is there before the next transaction about people begins. */
function losing(loss: () => Steps<unknown>): void {
  const store = people() as { -readonly [Name in keyof HubStore["people"]]: HubStore["people"][Name] };
  const { changeMember, changeWith, change } = store;
  const first =
    <Given extends unknown[], Result>(method: (...given: Given) => Promise<Result>) =>
    async (...given: Given) => {
      Object.assign(store, { changeMember, changeWith, change });
      await change(loss);
      return method(...given);
    };
  Object.assign(store, { changeMember: first(changeMember), changeWith: first(changeWith), change: first(change) });
}

describe.each(Object.entries(REQUESTS))("%s", (name, request) => {
  test.each(Object.entries(LOSSES))("is not made after %s", async (lossName, loss) => {
    const username = `m${Object.keys(REQUESTS).indexOf(name)}${Object.keys(LOSSES).indexOf(lossName)}`;
    const [method, path, body] = request(await idOf("plain"));
    const token = await hub.token(username, 1);
    const id = await idOf(username);
    losing(() => loss(id));
    const answer = await hub.call(method, path, {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { body }),
    });
    const isKept = lossName === "a lost role" && OWN.includes(name);
    const refused = ["a lost role", "an account left"].includes(lossName) ? 403 : 401;
    expect(answer.status, JSON.stringify(answer.body)).toBe(isKept ? 200 : refused);
    expect(await people().userByName("made")).toBeNull();
    expect(await people().userByEmail("made@example.com")).toBeNull();
    expect((await people().userByName("plain"))?.firstName).toBeNull();
  });
});

test.each([
  ["deactivation", "own1", (id: number) => setState(id, "Inactive")],
  ["a reset by mail", "own2", (id: number) => setPassword(id, "$hash")],
])("a change of the own password in progress does not outlive %s", async (_, name, loss) => {
  const id = await idOf(name);
  const browser = openBrowser(hub);
  await browser.signIn(name, "plain-password");
  await browser.open("/password/change");
  const before = (await people().userById(id))?.passwordHash;
  losing(() => loss(id));
  const words = "three quiet words";
  const sent = await browser.send("/password/change", { current: "plain-password", password: words, again: words });
  expect(sent.status).toBe(401);
  expect([before, "$hash"]).toContain((await people().userById(id))?.passwordHash);
});
