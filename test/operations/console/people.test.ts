import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { operationsOptions } from "#gateway/operations/options.ts";
import { openBrowser, READ_TOKEN, SECRET, startConsole, type TestBrowser, type TestConsole } from "./fixture.ts";

const COST = { memory: 64, passes: 1 };
let users: readonly { name: string; role: "viewer" | "operator"; password: string }[];
beforeAll(async () => {
  users = [
    { name: "Ada", role: "operator", password: await hashPassword("ada's password", COST) },
    { name: "Vic", role: "viewer", password: await hashPassword("vic's password", COST) },
  ];
});

let console: TestConsole | null = null;
afterEach(async () => {
  await console?.close();
  console = null;
});

async function open(settings: object = {}, more: object = {}): Promise<TestBrowser> {
  console = await startConsole({ console: { users, ...settings }, ...more });
  return openBrowser(console.server.consoleUrl ?? "");
}

async function signIn(browser: TestBrowser, name: string, password: string, next = "") {
  const page = await browser.ask(`/console/sign-in${next}`);
  return browser.submit(page, "/console/sign-in", { name, password });
}

describe("a person with a password", () => {
  it("signs in with a role, in any case of the name, and comes to the page that was asked for", async () => {
    const browser = await open();
    const led = await browser.ask("/console/files/7");
    expect(led.headers.get("location")).toBe("/console/sign-in?next=%2Fconsole%2Ffiles%2F7");
    const form = await browser.ask(led.headers.get("location") ?? "");
    const entered = await browser.submit(form, "/console/sign-in", { name: " ADA ", password: "ada's password" });
    expect(entered.status).toBe(303);
    expect(entered.headers.get("location")).toBe("/console/files/7");
    expect((await browser.ask("/console/files/7")).status).toBe(200);
    expect(await (await browser.ask("/operations/me")).json()).toMatchObject({ name: "Ada", role: "operator" });
  });

  it("is not led to another site after the sign-in", async () => {
    const browser = await open();
    for (const next of ["https://evil.example/", "//evil.example", "/\\evil.example"]) {
      const entered = await signIn(browser, "Ada", "ada's password", `?next=${encodeURIComponent(next)}`);
      expect(entered.headers.get("location")).toBe("/console");
      browser.cookie = "";
    }
  });

  it("is refused with one answer for a wrong password and an unknown name", async () => {
    const browser = await open();
    const answers = [];
    for (const name of ["Ada", "Eve"]) {
      const refused = await signIn(browser, name, "another password");
      expect(refused.status).toBe(422);
      answers.push((await refused.text()).replaceAll(/value="[^"]*"/g, ""));
    }
    expect(answers[0]).toBe(answers[1]);
    expect(answers[0]).toContain("No user has this name and this password.");
    expect((await browser.ask("/operations/me")).status).toBe(401);
    expect(console?.lines.join("")).toContain("a sign-in to the console failed");
  });

  it("is slowed down after wrong passwords, and can sign in when the time is over", async () => {
    const browser = await open({ throttle: { failures: 3, window: "5m" } });
    for (let tries = 0; tries < 3; tries++) expect((await signIn(browser, "Ada", `guess ${tries}`)).status).toBe(422);
    const later = await signIn(browser, "Ada", "ada's password");
    expect(later.status).toBe(429);
    expect(Number(later.headers.get("retry-after"))).toBeGreaterThan(200);
    console?.pass(300_000);
    expect((await signIn(browser, "Ada", "ada's password")).status).toBe(303);
  });

  it("gets another cookie than the visitor had", async () => {
    const browser = await open();
    await browser.ask("/console/sign-in");
    const { cookie: before } = browser;
    await signIn(browser, "Ada", "ada's password");
    expect(browser.cookie).not.toBe(before);
    expect(
      (await openBrowser(console?.server.url ?? "").ask("/operations/me", { headers: { cookie: before } })).status,
    ).toBe(401);
  });

  it("signs in by a form of our own pages alone", async () => {
    const browser = await open();
    await browser.ask("/console/sign-in");
    const body = new URLSearchParams({ name: "Ada", password: "ada's password" });
    expect((await browser.ask("/console/sign-in", { method: "POST", body })).status).toBe(403);
    const form = await browser.ask("/console/sign-in");
    const hidden = /name="csrf" value="([^"]+)"/.exec(await form.text())?.[1] ?? "";
    body.set("csrf", hidden);
    const headers = { "sec-fetch-site": "cross-site" };
    expect((await browser.ask("/console/sign-in", { method: "POST", body, headers })).status).toBe(403);
  });

  it("has no use for a link that signs in", async () => {
    const browser = await open();
    expect(console?.server.consoleLink("eve")).toBeNull();
    const headers = { authorization: `Bearer ${SECRET}` };
    const refused = await fetch(`${console?.server.url}/operations/console/links`, { method: "POST", headers });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ code: "HG-OPS-007" });
    expect((await browser.ask("/console/enter?code=x")).status).toBe(403);
  });

  it("hostile names of people are texts", async () => {
    const browser = await open();
    const refused = await signIn(browser, '"><script>alert(1)</script>', "x");
    expect(await refused.text()).not.toContain("<script>");
  });
});

