/** Tries every address of the operations API as every caller: it answers those alone who have the right. */
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { openBrowser, READ_TOKEN, type TestBrowser } from "./console/fixture.ts";

interface Address {
  readonly method: string;
  readonly path: string;
  readonly need: "read" | "command" | "metrics";
}

/** They are no endpoints with a schema. */
const OTHERS: readonly Address[] = [
  { method: "GET", path: "/operations/openapi.json", need: "read" },
  { method: "POST", path: "/operations/orders", need: "command" },
  { method: "GET", path: "/metrics", need: "metrics" },
  { method: "GET", path: "/operations/unknown", need: "read" },
];
/** There for all; of these the pages and health are tested elsewhere. */
const OPEN = [
  "/",
  "/console",
  "/console/sign-in",
  "/console/sign-out",
  "/console/enter",
  "/health/live",
  "/health/ready",
] as const;
const REFUSED = [401, 403];

const CALLERS = [
  "a stranger",
  "a former session",
  "viewer",
  "operator",
  "operator without token",
  "token",
  "secret",
] as const;
type Caller = (typeof CALLERS)[number];

let rig: GatewayRig;
let url: string;
let addresses: readonly Address[];
let secret: string;
const browsers = new Map<Caller, TestBrowser>();

beforeAll(async () => {
  rig = await GatewayRig.start();
  const password = await hashPassword("a password", { memory: 64, passes: 1 });
  const users = ["viewer", "operator"].map((role) => ({ name: role, role, password }));
  const tokens = [{ name: "script", token: READ_TOKEN, rights: ["read"] }];
  const gateway = await rig.open({ operations: { listen: "127.0.0.1:0", access: { tokens }, console: { users } } });
  url = gateway.operationsUrl;
  secret = gateway.operationsToken;
  for (const caller of CALLERS) {
    const browser = openBrowser(url);
    browsers.set(caller, browser);
    const name = caller === "a former session" ? "operator" : (caller.split(" ")[0] ?? "");
    if (!["viewer", "operator"].includes(name)) continue;
    const page = await browser.ask("/console/sign-in");
    expect((await browser.submit(page, "/console/sign-in", { name, password: "a password" })).status).toBe(303);
  }
  const former = browsers.get("a former session") as TestBrowser;
  const { cookie } = former;
  await former.submit(await former.ask("/console/sign-out"), "/console/sign-out", {});
  former.cookie = cookie;
  const document = (await (await ask("secret", { method: "GET", path: "/operations/openapi.json" })).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly "x-need": Address["need"] }>>>>;
  };
  addresses = [
    ...Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        path: path.replaceAll(/\{\w+\}/g, "1"),
        need: operation["x-need"],
      })),
    ),
    ...OTHERS,
  ];
}, 60_000);
afterAll(() => rig.close());

async function ask(caller: Caller, { method, path }: Pick<Address, "method" | "path">): Promise<Response> {
  const bearer = caller === "token" ? READ_TOKEN : caller === "secret" ? secret : null;
  const browser = browsers.get(caller) as TestBrowser;
  const token = caller === "viewer" || caller === "operator" ? await tokenOf(browser) : null;
  return browser.ask(path, {
    method,
    headers: {
      ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
      ...(token === null ? {} : { "x-csrf-token": token }),
    },
    // No command and no query has this shape, so that nothing is done by those who may.
    ...(method === "GET" ? {} : { body: '{"walls":true}' }),
  });
}

/** Empty for a stream, which would never end. */
async function textOf(answer: Response): Promise<string> {
  if (answer.headers.get("content-type")?.startsWith("text/event-stream") !== true) return answer.text();
  await answer.body?.cancel();
  return "";
}

async function tokenOf(browser: TestBrowser): Promise<string> {
  return ((await (await browser.ask("/operations/me")).json()) as { readonly csrfToken: string }).csrfToken;
}

const MAY: Readonly<Record<Caller, readonly Address["need"][]>> = {
  "a stranger": [],
  "a former session": [],
  viewer: ["read"],
  operator: ["read", "command"],
  "operator without token": ["read"],
  token: ["read"],
  secret: ["read", "command", "metrics"],
};

describe("every address of the operations API", () => {
  it("is one that is open to all, or one of those that are tried", () => {
    expect(addresses.length).toBeGreaterThan(OTHERS.length + 4);
    for (const { path } of addresses) expect(OPEN).not.toContain(path);
  });

  it.each(CALLERS)("answers %s what that caller may ask, and nothing else", async (caller) => {
    const wrong: string[] = [];
    for (const address of addresses) {
      const { method, path, need } = address;
      const answer = await ask(caller, address);
      const text = await textOf(answer);
      const isRefused = REFUSED.includes(answer.status);
      const may = MAY[caller].includes(need) && (method === "GET" || caller !== "operator without token");
      if (isRefused === may) wrong.push(`${method} ${path}: ${answer.status} ${text}`);
      if (isRefused && !/^\{"title":"not allowed","status":40[13],"detail":"[^"]*"\}$/.test(text)) wrong.push(text);
    }
    expect(wrong).toEqual([]);
  });

  it("is refused under the name of another site, also to an operator", async () => {
    const { cookie } = browsers.get("operator") as TestBrowser;
    const { port } = new URL(url);
    const statusOf = (path: string) =>
      new Promise<number>((resolve, reject) => {
        const headers = { host: `evil.example:${port}`, cookie };
        request({ host: "127.0.0.1", port, path, headers }, ({ statusCode = 0 }) => resolve(statusCode))
          .on("error", reject)
          .end();
      });
    for (const { method, path } of addresses.filter((one) => one.method === "GET"))
      expect(await statusOf(path), `${method} ${path}`).toBe(401);
    for (const path of OPEN.filter((one) => !one.startsWith("/health"))) expect(await statusOf(path)).toBe(421);
  });
});
