/** Sign-in to the console by a real provider of OpenID Connect. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CLIENT, type RealProvider, startProvider } from "../../hub/sign-on/real-provider.ts";
import { openBrowser, startConsole, type TestConsole } from "./fixture.ts";

const PUBLIC = "http://localhost/gateway";

let provider: RealProvider;
let console: TestConsole;
beforeAll(async () => {
  provider = await startProvider([`${PUBLIC}/console/sign-in/oidc/company/callback`]);
  const settings = {
    ...{ name: "company", label: "Sign in with Company", issuer: provider.issuer },
    ...{ clientId: CLIENT.id, clientSecret: CLIENT.secret, scopes: ["openid", "profile", "email", "groups"] },
    roles: [
      { claim: "groups", value: "readers", role: "viewer" },
      { claim: "groups", value: "operators", role: "operator" },
    ],
  };
  console = await startConsole({ console: { publicUrl: PUBLIC, oidc: [settings] } });
});
afterAll(async () => {
  await console.close();
  await provider.stop();
});
beforeEach(() => provider.people.clear());

/** The proxy in front takes the path away. */
const pathOf = ({ pathname, search }: URL) => pathname.replace(/^\/gateway/, "") + search;

async function begun(query = "") {
  const browser = openBrowser(console.server.url);
  const led = await browser.ask(`/console/sign-in/oidc/company${query}`);
  const attempt = led.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  expect(led.headers.getSetCookie()[0]).toMatch(/^headgate-console-sign-on=.*; HttpOnly; SameSite=Lax$/);
  browser.cookie = "";
  const come = (callback: URL) => browser.ask(pathOf(callback), { headers: { cookie: attempt } });
  const url = led.headers.get("location") ?? "";
  return { browser, url, come, as: async (login: string) => come(await provider.signIn(url, login)) };
}

describe("a person whom a provider signs in", () => {
  it("has the highest role that the claims give, and comes to the page that was asked for", async () => {
    provider.people.set("ann", { preferred_username: "Ann", groups: ["readers", "operators"] });
    const page = await openBrowser(console.server.url).ask("/console/sign-in?next=/console/files");
    const link = /href="\/gateway(\/console\/sign-in\/oidc\/company[^"]*)"[^>]*>([^<]+)</.exec(await page.text());
    expect(link?.[2]).toBe("Sign in with Company");
    const { browser, as } = await begun((link?.[1] ?? "").replace(/^[^?]*/, ""));
    const entered = await as("ann");
    expect(entered.status).toBe(200);
    expect(await entered.text()).toContain('content="0;url=/gateway/console/files"');
    expect(await (await browser.ask("/operations/me")).json()).toMatchObject({ name: "ann", role: "operator" });
    expect(console.server.consoleLink("eve")).toBeNull();
  });

  it("is named by what the provider vouches for", async () => {
    const ann = { email: "ann@example.org", preferred_username: "Ann" };
    for (const [claims, name] of [
      [ann, "bob"],
      [{ ...ann, email_verified: true }, "ann@example.org"],
    ] as const) {
      provider.people.set("bob", { groups: ["readers"], ...claims });
      const { browser, as } = await begun();
      await as("bob");
      expect(await (await browser.ask("/operations/me")).json()).toMatchObject({ name, role: "viewer" });
    }
  });

  it("does not enter without a role", async () => {
    provider.people.set("eve", { preferred_username: "Eve", groups: ["others"] });
    const { browser, as } = await begun();
    const refused = await as("eve");
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("You have no role here");
    expect((await browser.ask("/operations/me")).status).toBe(401);
    expect(console.lines.join("")).toContain("has no role here");
  });

  it("enters in the browser that began, once", async () => {
    provider.people.set("ann", { groups: ["readers"] });
    const { url, come } = await begun();
    const callback = await provider.signIn(url, "ann");
    const other = openBrowser(console.server.url);
    expect((await other.ask(pathOf(callback))).status).toBe(400);
    expect((await come(callback)).status).toBe(200);
    expect((await come(callback)).status).toBe(400);
  });

  it("is shown a page of its own after a refusal", async () => {
    const { url, come } = await begun();
    const refused = await come(await provider.decline(url));
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain("You were not signed in");
  });

  it("is led to the providers of the configuration alone, and by them to our own pages", async () => {
    expect((await openBrowser(console.server.url).ask("/console/sign-in/oidc/other")).status).toBe(404);
    provider.people.set("ann", { groups: ["readers"] });
    const { as } = await begun("?next=//evil.example");
    expect(await (await as("ann")).text()).toContain('content="0;url=/gateway/console"');
  });
});
