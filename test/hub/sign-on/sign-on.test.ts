/** Single sign-on of people, from the button to their own page, at a real provider. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLog } from "#core/log.ts";
import { change } from "#hub/store/database.ts";
import type { UserRecord } from "#hub/store/people/records.ts";
import { createUser, putMembership, setState, setTemporaryPassword } from "#hub/store/people/users.ts";
import { offerSecondFactor } from "#hub/store/sessions/second-factors.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "../browser.ts";
import { GRANT, startTestHub, type TestHub } from "../fixture.ts";
import { type MailBox, openMailBox, pathOf as pathOfLink, tokenOf } from "../mail/mail-box.ts";
import { CLIENT, type RealProvider, startProvider } from "./real-provider.ts";

const PUBLIC = "http://hub.example.org";
const NAMES = ["company", "closed", "trusting"];

let provider: RealProvider;
let hub: TestHub;
let box: MailBox;
const logged: string[] = [];
beforeAll(async () => {
  provider = await startProvider(NAMES.map((name) => `${PUBLIC}/sign-in/oidc/${name}/callback`));
  const { id: clientId, secret: clientSecret } = CLIENT;
  const scopes = ["openid", "profile", "email", "groups"];
  const common = { issuer: provider.issuer, clientId, clientSecret, scopes };
  const grants = [
    { claim: "groups", value: "managers", accounts: [1], roles: ["Manager"] },
    { claim: "groups", value: "readers", accounts: [1, 2] },
    { claim: "groups", value: "operators", accounts: [1], roles: ["Admin"] },
  ];
  const oidc = [
    { ...common, name: "company", label: "Sign in with Company", createUsers: true, grants },
    { ...common, name: "closed", label: "Sign in with Closed" },
    { ...common, name: "trusting", label: "Sign in with Trusting", matchByEmail: true },
  ];
  const log = createLog("warn", { write: (line) => void logged.push(line) });
  box = await openMailBox(PUBLIC);
  hub = await startTestHub({ ...box.options, signIn: { oidc } }, true, { log });
});
afterAll(async () => {
  await hub.close();
  await provider.stop();
  await box.close();
});

const store = () => hub.inside().store as HubStore;
const user = async (name: string): Promise<UserRecord | null> => store().people.userByName(name);
const rolesOf = async (name: string) =>
  Object.fromEntries((await user(name))?.memberships.map(({ accountId, roles }) => [accountId, roles]) ?? []);
const pathOf = ({ pathname, search }: URL) => pathname + search;

/** Begins in a new browser; `come` takes the answer of the provider back to the hub. */
async function begun(name: string, query = "") {
  const browser = openBrowser(hub);
  const { status, headers } = await browser.request("GET", `/sign-in/oidc/${name}${query}`);
  expect(status).toBe(303);
  const url = headers.get("location") ?? "";
  const come = async (callback: URL) => browser.open(pathOf(callback));
  return { browser, url, come, as: async (login: string) => come(await provider.signIn(url, login)) };
}

const signedOn = async (name: string, login: string) => (await begun(name)).as(login);
/** The account's records of a user, oldest first. */
async function audited(accountId: number, name: string) {
  const { rows } = await store().people.audit(accountId, {}, { limit: 200, offset: 0 });
  return rows.filter(({ subject }) => subject.name === name).toReversed();
}

