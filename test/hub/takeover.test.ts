/** What a manager of one account, or a program of a user, might try to reach the user's own credentials. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { putMembership, removeMembership, setProven } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "./mail/mail-box.ts";

let box: MailBox;
let hub: TestHub;
beforeEach(async () => {
  box = await openMailBox();
  const user = (username: string, accounts: readonly number[], roles: readonly string[]) => ({
    ...{ username, password: `${username}-password`, accounts: [...accounts], roles: [...roles] },
    email: `${username}@example.com`,
  });
  const users = [user("boss", [1], ["Manager"]), user("peer", [1], ["Manager"]), user("ann", [1], ["User"])];
  hub = await startTestHub({
    ...box.options,
    users: [...users, user("other", [2], ["Manager"]), user("admin", [1], ["Admin"])],
  });
});
afterEach(async () => {
  await hub.close();
  await box.close();
});

const people = () => (hub.inside().store as HubStore).people;
const idOf = async (username: string) => (await people().userByName(username))?.id ?? 0;
const BOSS = { as: "boss", account: 1 };
const OTHER = { as: "other", account: 2 };
const TRAP = "trap-password";
const WORDS = "another three words";

describe("the own address, to which links to a new password go,", () => {
  test("is not changed by a personal token", async () => {
    const { token } = await hub.post("/user/tokens", { name: "program", days: 1 }, BOSS);
    const change = (body: object) =>
      hub.call("PATCH", `/account/users/${id}`, { authorization: `Bearer ${token}`, body });
    const id = await idOf("boss");
    expect(await change({ email: "eve@example.com" })).toMatchObject({ status: 403 });
    expect(await change({ firstName: "Bo" })).toMatchObject({ status: 200, body: { email: "boss@example.com" } });
  });

  test("is not changed by one who acts as the user", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("boss");
    const id = await idOf("peer");
    await browser.open(`/people/${id}`);
    await browser.send(`/people/${id}/act-as`, {});
    const headers = { ...browser.script(), "content-type": "application/json" };
    const change = { method: "PATCH", headers, body: JSON.stringify({ email: "eve@example.com" }) };
    const answer = await fetch(`${hub.url()}/account/users/${id}`, change);
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain("act as another user");
    expect(await people().userById(id)).toMatchObject({ email: "peer@example.com" });
  });
});

test("accounts of a user that a manager is not in are not shown to the manager who acts as the user", async () => {
  const id = await idOf("ann");
  await people().change(() => putMembership(id, { accountId: 2, roles: ["User"], origin: "people" }));
  const browser = openBrowser(hub);
  await browser.signIn("boss");
  await browser.open(`/people/${id}`);
  await browser.send(`/people/${id}/act-as`, {});
  const answer = await fetch(`${hub.url()}/user?DisplayLevel=VerboseUser`, { headers: browser.script() });
  expect(await answer.json()).toMatchObject({ username: "ann", memberships: [{ accountId: 1 }] });
  const own = await hub.get("/user", { DisplayLevel: "VerboseUser" }, { as: "ann", account: 1 });
  expect(own.memberships).toMatchObject([{ accountId: 1 }, { accountId: 2 }]);
});

describe("a link to a new password that a manager has made", () => {
  const made = async () => {
    const query = { UserId: await idOf("ann") };
    return pathOf((await hub.get("/user/updatePasswordLink", query, BOSS)).link);
  };
  const open = async (path: string) => (await openBrowser(hub).open(path)).status;

  test("ends when the user enters another account, too", async () => {
    const path = await made();
    expect(await open(path)).toBe(200);
    const membership = { accountId: 2, roles: ["Manager"], origin: "people" } as const;
    const id = await idOf("ann");
    await people().change(() => putMembership(id, membership));
    expect(await open(path)).toBe(410);
  });

  test("ends with a password that the user has chosen, and with another address", async () => {
    const path = await made();
    const browser = openBrowser(hub);
    await browser.signIn("ann");
    await browser.open("/password/change");
    const words = "three plain words";
    await browser.send("/password/change", { current: "ann-password", password: words, again: words });
    expect(await open(path)).toBe(410);
    const next = await made();
    await hub.call("PATCH", `/account/users/${await idOf("ann")}`, { ...BOSS, body: { email: "anna@example.com" } });
    expect(await open(next)).toBe(410);
  });
});

test("nobody gets the address of another user as a name", async () => {
  const body = { username: "ANN@example.com", password: "three plain words" };
  expect(await hub.call("POST", "/account/users", { ...OTHER, body })).toMatchObject({
    status: 409,
    body: { errors: [{ path: "username" }] },
  });
});

test("an invitation to the address of a user lets that user in who signs in, and no one else", async () => {
  // The manager of account 1 knows the password of a user to whom he gave the address of another person.
  const body = {
    username: "trap",
    email: "carl@example.com",
    password: TRAP,
    mustChangePassword: false,
  };
  await hub.post("/account/users", body, BOSS);
  await hub.post("/account/invitations", { email: "carl@example.com", roles: ["Manager"] }, OTHER);
  const link = await box.linkTo("carl@example.com", "/invitation");
  const carl = openBrowser(hub);
  const accounts = async () => (await people().userByName("trap"))?.memberships.map(({ accountId }) => accountId);
  const accept = () => carl.send("/invitation", { token: tokenOf(link) });
  expect((await carl.open(pathOf(link))).html).toContain("Sign in first");
  expect((await accept()).html).toContain("Sign in first");
  await carl.signIn("ann");
  expect((await carl.open(pathOf(link))).html).toContain("You have signed in as");
  expect((await accept()).html).toContain("You have signed in as");
  expect(await accounts()).toEqual([1]);
  const own = openBrowser(hub);
  await own.signIn("trap", TRAP);
  const { token } = await hub.post("/user/tokens", { name: "kept", days: 1 }, { as: "trap" });
  await own.open(pathOf(link));
  expect((await own.send("/invitation", { token: tokenOf(link) })).html).toContain("temporary password");
  expect(await accounts()).toEqual([1, 2]);
  // The manager's password, and what it opened, ended; another one came by mail.
  expect((await own.open("/me")).path).toMatch(/^\/sign-in/);
  expect(await own.signIn("trap", TRAP)).toMatchObject({ status: 422 });
  expect(await hub.call("GET", "/user", { authorization: `Bearer ${token}` })).toMatchObject({ status: 401 });
  await box.linkTo("carl@example.com", "/sign-in");
  const sent = box.passwordOf("carl@example.com");
  expect(await own.signIn("trap", sent)).toMatchObject({ path: "/password/change" });
});

test("a password by the link of a manager opens no further account, and one by mail does", async () => {
  const id = await idOf("ann");
  const joins = async (mails: number) => {
    await hub.post("/account/invitations", { email: "ann@example.com", roles: ["User"] }, OTHER);
    const invitations = () => box.to("ann@example.com").filter(({ text }) => text.includes("/invitation?"));
    await expect.poll(invitations).toHaveLength(mails);
    const link = await box.linkTo("ann@example.com", "/invitation");
    const browser = openBrowser(hub);
    await browser.signIn("ann", WORDS);
    await browser.open(pathOf(link));
    return (await browser.send("/invitation", { token: tokenOf(link) })).html;
  };
  const reset = async (link: string) => {
    const browser = openBrowser(hub);
    await browser.open(pathOf(link));
    await browser.send("/password/reset", { token: tokenOf(link), password: WORDS, again: WORDS });
  };
  await reset((await hub.get("/user/updatePasswordLink", { UserId: id }, BOSS)).link);
  expect(await joins(1)).toContain("temporary password");
  await people().change(() => removeMembership(id, 2));

  const browser = openBrowser(hub);
  await browser.open("/password/forgot");
  await browser.send("/password/forgot", { username: "ann" });
  await reset(await box.linkTo("ann@example.com", "/password/reset"));
  expect(await joins(2)).toContain("You may now enter");
});

test("a user whose password another person may know becomes no Admin", async () => {
  const { id } = await hub.post(
    "/account/users",
    { username: "trap", password: TRAP, mustChangePassword: false },
    BOSS,
  );
  const change = { as: "admin", body: ["Admin"] };
  const refused = { status: 409, body: { detail: expect.stringContaining("/password/forgot") } };
  expect(await hub.call("PUT", `/account/users/${id}/roles`, change)).toMatchObject(refused);
  await people().change(() => setProven(id, 1));
  expect(await hub.call("PUT", `/account/users/${id}/roles`, change)).toMatchObject({ status: 200 });
});

test("of two managers who take the role from each other at one time, one keeps it", async () => {
  const [boss, peer] = [await idOf("boss"), await idOf("peer")];
  await Promise.all([hub.token("boss"), hub.token("peer")]);
  const take = (as: string, id: number) => hub.call("PUT", `/account/users/${id}/roles`, { as, body: ["User"] });
  const answers = await Promise.all([take("boss", peer), take("peer", boss)]);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 403]);
});

test("no cache keeps an answer with a secret", async () => {
  const made = await hub.call("POST", "/user/tokens", { ...BOSS, body: { name: "program", days: 1 } });
  const link = await hub.call("GET", "/user/updatePasswordLink", BOSS);
  for (const { status, headers } of [made, link]) {
    expect(status).toBe(200);
    expect(headers.get("cache-control")).toBe("no-store");
  }
});

test("a deactivated user with the address of another person keeps that person out of no other account", async () => {
  const email = "vic@example.com";
  const { id } = await hub.post("/account/users", { username: "stray", email, password: TRAP, roles: ["User"] }, BOSS);
  expect((await hub.call("POST", `/account/users/${id}/deactivate`, BOSS)).status).toBe(200);
  await hub.post("/account/invitations", { email, roles: ["User"] }, OTHER);
  const link = await box.linkTo(email, "/invitation");
  const browser = openBrowser(hub);
  await browser.open(pathOf(link));
  const { html } = await browser.send("/invitation", { token: tokenOf(link), username: "vic" });
  expect(html).toContain("A temporary password is on its way");
  expect(await people().userByEmail(email)).toMatchObject({ username: "vic", memberships: [{ accountId: 2 }] });
  expect(await people().userById(id)).toMatchObject({ state: "Inactive", email: null });
});
