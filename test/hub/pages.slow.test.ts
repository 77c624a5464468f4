/** The pages as a person uses them: in Chromium, with the keyboard alone, at the width of a desk and of a telephone. */
import { Secret, TOTP } from "otpauth";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashPassword } from "#core/sign-in/passwords.ts";
import { setTemporaryPassword } from "#hub/store/people/users.ts";
import type { HubStore } from "#hub/store/store.ts";
import { contrastOf } from "#pages/kit/stylesheet.ts";
import { describeInChromium, openChromium } from "../support/chromium.ts";
import { LITTLE_HASHING } from "../support/hash-cost.ts";
import { startTestHub, type TestHub } from "./fixture.ts";
import { pageFaults } from "./page-faults.ts";

/** Moves the focus by the Tab key to an element, as a person without a mouse does. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let count = 0; count < 40; count += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) === true, selector)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`the Tab key does not reach ${selector} on ${page.url()}`);
}

describeInChromium("the pages in Chromium", () => {
  let hub: TestHub;
  let chromium: Browser;
  beforeAll(async () => {
    hub = await startTestHub();
    chromium = await openChromium();
  });
  afterAll(async () => {
    await chromium.close();
    await hub.close();
  });

  test("a temporary password, a second factor and the sign-out, by keyboard alone", async () => {
    const { people } = hub.inside().store as HubStore;
    const user = await people.userByName("plain");
    const temporary = await hashPassword("temporary-words", LITTLE_HASHING);
    await people.change(() => setTemporaryPassword(user?.id ?? 0, temporary, Date.now() + 3_600_000));
    const page = await chromium.newPage();
    const faults: string[] = [];
    const reached = async (path: RegExp) => {
      await page.waitForURL((url) => path.test(url.pathname + url.search));
      faults.push(...(await pageFaults(page)));
    };

    await page.goto(`${hub.url()}/me/second-factor`);
    await reached(/^\/sign-in\?next=/);
    // The first field has the focus already.
    await page.keyboard.type("plain");
    await tabTo(page, "#password");
    await page.keyboard.type("wrong words");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=alert]");
    faults.push(...(await pageFaults(page)));
    expect(await page.inputValue("#username")).toBe("plain");
    await tabTo(page, "#password");
    await page.keyboard.type("temporary-words");
    await page.keyboard.press("Enter");

    await reached(/^\/password\/change/);
    await tabTo(page, "#password");
    await page.keyboard.type("short");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#password[aria-invalid=true]");
    expect(await page.getAttribute("#password", "aria-describedby")).toBe("password-hint password-fault");
    faults.push(...(await pageFaults(page)));
    await tabTo(page, '[role=alert] a[href="#password"]');
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    await tabTo(page, "#again");
    await page.fill("#password", "words of my own");
    await page.fill("#again", "words of my own");
    await page.keyboard.press("Enter");

    await reached(/^\/me\/second-factor$/);
    await tabTo(page, 'a[href="/me/second-factor/set-up"]');
    await page.keyboard.press("Enter");
    await reached(/^\/me\/second-factor\/set-up$/);
    const secret = ((await page.textContent(".secret")) ?? "").replaceAll(" ", "");
    const totp = new TOTP({ secret: Secret.fromBase32(secret) });
    const began = Date.now();
    await tabTo(page, "#code");
    await page.keyboard.type(totp.generate({ timestamp: began }));
    await page.keyboard.press("Enter");
    await page.waitForSelector(".codes");
    faults.push(...(await pageFaults(page)));
    expect(await page.locator(".codes li").count()).toBe(10);

    await tabTo(page, 'form[action="/sign-out"] button');
    await page.keyboard.press("Enter");
    await reached(/^\/sign-in\?done=signed-out/);
    await page.keyboard.type("plain");
    await tabTo(page, "#password");
    await page.keyboard.type("words of my own");
    await page.keyboard.press("Enter");
    await reached(/^\/sign-in\/code/);
    await page.keyboard.type(totp.generate({ timestamp: began + 30_000 }));
    await page.keyboard.press("Enter");
    await reached(/^\/me$/);
    for (const path of ["/me/sessions", "/me/tokens", "/password/change", "/password/forgot", "/sign-out"]) {
      await page.goto(hub.url() + path);
      faults.push(...(await pageFaults(page)));
    }
    expect(faults).toEqual([]);
    await page.close();
  });

  test("pages load nothing of other addresses, run no script, and can be read by day and by night", async () => {
    const page = await chromium.newPage();
    const loaded: string[] = [];
    const errors: string[] = [];
    page.on("request", (request) => loaded.push(request.url()));
    page.on("console", (message) => errors.push(message.text()));
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.goto(`${hub.url()}/sign-in`);
      const [ground, text] = await page.evaluate(() => {
        const hex = (colour: string) =>
          `#${(colour.match(/\d+/g) ?? []).map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
        const style = getComputedStyle(document.body);
        return [hex(style.backgroundColor), hex(style.color)];
      });
      expect(contrastOf(ground ?? "", text ?? ""), colorScheme).toBeGreaterThan(7);
    }
    expect(loaded.filter((url) => !url.startsWith(hub.url()) && !url.startsWith("data:"))).toEqual([]);
    expect(errors).toEqual([]);
    await page.close();
  });
});
