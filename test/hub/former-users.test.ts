/**
 * A user who was deactivated, lost a role, has another password or left the account: every route is tried with each
 * credential of before, and so is what was opened before and works beside the routes (`walls/openings.ts`). Sessions
 * of SFTP and FTP: `transfer/former.test.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isPage } from "#hub/http/access.ts";
import { ACCESS } from "#hub/http/route.ts";
import type { HubStore } from "#hub/store/store.ts";
import { hasRight } from "#hub/token/rights.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";
import { type MailBox, openMailBox, pathOf, tokenOf } from "./mail/mail-box.ts";
import { type Attempt, attemptsOf, sentOf } from "./walls/attempts.ts";
import { HIDDEN, holdEverything } from "./walls/held.ts";
import { LOSS_NAMES, LOSSES, type LossName, type Person, personFor, usersFor } from "./walls/losses.ts";
import { OPENINGS } from "./walls/openings.ts";
import { rowsOf } from "./walls/store-rows.ts";

const OPENED = Object.keys(OPENINGS);
/** The first use of users is the routes. */
const USES = ["routes", ...OPENED];

let box: MailBox;
let hub: TestHub;
beforeAll(async () => {
  box = await openMailBox();
  const user = (username: string, accounts: readonly number[], roles: readonly string[]) => ({
    ...{ username, password: `${username}-password`, accounts: [...accounts], roles: [...roles] },
  });
  hub = await startTestHub({
    ...box.options,
    tokenThrottle: { failures: 10_000, addressFailures: 100_000 },
    users: [user("manager", [1, 2], ["Manager"]), user("second", [2], ["Manager"]), user("pusher", [1], ["User"])]
      .concat(user("plain", [1], ["User"]), user("admin", [1], ["Admin"]))
      .concat(usersFor(USES) as never),
  });
  await holdEverything(hub);
});
afterAll(async () => {
  await hub.close();
  await box.close();
});

const people = () => (hub.inside().store as HubStore).people;
const idOf = async (username: string) => (await people().userByName(username))?.id ?? 0;

/** Of account 1; mails by their number, since they are sent meanwhile; without sessions, which `/sign-out` ends. */
async function everything() {
  const { session: _, mail, ...rows } = await rowsOf(hub.options.store, 1);
  return { ...rows, mails: mail?.length };
}

/** What the routes are called with. */
const CREDENTIALS: Readonly<Record<string, (person: Person) => Promise<Record<string, string>>>> = {
  "an access token": async ({ name }) => ({ authorization: `Bearer ${await hub.token(name)}` }),
  "a personal token": async ({ name }) => {
    const body = { name, days: 1, scopes: ["datahub-api", "push-data"] };
    const { token } = await hub.post("/user/tokens", body, { as: name });
    // Notes its use, which is noted once a minute.
    await hub.get("/user", {}, { authorization: `Bearer ${token}` });
    return { authorization: `Bearer ${token}` };
  },
  "a session of a browser": async ({ name }) => {
    const browser = openBrowser(hub);
    await browser.signIn(name);
    return browser.script();
  },
  "name and password": async ({ name }) => ({
    authorization: `Basic ${Buffer.from(`${name}:${name}-password`).toString("base64")}`,
  }),
};

/** What a loss leaves of a credential. */
function leftOf(loss: LossName, credential: string): "nothing" | "a lower role" | "all" {
  if (loss === "a lost role") return "a lower role";
  const isKept = loss.startsWith("a password") && credential === "a personal token";
  return isKept ? "all" : "nothing";
}

async function called({ route, path, ...attempt }: Attempt, headers: Record<string, string>) {
  const { raw, headers: typed } = sentOf({ route, path, ...attempt });
  const form = new URLSearchParams({ csrf: headers["x-csrf-token"] ?? "" });
  const isForm = isPage(route.facts) && route.method === "POST";
  const body = isForm ? form : raw;
  const init = { method: route.method, redirect: "manual" as const, headers: { ...typed, ...headers } };
  const answer = await fetch(hub.url() + path, { ...init, ...(body === undefined ? {} : { body }) });
  return { status: answer.status, location: answer.headers.get("location") ?? "", text: await answer.text() };
}

const nameOf = ({ route }: Attempt) => `${route.method} ${route.url}`;
const LOWER = { memberships: [{ accountId: 1, roles: ["User"], businessId: null, origin: "people" }] } as const;

/** Whether the role that is left may call it. */
function isLeft({ route }: Attempt): boolean {
  const { right } = ACCESS[route.facts.access] ?? { right: null };
  return right === null || hasRight(LOWER as never, 1, right);
}