describe("a person whom a grant lets in", () => {
  test("becomes a user, and reaches the page that was asked for", async () => {
    const names = { preferred_username: "ann", given_name: "Ann", family_name: "Lee" };
    provider.people.set("ann", { ...names, email: "ann@example.org", email_verified: true, groups: ["managers"] });
    const page = await openBrowser(hub).open("/me/sessions");
    const link = /href="(\/sign-in\/oidc\/company[^"]*)"[^>]*>([^<]+)</.exec(page.html);
    expect(link?.[2]).toBe("Sign in with Company");
    const { browser, as } = await begun("company", (link?.[1] ?? "").replace(/^[^?]*/, ""));
    expect(await as("ann")).toMatchObject({ status: 200, path: "/me/sessions" });
    const me = await browser.open("/me");
    expect(me.html).toContain("another service signs you in");
    expect(await user("ann")).toMatchObject({
      state: "Active",
      origin: "people",
      passwordHash: null,
      email: "ann@example.org",
      firstName: "Ann",
      lastName: "Lee",
      memberships: [{ accountId: 1, roles: ["Manager"] }],
    });
    const records = await audited(1, "ann");
    expect(records.map(({ action }) => action)).toEqual(
      expect.arrayContaining(["user.created", "membership.added", "session.began"]),
    );
    expect(records[0]).toMatchObject({ actor: { id: null, name: "single sign-on by company" } });
  });

  test("is the same user with other claims, whose accounts and roles they set", async () => {
    provider.people.set("bob", { preferred_username: "bob", groups: ["readers", "managers"] });
    await signedOn("company", "bob");
    expect(await rolesOf("bob")).toEqual({ 1: ["Manager", "User"], 2: ["User"] });
    const id = (await user("bob"))?.id;
    provider.people.set("bob", { preferred_username: "robert", groups: ["managers"] });
    await signedOn("company", "bob");
    expect(await rolesOf("bob")).toEqual({ 1: ["Manager"] });
    expect((await user("bob"))?.id).toBe(id);
    expect(await user("robert")).toBe(null);
    expect((await audited(1, "bob")).find(({ action }) => action === "roles.changed")?.facts).toEqual({
      roles: ["Manager"],
      before: ["Manager", "User"],
    });
    expect((await audited(2, "bob")).map(({ action }) => action)).toContain("membership.removed");
    provider.people.set("bob", {});
    const page = await signedOn("company", "bob");
    expect(page).toMatchObject({ status: 403 });
    expect(page.html).toContain("You may enter no account");
    expect(await rolesOf("bob")).toEqual({});
  });

  test("is one user, however many sign-ins are first", async () => {
    provider.people.set("cid", { preferred_username: "cid", groups: ["readers"] });
    const attempts = await Promise.all([begun("company"), begun("company"), begun("company")]);
    const pages = await Promise.all(attempts.map(({ as }) => as("cid")));
    expect(pages.map(({ path }) => path)).toEqual(["/me", "/me", "/me"]);
    expect((await audited(1, "cid")).filter(({ action }) => action === "user.created")).toHaveLength(1);
  });

  test("never is a user of the same name whom the provider does not know", async () => {
    provider.people.set("wolf", { preferred_username: "Manager", groups: ["readers"] });
    await signedOn("company", "wolf");
    expect(await user("wolf")).toMatchObject({ username: "wolf", memberships: [{ accountId: 1 }, { accountId: 2 }] });
    expect((await user("manager"))?.passwordHash).not.toBe(null);
  });

  test("is Admin only by a grant that names it", async () => {
    provider.people.set("ops", { preferred_username: "ops", groups: ["operators", "readers"], roles: ["Admin"] });
    await signedOn("company", "ops");
    expect(await rolesOf("ops")).toEqual({ 1: ["User", "Admin"], 2: ["User"] });
    provider.people.set("ops", { preferred_username: "ops", groups: ["readers"], roles: ["Admin"] });
    await signedOn("company", "ops");
    expect(await rolesOf("ops")).toEqual({ 1: ["User"], 2: ["User"] });
  });

  test("gets no token by a password, and the reason", async () => {
    provider.people.set("dan", { preferred_username: "dan", groups: ["readers"] });
    await signedOn("company", "dan");
    const answer = await hub.form({ ...GRANT, scope: "datahub-api", username: "dan", password: "any-password" });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: "invalid_grant",
      error_description: expect.stringContaining("has no password here"),
    });
    const { id = 0 } = (await store().people.userByName("dan")) ?? {};
    const link = await hub.call("GET", "/user/updatePasswordLink", { as: "admin", query: { UserId: id } });
    expect(link).toMatchObject({ status: 409, body: { detail: expect.stringContaining("dan has no password here") } });
  });
});