describe("a viewer", () => {
  it("sees, and changes nothing", async () => {
    const browser = await open();
    await signIn(browser, "vic", "vic's password");
    expect((await browser.ask("/operations/runs")).status).toBe(200);
    const refused = await browser.post("/operations/orders", {});
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ detail: "Vic is a viewer, and this is for operators" });
    expect((await browser.ask("/operations/nothing")).status).toBe(404);
  });
});

describe("the address of the console", () => {
  it("may be another one than that of programs, which then has no pages and takes no sessions", async () => {
    const browser = await open({ listen: "127.0.0.1:0" });
    expect((await signIn(browser, "Ada", "ada's password")).status).toBe(303);
    expect((await browser.ask("/operations/me")).status).toBe(200);
    const programs = openBrowser(console?.server.url ?? "");
    programs.cookie = browser.cookie;
    for (const path of ["/operations/me", "/console", "/console/sign-in", "/"])
      expect((await programs.ask(path)).status).toBe(401);
    const headers = { authorization: `Bearer ${READ_TOKEN}` };
    expect((await programs.ask("/operations/me", { headers })).status).toBe(200);
  });

  it("behind a proxy is the public one, with a path and a cookie that only it gets", async () => {
    const browser = await open({ publicUrl: "https://gateway.example.com/headgate/" });
    expect(console?.server.consoleUrl).toBe("https://gateway.example.com/headgate/console");
    const direct = openBrowser(console?.server.url ?? "");
    const page = await direct.ask("/console/sign-in");
    const [cookie] = page.headers.getSetCookie();
    expect(cookie).toMatch(/^__Host-headgate-console-public=[\w-]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    expect(await page.text()).toContain('action="/headgate/console/sign-in"');
    expect(browser).toBeDefined();
  });

  it("may speak TLS itself", async () => {
    const folder = mkdtempSync(join(tmpdir(), "headgate-"));
    const [key, cert] = [join(folder, "key"), join(folder, "cert")];
    const subject = ["-subj", "/CN=localhost", "-newkey", "rsa:2048", "-nodes", "-days", "2"];
    execFileSync("openssl", ["req", "-x509", ...subject, "-keyout", key, "-out", cert], { stdio: "pipe" });
    const tls = { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
    rmSync(folder, { recursive: true });
    await open({ listen: "127.0.0.1:0", tls });
    const url = console?.server.consoleUrl ?? "";
    expect(url).toMatch(/^https:/);
    const cookies = await new Promise((resolve, reject) => {
      request(`${url}/sign-in`, { ca: tls.cert, servername: "localhost", checkServerIdentity: () => undefined })
        .on("response", ({ headers }) => resolve(headers["set-cookie"]))
        .on("error", reject)
        .end();
    });
    expect(cookies).toEqual([expect.stringMatching(/^__Host-headgate-console-\d+=.*; Secure; SameSite=Strict$/)]);
  });

  it.each([
    [{ listen: "0.0.0.0:9464" }, "needs TLS"],
    [{ listen: "127.0.0.1:9464", console: { listen: "10.0.0.1:9443" } }, "needs TLS"],
    [{ listen: "0.0.0.0:9464", console: { publicUrl: "http://gateway.example.com" } }, "needs TLS"],
    [{ listen: "127.0.0.1:9464", console: { listen: "10.0.0.1:9443", users: [] } }, "needs people"],
    [{ listen: "127.0.0.1:9464", console: { tls: { key: "k", cert: "c" } } }, "requires `listen`"],
  ])("beyond loopback is refused without protection: %j", (given, words) => {
    const settings = { ...given, console: { users, ...("console" in given ? given.console : {}) } };
    const { success, error } = operationsOptions.safeParse(settings);
    expect(success).toBe(false);
    expect(error?.message).toContain(words);
  });

  it("is not served, but explained, where the gateway listens beyond loopback without settings for it", async () => {
    console = await startConsole({ listen: "0.0.0.0:0" });
    expect(console.server.consoleUrl).toBeNull();
    expect(console.server.consoleLink("eve")).toBeNull();
    const browser = openBrowser(console.server.url.replace("0.0.0.0", "127.0.0.1"));
    const page = await browser.ask("/console/sign-in");
    expect(await page.text()).toContain("operations.console.users");
    expect((await browser.ask("/console/enter?code=x")).status).toBe(403);
  });

  it("may be a port of a container that its machine offers to itself alone", async () => {
    const publicUrl = "http://localhost:9464";
    console = await startConsole({ listen: "0.0.0.0:0", console: { publicUrl } });
    const link = console.server.consoleLink("ada") ?? "";
    expect(link).toMatch(/^http:\/\/localhost:9464\/console\/enter\?code=/);
    const browser = openBrowser(console.server.url.replace("0.0.0.0", "127.0.0.1"));
    expect((await browser.ask(new URL(link).pathname + new URL(link).search)).status).toBe(200);
    expect((await browser.ask("/operations/me")).status).toBe(200);
  });

  it("takes no hash that is none, and no two users of one name", () => {
    const [ada] = users;
    const wrong = operationsOptions.safeParse({ console: { users: [{ ...ada, password: "plain" }] } });
    expect(wrong.error?.message).toContain("headgate console password");
    const twice = operationsOptions.safeParse({ console: { users: [ada, { ...ada, name: "ADA" }] } });
    expect(twice.error?.message).toContain("two users");
  });
});
