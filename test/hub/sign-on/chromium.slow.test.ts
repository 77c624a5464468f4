/** A person signs in by a real provider in a real browser. */

import { type AddressInfo, createServer } from "node:net";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { CLIENT, type RealProvider, startProvider } from "./real-provider.ts";

describeInChromium("single sign-on in Chromium", () => {
  let provider: RealProvider;
  let hub: TestHub;
  let chromium: Browser;
  let page: Page;
  beforeAll(async () => {
    const listen = `127.0.0.1:${await freePort()}`;
    // Another site than the provider, as in the field.
    const publicUrl = `http://${listen.replace("127.0.0.1", "localhost")}`;
    provider = await startProvider([`${publicUrl}/sign-in/oidc/company/callback`]);
    provider.people.set("ann", { preferred_username: "ann", groups: ["managers"] });
    const { id: clientId, secret: clientSecret } = CLIENT;
    const own = { name: "company", label: "Sign in with Company", issuer: provider.issuer, clientId, clientSecret };
    const grants = [{ claim: "groups", value: "managers", accounts: [1], roles: ["Manager"] }];
    const scopes = ["openid", "profile", "groups"];
    const signIn = { oidc: [{ ...own, scopes, createUsers: true, grants }] };
    hub = await startTestHub({ listen, publicUrl, signIn });
    chromium = await openChromium();
    page = await chromium.newPage();
  });
  afterAll(async () => {
    await chromium.close();
    await hub.close();
    await provider.stop();
  });

  const address = (path: string) => `${hub.options.publicUrl}${path}`;
  const atProvider = async (login: string) => {
    await page.fill("input[name=login]", login);
    await page.fill("input[name=password]", "any");
    await page.click("button[type=submit]");
    await page.click("button[type=submit]"); // Consents.
  };

  test("leads from the button over the provider to the page that was asked for, and out again", async () => {
    await page.goto(address("/me/sessions"));
    expect(page.url()).toContain("/sign-in?next=");
    await page.getByRole("link", { name: "Sign in with Company" }).click();
    expect(page.url()).toContain(provider.issuer);
    await atProvider("ann");
    await expect.poll(() => page.url()).toBe(address("/me/sessions"));
    await page.goto(address("/me"));
    expect(await page.locator("main").innerText()).toMatch(/ann[\s\S]*First \(1\)[\s\S]*Manager/);
    const [cookie] = (await page.context().cookies(address("/"))).filter(({ name }) => name === "headgate-session");
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax" });
    await page.getByRole("button", { name: "Sign out" }).click();
    await expect.poll(() => page.url()).toContain("/sign-in?done=signed-out");
  });

  test("says what to do where a person may not enter, and offers another one", async () => {
    provider.people.set("bob", { preferred_username: "bob" });
    // The provider still knows the person before.
    await page.goto(address("/sign-in/oidc/company?as=another"));
    await atProvider("bob");
    await expect.poll(() => page.locator("h1").innerText()).toBe("You may enter no account");
    await page.getByRole("link", { name: "Sign in with Company as another person" }).click();
    await page.waitForSelector("input[name=login]");
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