describe("a user with the e-mail address of the person", () => {
  async function invited(username: string, email: string): Promise<void> {
    await store().people.change(function* () {
      const user = { username, email, state: "Invited", passwordHash: null, origin: "people" } as const;
      const id = yield* createUser({ ...user, provenMs: 1 });
      if (typeof id !== "number") throw new Error(id);
      yield* putMembership(id, { accountId: 2, roles: ["Datapusher"], origin: "people" });
      yield* setTemporaryPassword(id, "$hash", Date.now() + 60_000);
    });
  }

  test("is the person where the provider has verified it, and needs the temporary password no more", async () => {
    await invited("eva", "Eva@example.org");
    provider.people.set("e-1", { email: "eva@example.org", email_verified: true });
    expect(await signedOn("trusting", "e-1")).toMatchObject({ status: 200, path: "/me" });
    expect(await user("eva")).toMatchObject({ state: "Active", passwordHash: null, mustChangePassword: false });
    expect(await rolesOf("eva")).toEqual({ 2: ["Datapusher"] });
    expect((await audited(2, "eva")).find(({ action }) => action === "sign-on.linked")?.facts).toEqual({
      issuer: provider.issuer,
      subject: "e-1",
      by: "e-mail address",
    });
    // From now on by the subject alone.
    provider.people.set("e-1", {});
    expect(await signedOn("closed", "e-1")).toMatchObject({ status: 200, path: "/me" });
  });

  test.each([
    ["trusting", { email: "fay@example.org", email_verified: false }],
    ["trusting", { email: "fay@example.org" }],
    ["trusting", { email: "fay@example.org", email_verified: "true" }],
    ["closed", { email: "fay@example.org", email_verified: true }],
  ])("is not the person at %s with %j", async (name, claims) => {
    if ((await user("fay")) === null) await invited("fay", "fay@example.org");
    provider.people.set("f-1", claims);
    const page = await signedOn(name, "f-1");
    expect(page).toMatchObject({ status: 403 });
    expect(page.html).toContain("This hub does not know you");
    expect((await user("fay"))?.state).toBe("Invited");
  });

  test("is asked by mail first, where a manager gave the address; all that was set before ends", async () => {
    const body = { username: "trap", email: "Vic@example.org", password: "trap-password", mustChangePassword: false };
    const made = await hub.post("/account/users", body);
    const { token } = await hub.post("/user/tokens", { name: "kept", days: 1 }, { as: "trap" });
    const manager = openBrowser(hub);
    await manager.signIn("trap");
    await store().people.change(() => offerSecondFactor(made.id, "SECRET"));
    provider.people.set("v-1", { email: "vic@example.org", email_verified: true });

    const page = await signedOn("trusting", "v-1");
    expect(page).toMatchObject({ status: 403 });
    expect(page.html).toContain("Confirm your address");
    expect((await manager.open("/me")).status).toBe(200);
    const first = await box.linkTo("Vic@example.org", "/sign-in/confirm");
    await signedOn("trusting", "v-1");
    await expect.poll(() => box.to("Vic@example.org")).toHaveLength(2);
    const link = await box.linkTo("Vic@example.org", "/sign-in/confirm");
    const reader = openBrowser(hub);
    expect(await reader.open(pathOfLink(first))).toMatchObject({ status: 410 });
    expect((await reader.open(pathOfLink(link))).html).toContain("It was me");
    const confirm = () => reader.send("/sign-in/confirm", { token: tokenOf(link) });
    expect((await confirm()).html).toContain("Your address is confirmed");
    expect(await confirm()).toMatchObject({ status: 410 });

    expect(await user("trap")).toMatchObject({ passwordHash: null, totp: null, state: "Active" });
    expect((await manager.open("/me")).path).toMatch(/^\/sign-in/);
    expect(await hub.call("GET", "/user", { authorization: `Bearer ${token}` })).toMatchObject({ status: 401 });
    expect(await signedOn("trusting", "v-1")).toMatchObject({ status: 200, path: "/me" });
    expect((await audited(1, "trap")).find(({ action }) => action === "sign-on.linked")?.facts).toMatchObject({
      subject: "v-1",
      by: "confirmed address",
    });
  });

  test("is sent five mails in an hour at most, and none after the address changed", async () => {
    const made = await hub.post("/account/users", {
      username: "many",
      email: "many@example.org",
      password: "any words",
    });
    provider.people.set("m-1", { email: "many@example.org", email_verified: true });
    for (let at = 0; at < 6; at += 1) await signedOn("trusting", "m-1");
    await expect.poll(() => box.to("many@example.org")).toHaveLength(5);
    const link = await box.linkTo("many@example.org", "/sign-in/confirm");
    expect(await openBrowser(hub).open(pathOfLink(link))).toMatchObject({ status: 200 });
    await hub.ok("PUT", `/account/users/${made.id}`, { body: { email: "other@example.org" } });
    expect(await openBrowser(hub).open(pathOfLink(link))).toMatchObject({ status: 410 });
  });

  test("is refused with the reason, where a manager gave the address and the hub sends no mails", async () => {
    const person = { issuer: "i", subject: "n-1", usernames: [], email: "nan@example.org", matchesEmail: true };
    await hub.post("/account/users", { username: "nan", email: "nan@example.org", password: "any words" });
    const actor = { id: null, name: "a provider", impersonator: null, address: null };
    const entered = await store().externalIdentities.enter(
      { ...person, firstName: null, lastName: null, granted: [] },
      { atMs: 0, actor, confirmation: null },
    );
    expect(entered).toEqual({ kind: "unproven-address" });
  });

  test("enters a further account without the password that a manager gave", async () => {
    const body = { username: "two", password: "two-password", mustChangePassword: false };
    const { id } = await hub.post("/account/users", body);
    await hub.token("two");
    const sql = "INSERT INTO external_identity (issuer, subject, user_id, linked_ms) VALUES (?, 'two', ?, 0)";
    await store().people.change(() => change(sql, provider.issuer, id));
    provider.people.set("two", { groups: ["readers"] });
    expect(await signedOn("company", "two")).toMatchObject({ status: 200 });
    expect(await rolesOf("two")).toEqual({ 1: ["User"], 2: ["User"] });
    expect(await user("two")).toMatchObject({ passwordHash: null });
    expect(await hub.call("GET", "/user", { as: "two" })).toMatchObject({ status: 401 });
  });

  test("keeps the address, when another person is created with it", async () => {
    await invited("gil", "gil@example.org");
    const own = { preferred_username: "g2", email: "gil@example.org", email_verified: true, groups: ["readers"] };
    provider.people.set("g-2", own);
    expect(await signedOn("company", "g-2")).toMatchObject({ status: 200 });
    expect(await user("g2")).toMatchObject({ email: null });
  });
});