/** Every route of the interface, and with a session of a browser every page; once each. */
function attemptsWith(credential: string): readonly Attempt[] {
  const isBrowser = credential === "a session of a browser";
  return hub.routes
    .filter(({ facts }) => facts.access !== "open")
    .flatMap((route): Attempt[] => {
      const page = isPage(route.facts);
      if (page && !isBrowser) return [];
      return page ? [{ route, path: route.url.replace(/:\w+/, "1") }] : attemptsOf(route).slice(0, 1);
    });
}

/** What is wrong with the answer to one who may not call the route; null: nothing. */
async function breach(attempt: Attempt, headers: Record<string, string>, statuses: readonly number[]) {
  const { status, location, text } = await called(attempt, headers);
  const led = status === 303 && location.startsWith("/sign-in?");
  const isVisitors = attempt.route.facts.access === "visitor";
  if (text.includes(HIDDEN)) return `${nameOf(attempt)} shows ${HIDDEN}`;
  return led || isVisitors || statuses.includes(status) ? null : `${nameOf(attempt)}: ${status}`;
}

describe.each(LOSS_NAMES)("after %s", (loss) => {
  test("each route refuses each credential as far as the rights are lost, and nothing changes", async () => {
    const person = await personFor({ idOf }, 0, loss);
    const given = new Map<string, Record<string, string>>();
    for (const [name, made] of Object.entries(CREDENTIALS)) {
      const headers = { ...(await made(person)), "content-type": "application/json" };
      const pushed = await fetch(`${hub.url()}/push/api/data`, { method: "POST", headers, body: "[]" });
      expect(pushed.status, name).toBe(200);
      given.set(name, headers);
    }
    await expect.poll(async () => (await hub.get("/health"))["pendingOperations"]).toBe(0);
    await LOSSES[loss](hub, person);
    const before = await everything();
    const breaches: string[] = [];
    let tried = 0;
    for (const [name, headers] of given) {
      const left = leftOf(loss, name);
      if (left === "all") continue;
      const refused = attemptsWith(name).filter((attempt) => left === "nothing" || !isLeft(attempt));
      tried += refused.length;
      // Name and password open no route but pushes, and these for the account that is left.
      const isOther = loss === "an account left" && name === "name and password";
      const statuses = isOther
        ? [401, 200, 404]
        : left === "nothing" || name === "name and password"
          ? [401, 403]
          : [403];
      for (const attempt of refused) {
        const found = await breach(attempt, headers, statuses);
        if (found !== null) breaches.push(`${name}: ${found}`);
      }
    }
    expect(breaches).toEqual([]);
    expect(await everything()).toEqual(before);
    expect(tried).toBeGreaterThan(200);
  });
});

test("after a lost role each route that the other role may call still answers", async () => {
  const person = await personFor({ idOf }, 0, "a lost role");
  const headers = { authorization: `Bearer ${await hub.token(person.name)}` };
  const breaches: string[] = [];
  for (const attempt of attemptsWith("an access token").filter(isLeft)) {
    const { status } = await called(attempt, headers);
    if (status === 401 || status === 403) breaches.push(`${nameOf(attempt)}: ${status}`);
  }
  expect(breaches).toEqual([]);
});

test.each(["a password by a manager's link", "a password of the own"] as const)(
  "%s keeps personal tokens",
  async (loss) => {
    const person = await personFor({ idOf }, 0, loss);
    const [kept] = await people().apiTokens(person.id, 1);
    expect(kept?.name).toBe(person.name);
  },
);

test("one who left the account still enters the other one", async () => {
  const { name } = await personFor({ idOf }, 0, "an account left");
  expect(await hub.call("GET", "/account", { as: name, account: 2 })).toMatchObject({ status: 200, body: { id: 2 } });
});

test.each(OPENED)("%s works on after the losses that leave its right, and after no other", async (name) => {
  const opening = OPENINGS[name];
  if (opening === undefined) throw new Error("unknown");
  const made = LOSS_NAMES.map(async (loss) => {
    const person = await personFor({ idOf }, USES.indexOf(name), loss);
    return { loss, person, again: await opening.open({ hub, box, person }) };
  });
  const works: string[] = [];
  const opened = await Promise.all(made);
  for (const { loss, person } of opened) await LOSSES[loss](hub, person);
  for (const { loss, again } of opened) if (await again()) works.push(loss);
  expect(works.sort()).toEqual([...opening.works].sort());
});

test("a removed user does not return by an invitation of before", async () => {
  const email = "returns@example.com";
  await hub.post("/account/invitations", { email, roles: ["User"] });
  const link = await box.linkTo(email, "/invitation");
  const password = "returns-password";
  const { id } = await hub.post("/account/users", { username: "returns", email, password, mustChangePassword: false });
  expect((await hub.call("DELETE", `/account/users/${id}`)).status).toBe(204);
  const browser = openBrowser(hub);
  expect((await browser.open(pathOf(link))).status).toBe(410);
  await browser.send("/invitation", { token: tokenOf(link) });
  expect(await people().userById(id)).toMatchObject({ state: "Inactive", memberships: [] });
});
