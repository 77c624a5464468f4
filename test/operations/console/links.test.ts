import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openBrowser, SECRET, startConsole, type TestConsole } from "./fixture.ts";

let console: TestConsole;
let url: string;
beforeEach(async () => {
  console = await startConsole();
  url = console.server.url;
});
afterEach(() => console.close());

const link = () => console.server.consoleLink("ada") ?? "";

describe("a link that signs in once", () => {
  it("signs in as an operator of the name that it was made for", async () => {
    const browser = openBrowser(url);
    expect((await browser.ask("/console")).headers.get("location")).toBe("/console/sign-in?next=%2Fconsole");
    const entered = await browser.ask(link());
    expect(entered.status).toBe(200);
    expect(await entered.text()).toContain('content="0;url=/console"');
    const page = await browser.ask("/console/files/1?q=x");
    expect(page.status).toBe(200);
    const html = await page.text();
    expect(html).toContain('<div id="console" data-base>');
    expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
    const me = (await (await browser.ask("/operations/me")).json()) as { csrfToken: string };
    expect(me).toMatchObject({ name: "ada", role: "operator", gateway: { node: null, version: expect.any(String) } });
    expect(html).toContain(`<meta name="csrf-token" content="${me.csrfToken}"`);
  });

  it("is used up by its first use, except for the browser that used it", async () => {
    const [first, second] = [openBrowser(url), openBrowser(url)];
    const address = link();
    expect((await first.ask(address)).status).toBe(200);
    const refused = await second.ask(address);
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("headgate console link");
    expect((await second.ask("/operations/me")).status).toBe(401);
    expect((await first.ask(address)).status).toBe(200);
    expect(console.lines.join("")).toContain("a link to the console was refused");
  });

  it("is too old after an hour", async () => {
    const address = link();
    console.pass(3_600_000);
    expect((await openBrowser(url).ask(address)).status).toBe(403);
  });

  it("is made by a program with the secret, for the person that it names", async () => {
    const make = (headers: Record<string, string>) =>
      fetch(`${url}/operations/console/links`, { method: "POST", headers });
    expect((await make({})).status).toBe(401);
    const made = await make({ authorization: `Bearer ${SECRET}`, "x-headgate-by": "gr%C3%A5" });
    const { url: address } = (await made.json()) as { url: string };
    const browser = openBrowser(url);
    await browser.ask(address);
    expect(await (await browser.ask("/operations/me")).json()).toMatchObject({ name: "grå", role: "operator" });
  });
});

it("a link is not used up by a program that asks with HEAD", async () => {
  const address = link();
  expect((await openBrowser(url).ask(address, { method: "HEAD" })).status).toBe(200);
  const browser = openBrowser(url);
  await browser.ask(address);
  expect((await browser.ask("/operations/me")).status).toBe(200);
});

it("a link has the name of the person whose session asks for it, whatever the request says", async () => {
  const browser = openBrowser(url);
  await browser.ask(link());
  const { csrfToken } = (await (await browser.ask("/operations/me")).json()) as { csrfToken: string };
  const made = await browser.ask("/operations/console/links", {
    method: "POST",
    headers: { "x-csrf-token": csrfToken, "x-headgate-by": "boss", "content-type": "application/json" },
    body: JSON.stringify({ name: "boss" }),
  });
  const { url: address } = (await made.json()) as { url: string };
  const other = openBrowser(url);
  await other.ask(address);
  expect(await (await other.ask("/operations/me")).json()).toMatchObject({ name: "ada" });
});

it("answers say that no cache keeps them, and no browser guesses their type", async () => {
  const browser = openBrowser(url);
  const paths = [new URL(link()).pathname, "/console", "/console/sign-in", "/operations/me", "/operations/%zz"];
  await browser.ask(link());
  for (const path of [...paths, `/operations/trace/${"x".repeat(10_000)}`, "/operations/drops", "/console/unknown/x"]) {
    const { headers } = await browser.ask(path);
    expect([path, headers.get("cache-control"), headers.get("x-content-type-options")]).toEqual([
      path,
      "no-store",
      "nosniff",
    ]);
  }
  const asset = (await (await browser.ask("/console")).text()).match(/\/console\/assets\/[\w.-]+/)?.[0] ?? "";
  expect((await browser.ask(asset)).headers.get("cache-control")).toContain("immutable");
});

it.each([
  ["beyond its length", `trace/${"1".repeat(5_000)}`, 414, "too long"],
  ["that cannot be decoded", "trace/%zz", 400, "percent sign"],
])("an address %s is answered in problem details", async (_, path, status, words) => {
  const response = await fetch(`${url}/operations/${path}`);
  expect(response.status).toBe(status);
  expect(response.headers.get("content-type")).toContain("application/problem+json");
  expect(response.headers.get("cache-control")).toBe("no-store");
  const problem = (await response.json()) as { detail: string };
  expect(problem).toMatchObject({ status, title: expect.any(String), detail: expect.stringContaining(words) });
  expect(problem.detail).not.toContain("1111");
});