describe("a page says why, and what to do, when", () => {
  const last = () => JSON.parse(logged.at(-1) ?? "{}");

  test("no grant lets a new person in, of whom nothing is kept", async () => {
    provider.people.set("hal", { preferred_username: "hal", groups: ["others"] });
    const page = await signedOn("company", "hal");
    expect(page).toMatchObject({ status: 403 });
    expect(page.html).toContain("You may enter no account");
    expect(page.html).toContain("/sign-in/oidc/company?as=another");
    expect(await user("hal")).toBe(null);
    expect(last()).toMatchObject({ level: "warn", provider: "company", why: "no-account" });
  });

  test("the user was deactivated", async () => {
    provider.people.set("ida", { preferred_username: "ida", groups: ["readers"] });
    const { browser, as } = await begun("company");
    await as("ida");
    const id = (await user("ida"))?.id ?? 0;
    await store().people.change(() => setState(id, "Inactive"));
    expect(await browser.open("/me")).toMatchObject({ path: expect.stringMatching(/^\/sign-in/) });
    const page = await signedOn("company", "ida");
    expect(page).toMatchObject({ status: 403 });
    expect(page.html).toContain("Your user is deactivated");
    expect((await user("ida"))?.state).toBe("Inactive");
  });

  test("the answer comes twice, in another browser, or from another provider", async () => {
    provider.people.set("jon", { preferred_username: "jon", groups: ["readers"] });
    const { browser, url, come } = await begun("company");
    const callback = await provider.signIn(url, "jon");
    const other = openBrowser(hub);
    const stolen = await other.open(pathOf(callback));
    expect(stolen).toMatchObject({ status: 400 });
    expect(stolen.html).toContain("This sign-in has lapsed");
    expect(await other.open("/me")).toMatchObject({ path: expect.stringMatching(/^\/sign-in/) });
    expect(await come(callback)).toMatchObject({ status: 200, path: "/me" });
    // Loaded again: the person is signed in.
    expect(await come(callback)).toMatchObject({ status: 200, path: "/me" });
    await browser.request("POST", "/sign-out", { body: new URLSearchParams({ csrf: browser.csrf() }) });
    expect(await come(callback)).toMatchObject({ status: 400 });
    const mixed = await begun("closed");
    expect(await mixed.come(await provider.signIn((await begun("company")).url, "jon"))).toMatchObject({ status: 400 });
    expect(last()).toMatchObject({ why: "expired" });
  });

  test("the person declines", async () => {
    const { url, come } = await begun("company");
    const page = await come(await provider.decline(url));
    expect(page).toMatchObject({ status: 403 });
    expect(page.html).toContain("You were not signed in");
  });

  test("the provider is down, which no start of the hub waits for", async () => {
    await provider.stop();
    await hub.restart();
    const page = await openBrowser(hub).open("/sign-in/oidc/company");
    expect(page).toMatchObject({ status: 503 });
    expect(page.html).toContain("The sign-in service does not answer");
    expect(last()).toMatchObject({ why: "provider", cause: expect.stringContaining("fetch failed") });
    await provider.start();
    expect((await begun("company")).url).toContain(provider.issuer);
  });

  test("there is no such provider", async () => {
    expect(await openBrowser(hub).open("/sign-in/oidc/nobody")).toMatchObject({ status: 404 });
  });

  test("and its log holds no secret, no code and no token", () => {
    const text = logged.join("\n");
    expect(logged.length).toBeGreaterThan(5);
    expect(text).not.toContain(CLIENT.secret);
    expect(text).not.toMatch(/code=|eyJ/);
  });
});
