/** Second factors of users in a browser, and what they end elsewhere. */
import { Secret, TOTP } from "otpauth";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { openBrowser, type TestBrowser } from "./browser.ts";
import { GRANT, startTestHub, type TestHub } from "./fixture.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub({
    tokenThrottle: { failures: 6, addressFailures: 1_000 },
    users: ["once", "codes", "guessed", "programs", "removed", "elsewhere"].map((username) => ({
      username,
      password: `${username}-password`,
      accounts: [1],
      roles: ["Manager"],
    })),
  });
});
afterAll(() => hub.close());

const PERIOD_MS = 30_000;

/** Codes of the app: each call gives the one of the next step. The hub takes one step in advance. */
function appOf(secret: string) {
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  const began = Date.now();
  return (steps: number) => totp.generate({ timestamp: began + steps * PERIOD_MS });
}

async function setUp(browser: TestBrowser) {
  const { html } = await browser.open("/me/second-factor/set-up");
  const secret = (/class="secret">([A-Z2-7 ]+)</.exec(html)?.[1] ?? "").replaceAll(" ", "");
  const code = appOf(secret);
  const shown = await browser.send("/me/second-factor/set-up", { code: code(0) });
  expect(shown.status).toBe(200);
  const recovery = [...shown.html.matchAll(/<code>([a-z0-9-]+)<\/code>/g)].map(([, text = ""]) => text);
  expect(new Set(recovery).size).toBe(10);
  return { code, recovery };
}

describe("a second factor", () => {
  test("is in effect once a code proved it, and then asked for at the sign-in; each code counts once", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("once");
    expect((await browser.open("/me/second-factor/set-up")).html).toContain("QR code");
    expect((await browser.send("/me/second-factor/set-up", { code: "000000" })).status).toBe(422);
    await browser.open("/me");
    await browser.send("/sign-out", {});
    expect(await browser.signIn("once")).toMatchObject({ path: "/me" });

    const { code } = await setUp(browser);
    // The page that shows the codes comes with another cookie, to which its own forms belong.
    expect(await browser.send("/sign-out", {})).toMatchObject({ path: "/sign-in?done=signed-out" });
    const other = openBrowser(hub);
    expect(await other.signIn("once")).toMatchObject({ path: "/sign-in/code" });
    expect((await other.open("/me")).path).toBe("/sign-in/code?next=%2Fme");
    expect(await hub.call("GET", "/sites", { authorization: "", headers: other.script() })).toMatchObject({
      status: 401,
    });
    const [cookie] = other.cookies.values();
    expect(await other.send("/sign-in/code", { code: code(0) })).toMatchObject({ status: 422 });
    expect(await other.send("/sign-in/code", { code: code(1) })).toMatchObject({ path: "/me" });
    expect([...other.cookies.values()][0]).not.toBe(cookie);
    const third = openBrowser(hub);
    await third.signIn("once");
    expect(await third.send("/sign-in/code", { code: code(1) })).toMatchObject({ status: 422 });
  });

  test("has recovery codes, of which each counts once, until new ones are made", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("codes");
    const { code, recovery } = await setUp(browser);
    const signIn = async (text: string) => {
      const other = openBrowser(hub);
      await other.signIn("codes");
      return (await other.send("/sign-in/code", { code: text })).path;
    };
    expect(await signIn(recovery[0]?.toUpperCase().replaceAll("-", " ") ?? "")).toBe("/me");
    expect(await signIn(recovery[0] ?? "")).toBe("/sign-in/code");
    expect((await browser.open("/me/second-factor")).html).toContain("9 are left");
    const renewed = await browser.send("/me/second-factor", { code: code(1), do: "codes" });
    expect(renewed.html).toContain("The former recovery codes have ended");
    expect(await signIn(recovery[1] ?? "")).toBe("/sign-in/code");
  });

  test("stops guesses for the user, from whatever browser", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("guessed");
    const { code } = await setUp(browser);
    const statuses: number[] = [];
    for (let count = 0; count < 7; count += 1) {
      const other = openBrowser(hub);
      await other.signIn("guessed");
      statuses.push((await other.send("/sign-in/code", { code: "000000" })).status);
    }
    expect(statuses).toEqual([422, 422, 422, 422, 422, 422, 429]);
    const right = openBrowser(hub);
    await right.signIn("guessed");
    expect(await right.send("/sign-in/code", { code: code(1) })).toMatchObject({ status: 429 });
  });

  test("ends tokens and sessions that the password alone gave, and gives no more; the answer says why", async () => {
    const [here, elsewhere] = [openBrowser(hub), openBrowser(hub)];
    await here.signIn("programs");
    await elsewhere.signIn("programs");
    const authorization = `Bearer ${await hub.token("programs")}`;
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 200 });
    await setUp(here);
    expect(await hub.call("GET", "/sites", { authorization })).toMatchObject({ status: 401 });
    expect((await elsewhere.open("/me")).path).toContain("/sign-in");
    const grant = await hub.form({
      ...GRANT,
      username: "programs",
      password: "programs-password",
      scope: "datahub-api",
    });
    expect([grant.status, await grant.json()]).toEqual([
      400,
      { error: "invalid_grant", error_description: expect.stringContaining("personal token") },
    ]);
    const basic = `Basic ${Buffer.from("programs:programs-password").toString("base64")}`;
    const pushed = await hub.call("POST", "/push/api/data", { authorization: basic, body: [] });
    expect(pushed).toMatchObject({ status: 401, body: { detail: expect.stringContaining("second factor") } });
  });

  test("is removed with a code, and not without one", async () => {
    const browser = openBrowser(hub);
    await browser.signIn("removed");
    const { code } = await setUp(browser);
    await browser.open("/me/second-factor");
    expect(await browser.send("/me/second-factor", { code: "", do: "remove" })).toMatchObject({ status: 422 });
    const done = await browser.send("/me/second-factor", { code: code(1), do: "remove" });
    expect(done.path).toBe("/me/second-factor?done=removed");
    expect(await openBrowser(hub).signIn("removed")).toMatchObject({ path: "/me" });
  });

  test("and no secret of it is in the audit trail", async () => {
    const rows = await (hub.inside().store as HubStore).people.audit(1, {}, { offset: 0, limit: null });
    const about = rows.rows.filter(({ action }) => action.startsWith("second-factor."));
    expect(about.length).toBeGreaterThan(3);
    expect(about.every(({ facts }) => Object.keys(facts).length === 0)).toBe(true);
  });
});