it("a trace takes the path of a file in the address, as long as paths are", async () => {
  const headers = { authorization: `Bearer ${SECRET}` };
  const path = encodeURIComponent(`${"folder/".repeat(100)}file.csv`);
  expect((await fetch(`${url}/operations/trace/${path}`, { headers })).status).toBe(404);
});

describe("a session", () => {
  it("ends when it is not used, and after its lifetime however it is used", async () => {
    const HOUR_MS = 3_600_000;
    const browser = openBrowser(url);
    await browser.ask(link());
    for (let hours = 0; hours < 7 * 24 - 7; hours += 7) {
      console.pass(7 * HOUR_MS);
      expect((await browser.ask("/operations/me")).status).toBe(200);
    }
    console.pass(7 * HOUR_MS);
    expect((await browser.ask("/operations/me")).status).toBe(401);
    await browser.ask(link());
    console.pass(8 * HOUR_MS);
    expect((await browser.ask("/operations/me")).status).toBe(401);
  });

  it("ends by signing out", async () => {
    const browser = openBrowser(url);
    await browser.ask(link());
    const { cookie } = browser;
    expect(cookie).toMatch(/^headgate-console-\d+=[\w-]{43}$/);
    const page = await browser.ask("/console/sign-out");
    expect((await browser.submit(page, "/console/sign-out", {})).status).toBe(303);
    expect((await fetch(`${url}/operations/me`, { headers: { cookie } })).status).toBe(401);
  });

  it("changes nothing without its token, or for a page of another site", async () => {
    const browser = openBrowser(url);
    await browser.ask(link());
    const { csrfToken } = (await (await browser.ask("/operations/me")).json()) as { csrfToken: string };
    const order = (headers: Record<string, string>) =>
      browser.ask("/operations/orders", { method: "POST", body: "{}", headers });
    expect((await order({})).status).toBe(403);
    expect((await order({ "x-csrf-token": `${csrfToken.slice(1)}A` })).status).toBe(403);
    expect((await order({ "x-csrf-token": csrfToken, "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await order({ "x-csrf-token": csrfToken, origin: "http://evil.example" })).status).toBe(403);
    expect((await order({ "x-csrf-token": csrfToken, "sec-fetch-site": "same-origin" })).status).toBe(200);
  });

  it("counts for the names of the console alone", async () => {
    const browser = openBrowser(url);
    await browser.ask(link());
    const { port } = new URL(url);
    const statusFor = (host: string, path: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { host, cookie: browser.cookie };
        request({ host: "127.0.0.1", port, path, headers }, ({ statusCode = 0 }) => resolve(statusCode))
          .on("error", reject)
          .end();
      });
    for (const host of ["127.0.0.1", `localhost:${port}`, "[::1]:1", "10.0.0.7"]) {
      expect(await statusFor(host, "/operations/me")).toBe(200);
      expect(await statusFor(host, "/console")).toBe(200);
    }
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", "localhost.evil.example"]) {
      expect(await statusFor(host, "/operations/me")).toBe(401);
      expect(await statusFor(host, "/console")).toBe(421);
      expect(await statusFor(host, "/console/sign-in")).toBe(421);
    }
  });
});

describe("the pages", () => {
  it("have their files, compressed, which a browser keeps", async () => {
    const browser = openBrowser(url);
    await browser.ask(link());
    const html = await (await browser.ask("/console")).text();
    const files = [...html.matchAll(/(?:href|src)="(\/console\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(files).toHaveLength(3);
    for (const path of files) {
      const file = await fetch(url + path, { headers: { "accept-encoding": "br" } });
      expect(file.status).toBe(200);
      expect(file.headers.get("cache-control")).toContain("immutable");
    }
    expect((await fetch(`${url}/console/assets/other.js`)).status).toBe(404);
  });

  it("lead a browser that comes from another site to themselves, so that it brings its cookie", async () => {
    const headers = { "sec-fetch-site": "cross-site" };
    const passage = await openBrowser(url).ask("/console/files/7", { headers });
    expect(passage.status).toBe(200);
    expect(await passage.text()).toContain('content="0;url=/console/files/7"');
    // A cookie that such a visit got would take the place of the session that it could not bring.
    for (const path of ["/console", "/console/sign-in", "/console/sign-out", "/console/enter?code=x"])
      expect((await openBrowser(url).ask(path, { headers })).headers.getSetCookie()).toEqual([]);
  });
});
