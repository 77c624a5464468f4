/** Sign-in to the console as a person does it: in Chromium, by the words on the page and by the keyboard. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { pageFaults } from "../../hub/page-faults.ts";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { axeFaults } from "./console-browser.ts";
import { startConsole, type TestConsole } from "./fixture.ts";

describeInChromium("sign-in to the console in Chromium", () => {
  let chromium: Browser;
  /** Another site with a link to the console. */
  let elsewhere: Server;
  let link = "";
  let console: TestConsole | null = null;
  beforeAll(async () => {
    chromium = await openChromium();
    elsewhere = createServer((_request, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<a href="${link}">The file in question</a>`);
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  });
  afterEach(async () => {
    await console?.close();
    console = null;
  });
  afterAll(async () => {
    await chromium.close();
    await new Promise((resolve) => elsewhere.close(resolve));
  });

  async function open(settings: object = {}) {
    console = await startConsole({ console: settings });
    const page = await (await chromium.newContext()).newPage();
    const faults: string[] = [];
    page.on("console", (message) => {
      // A refused form is an answer, which the browser notes; and this console has no gateway behind it.
      if (!message.text().startsWith("Failed to load resource")) faults.push(message.text());
    });
    return { page, faults, server: console.server };
  }

  const users = async () => [{ name: "Ada", role: "operator", password: await hashPassword("ada's password") }];

  test("by name and password, with the keyboard, after a wrong password", async () => {
    const { page, faults, server } = await open({ users: await users() });
    await page.goto(`${server.url}/console/files`);
    expect(await page.title()).toBe("Sign in · Headgate console");
    expect(await pageFaults(page)).toEqual([]);
    expect(await axeFaults(page)).toEqual([]);
    await page.getByLabel("Name").focus();
    await page.keyboard.type("ada");
    await page.keyboard.press("Tab");
    await page.keyboard.type("a wrong one");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("No user has this name and this password.").waitFor();
    expect(await pageFaults(page)).toEqual([]);
    expect(await axeFaults(page)).toEqual([]);
    await page.getByLabel("Password").fill("ada's password");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${server.url}/console/files`);
    await page.locator("#console > *").first().waitFor();
    await page.goto(`${server.url}/console/sign-out`);
    expect(await pageFaults(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Name").waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test("by a link that works once, and says so afterwards", async () => {
    const { page, server } = await open();
    const once = server.consoleLink("ada") ?? "";
    await page.goto(once);
    await page.waitForURL(`${server.url}/console`);
    await page.locator("#console > *").first().waitFor();
    const other = await (await chromium.newContext()).newPage();
    await other.goto(once);
    await other.getByRole("heading", { name: "This link does not work" }).waitFor();
    expect(await pageFaults(other)).toEqual([]);
    await other.context().close();
    await page.context().close();
  });

  test("lasts for a person who comes by a link of another site", async () => {
    const { page, server } = await open();
    await page.goto(server.consoleLink("ada") ?? "");
    await page.waitForURL(`${server.url}/console`);
    link = `${server.url}/console/files`;
    // Another site to the browser, since the name differs.
    await page.goto(`http://localhost:${(elsewhere.address() as AddressInfo).port}/`);
    await page.getByRole("link").click();
    await page.waitForURL(link);
    await page.locator("#console > *").first().waitFor();
    await page.context().close();
  });
});
