/** Sessions of browsers: how they begin and end, and what they are accepted for. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { hashOfCookie, localPath } from "#core/pages/browser.ts";
import { setState } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser } from "./browser.ts";
import { startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub({ tokenThrottle: { failures: 5, addressFailures: 1_000 } });
});
afterAll(() => hub.close());

const store = () => hub.inside().store as HubStore;

describe("a sign-in", () => {
  test("leads to the page that was asked for, and never to another host", async () => {
    const browser = openBrowser(hub);
    expect(await browser.open("/me/sessions")).toMatchObject({ status: 200, path: "/sign-in?next=%2Fme%2Fsessions" });
    const fields = { username: "plain", password: "plain-password" };
    expect(await browser.send("/sign-in", { ...fields, next: "/me/sessions" })).toMatchObject({ path: "/me/sessions" });
    for (const next of ["//evil.example", "https://evil.example/", "/\\evil.example", "/%2e/%2e//evil.example"]) {
      const other = openBrowser(hub);
      await other.open("/sign-in");
      const shown = await other.send("/sign-in", { ...fields, next });
      expect(shown.path.startsWith("/"), next).toBe(true);
      expect(shown.path.startsWith("//"), next).toBe(false);
    }
  });

  test("gives the browser another cookie, and the former one is worth nothing", async () => {
    const browser = openBrowser(hub);
    await browser.open("/sign-in");
    const [before] = browser.cookies.values();
    await browser.send("/sign-in", { username: "plain", password: "plain-password" });
    const [after] = browser.cookies.values();
    expect(after).not.toBe(before);
    await browser.send("/sign-in", { username: "plain", password: "plain-password" });
    const old = await fetch(`${hub.url()}/me`, {
      headers: { cookie: `headgate-session=${after}` },
      redirect: "manual",
    });
    expect(old.status).toBe(303);
    expect(await browser.open("/me")).toMatchObject({ status: 200, path: "/me" });
  });

  test("with a wrong password, an unknown name or no longer active user says the same", async () => {
    const browser = openBrowser(hub);
    const user = await store().people.userByName("second");
    await store().people.change(() => setState(user?.id ?? 0, "Inactive"));
    const words = [];
    for (const [username, password] of [
      ["plain", "wrong-password"],
      ["nobody", "wrong-password"],
      ["second", "second-password"],
    ] as const) {
      const { status, html } = await browser.signIn(username, password);
      words.push([status, /role="alert".*?<\/div>/s.exec(html)?.[0]]);
    }
    await store().people.change(() => setState(user?.id ?? 0, "Active"));
    expect(words[0]).toEqual([422, expect.stringContaining("No user has this name and this password.")]);
    expect(words[1]).toEqual(words[0]);
    expect(words[2]).toEqual(words[0]);
  });

  test("is refused after too many wrong passwords, also the right one", async () => {
    const browser = openBrowser(hub);
    for (let count = 0; count < 5; count += 1) await browser.signIn("pusher", `wrong-password-${count}`);
    const shown = await browser.signIn("pusher");
    expect(shown).toMatchObject({ status: 429, path: "/sign-in" });
    expect(Number(shown.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});

describe("a form", () => {
  test.each([
    ["without a token", { csrf: "" }, {}],
    ["with the token of another session", { csrf: "A".repeat(43) }, {}],
    ["of another site", {}, { "sec-fetch-site": "cross-site" }],
    ["of another host of the same site", {}, { "sec-fetch-site": "same-site" }],
    ["from another origin", {}, { origin: "https://evil.example" }],
  ])("%s changes nothing", async (_, fields, headers) => {
    const browser = openBrowser(hub);
    await browser.signIn("plain");
    const sent = await browser.send("/sign-out", fields, headers);
    expect(sent.status).toBe(403);
    expect(await browser.open("/me")).toMatchObject({ path: "/me" });
  });

  test("of the hub's own page is taken", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("plain");
    const headers = { "sec-fetch-site": "same-origin", origin: "null" };
    expect(await browser.send("/sign-out", {}, headers)).toMatchObject({ path: "/sign-in?done=signed-out" });
    expect((await browser.open("/me")).path).toContain("/sign-in");
  });
});

describe("the JSON interface", () => {
  test("takes a session with its token, and with the rights of its user", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("manager");
    const headers = browser.script();
    expect(await hub.call("GET", "/sites", { authorization: "", headers })).toMatchObject({ status: 401 });
    const call = (method: string, more: Record<string, string>, body?: object) =>
      fetch(`${hub.url()}/sites`, {
        method,
        headers: { "content-type": "application/json", ...more },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    expect((await call("GET", headers)).status).toBe(200);
    const site = { name: "By a browser", typeId: 3, timeZoneId: "UTC" };
    expect((await call("POST", headers, site)).status).toBe(200);
    for (const more of [
      { cookie: headers["cookie"] ?? "" },
      { ...headers, "x-csrf-token": "A".repeat(43) },
      { ...headers, "sec-fetch-site": "cross-site" },
      { ...headers, origin: "https://evil.example" },
    ])
      expect((await call("POST", more, site)).status, JSON.stringify(Object.keys(more))).toBe(401);
    const plain = openBrowser(hub);
    await plain.signIn("plain");
    expect((await call("POST", plain.script(), site)).status).toBe(403);
  });

  test("takes no cookie as a token, and pages take no token", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("manager");
    const [cookie] = browser.cookies.values();
    expect(await hub.call("GET", "/sites", { authorization: `Bearer ${cookie}` })).toMatchObject({ status: 401 });
    const authorization = `Bearer ${await hub.token()}`;
    const page = await fetch(`${hub.url()}/me`, { headers: { authorization }, redirect: "manual" });
    expect([page.status, page.headers.get("location")]).toEqual([303, "/sign-in?next=%2Fme"]);
  });
});

describe("a session", () => {
  test("ends with a sign-out from elsewhere, and is listed until then", async () => {
    const [here, elsewhere] = [openBrowser(hub), openBrowser(hub)];
    await here.signIn("admin");
    await elsewhere.signIn("admin");
    const listed = await here.open("/me/sessions");
    expect(listed.html.match(/This browser/g)).toHaveLength(1);
    expect(await here.send("/me/sessions", {})).toMatchObject({ path: "/me/sessions?done=ended" });
    expect((await elsewhere.open("/me")).path).toContain("/sign-in");
    expect(await here.open("/me")).toMatchObject({ path: "/me" });
  });

  test("of another user cannot be ended", async () => {
    const [here, other] = [openBrowser(hub), openBrowser(hub)];
    await here.signIn("plain");
    await other.signIn("manager");
    const user = await store().people.userByName("manager");
    const [session] = await store().sessions.openedBy(user?.id ?? 0);
    await here.open("/me/sessions");
    await here.send("/me/sessions", { session: `${session?.id}` });
    expect(await other.open("/me")).toMatchObject({ path: "/me" });
  });

  test("ends when it was not used for long", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("manager");
    const user = await store().people.userByName("manager");
    const [session] = await store().sessions.openedBy(user?.id ?? 0);
    await store().sessions.touch(session?.id ?? 0, Date.now() - hub.options.sessions.idle + 60_000);
    expect(await browser.open("/me")).toMatchObject({ path: "/me" });
    const [seen] = await store().sessions.openedBy(user?.id ?? 0);
    expect(Date.now() - (seen?.seenMs ?? 0)).toBeLessThan(60_000);
    await store().sessions.touch(session?.id ?? 0, Date.now() - hub.options.sessions.idle - 1);
    expect((await browser.open("/me")).path).toContain("/sign-in");
  });

  test("ends after its lifetime, however it is used", async () => {
    const own = await startTestHub({ sessions: { lifetime: "1s" } });
    try {
      const browser = openBrowser(own);
      await browser.signIn("plain");
      await expect.poll(async () => (await browser.open("/me")).path).toContain("/sign-in");
    } finally {
      await own.close();
    }
  });

  test("ends at once with the user", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("second");
    const user = await store().people.userByName("second");
    await store().people.change(() => setState(user?.id ?? 0, "Inactive"));
    expect((await browser.open("/me")).path).toContain("/sign-in");
    await store().people.change(() => setState(user?.id ?? 0, "Active"));
    expect((await browser.open("/me")).path).toContain("/sign-in");
  });

  test("keeps no cookie in the store, and the trail says when it began and ended", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("manager");
    const [cookie = ""] = browser.cookies.values();
    expect(cookie).toHaveLength(43);
    expect(await store().sessions.byToken(cookie)).toBeNull();
    await browser.open("/me");
    await browser.send("/sign-out", {});
    const { rows } = await store().people.audit(1, {}, { offset: 0, limit: 2 });
    expect(rows.map(({ action, actor }) => [action, actor.name])).toEqual([
      ["session.ended", "manager"],
      ["session.began", "manager"],
    ]);
  });
});

describe("a password that is changed", () => {
  test("ends all other sessions, and this one continues with another cookie", async () => {
    const own = await startTestHub();
    try {
      const [here, elsewhere] = [openBrowser(own), openBrowser(own)];
      await here.signIn("plain");
      await elsewhere.signIn("plain");
      const [before] = here.cookies.values();
      await here.open("/password/change");
      const again = { password: "quite another one", again: "quite another one" };
      expect(await here.send("/password/change", { current: "wrong-password", ...again })).toMatchObject({
        status: 422,
      });
      const twice = { current: "plain-password", password: "plain-password", again: "plain-password" };
      expect((await here.send("/password/change", twice)).html).toContain("Choose another password");
      const done = await here.send("/password/change", { current: "plain-password", ...again });
      expect(done).toMatchObject({ status: 200, path: "/me?done=password" });
      expect([...here.cookies.values()][0]).not.toBe(before);
      expect((await elsewhere.open("/me")).path).toContain("/sign-in");
      expect((await elsewhere.signIn("plain")).status).toBe(422);
      expect(await elsewhere.signIn("plain", "quite another one")).toMatchObject({ path: "/me" });
    } finally {
      await own.close();
    }
  });
});

describe("a personal token", () => {
  test("is made on a page, shown once, works within its scopes, and ends there", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("manager");
    await browser.open("/me/tokens");
    expect(await browser.send("/me/tokens", { name: "", scopes: "every", days: "9999" })).toMatchObject({
      status: 422,
    });
    const made = await browser.send("/me/tokens", { name: "report <1>", scopes: "datahub-api", days: "30" });
    const token = /hgp_[\w-]{43}/.exec(made.html)?.[0] ?? "";
    const authorization = `Bearer ${token}`;
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
    const pushed = await hub.call("POST", "/push/api/data", { authorization, body: [] });
    expect(pushed).toMatchObject({ status: 401, body: { code: "missing-scope" } });
    const listed = (await browser.open("/me/tokens")).html;
    expect(listed).toContain("report &lt;1>");
    expect(listed).not.toContain("hgp_");
    const [, id = ""] = /name="end" value="(\d+)"/.exec(listed) ?? [];
    const other = openBrowser(hub);
    await other.signIn("plain");
    await other.open("/me/tokens");
    await other.send("/me/tokens", { end: id });
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
    await browser.send("/me/tokens", { end: id });
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 401 });
  });
});

describe("acting as another user", () => {
  test("shows both names, keeps what is the user's own out of reach, and ends with the sign-out", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("manager");
    const user = await store().people.userByName("plain");
    // The page for it belongs to the people of an account.
    const manager = await store().people.userByName("manager");
    const [session] = await store().sessions.openedBy(manager?.id ?? 0);
    const [cookie = ""] = browser.cookies.values();
    await store().sessions.end({ id: session?.id ?? 0, accountId: 1 }, null);
    const facts = { userId: user?.id ?? 0, impersonatorId: manager?.id ?? 0 };
    const actor = { id: manager?.id ?? 0, name: "manager", impersonator: null, address: null };
    const subject = { kind: "user", id: user?.id ?? 0, name: "plain" } as const;
    const fact = { atMs: Date.now(), actor, action: "impersonation.began", subject } as const;
    await store().sessions.open(hashOfCookie(cookie), { ...session!, ...facts }, fact);
    const shown = await browser.open("/me");
    expect(shown.html).toMatch(/You are <strong>manager<\/strong> and act as <strong>plain<\/strong>/);
    for (const path of [
      "/me/tokens",
      "/me/second-factor",
      "/me/second-factor/set-up",
      "/me/sessions",
      "/password/change",
    ])
      expect(await browser.open(path), path).toMatchObject({ status: 403 });
    for (const path of ["/me", "/me/tokens", "/me/second-factor", "/me/sessions", "/password/change"]) {
      await browser.open("/me");
      const sent = await browser.send(path, { name: "x", scopes: "datahub-api", days: "30", firstName: "x" });
      expect(sent, path).toMatchObject({ status: 403 });
    }
    await browser.open("/me");
    await browser.send("/sign-out", {});
    expect((await browser.open("/me")).path).toContain("/sign-in");
    const { rows } = await store().people.audit(1, {}, { offset: 0, limit: 1 });
    expect(rows[0]).toMatchObject({ action: "impersonation.ended", actor: { name: "plain" } });
    expect(rows[0]?.actor.impersonator?.name).toBe("manager");
  });
});

describe("behind a proxy with TLS", () => {
  let proxied: TestHub | null = null;
  afterEach(() => proxied?.close());

  test("the cookie is of this host alone, and links have the path of the hub", async () => {
    proxied = await startTestHub({ publicUrl: "https://data.example.org/hub/" });
    const answer = await fetch(`${proxied.url()}/sign-in`);
    expect(answer.headers.get("set-cookie")).toMatch(
      /^__Host-headgate-session=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    expect(await answer.text()).toContain('action="/hub/sign-in"');
    const led = await fetch(`${proxied.url()}/me`, { redirect: "manual" });
    expect(led.headers.get("location")).toBe("/hub/sign-in?next=%2Fme");
  });
});

test("every page forbids scripts, frames, referrers and caches", async () => {
  const { headers } = await openBrowser(hub).open("/sign-in");
  expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
  expect(headers.get("x-frame-options")).toBe("DENY");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("cache-control")).toBe("no-store");
});

test.each([
  ["/me", "/me"],
  ["/people?page=2", "/people?page=2"],
  ["/a/../b", "/b"],
  ["//evil.example", null],
  ["/\\evil.example", null],
  ["/x\\y", null],
  ["\\/evil.example", null],
  ["/.//evil.example", null],
  ["/a/..//evil.example", null],
  ["https://evil.example", null],
  ["/\tx", null],
  ["/a\r\nSet-Cookie: x", null],
  ["", null],
  [undefined, null],
])("%j leads to %j", (text, path) => {
  expect(localPath(text)).toBe(path);
});
