/** The console as a person uses it: in Chromium, by the words on the page, over a gateway and a hub. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { drop, GatewayRig, trigger, until } from "../../runs/gateway-rig.ts";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { signedIn } from "./console-browser.ts";
import { HOSTILE, LONG, rows, SETTINGS, SHOWN, TEMPLATE } from "./rich-rig.ts";

const FILE = `${HOSTILE}.csv`;
const FILE_SHOWN = `${SHOWN}.csv`;

describeInChromium("the console in Chromium", () => {
  let rig: GatewayRig;
  let gateway: Gateway;
  let chromium: Browser;
  let variable: number;
  beforeAll(async () => {
    rig = await GatewayRig.start();
    variable = await rig.variable("M-1");
    gateway = await rig.open({
      // A check warns of a listing that takes longer.
      drops: [drop("in", { every: "2s" })],
      triggers: [trigger("meters", { mapper: "delimited", metadata: SETTINGS, provision: TEMPLATE })],
    });
    rig.put("in/north.csv", rows("M-1", ["1,5", "2,5", "3,5"]));
    rig.put("in/unknown.csv", rows("M-9", ["1.5", "2.5"]));
    rig.put(`in/${FILE}`, rows(`<script>document.title=2</script>`, [FILE, LONG]));
    chromium = await openChromium();
    await until("all files were mapped", async () => {
      const states = (await gateway.ledger.recentRuns(10)).map(({ state }) => state);
      return states.toSorted().join() === "held,quarantined,quarantined";
    });
  });
  afterAll(async () => {
    await chromium.close();
    await rig.close();
  });

  const group = (page: Page, words: string) => page.getByRole("region").filter({ hasText: words });
  const result = (page: Page) => page.getByRole("region", { name: "Result" });
  const leave = (page: Page) => page.context().close();

  test("a quarantined file is understood, replayed with a corrected setting, and seen confirmed", async () => {
    const { page, faults } = await signedIn(chromium, gateway);
    const found = group(page, "1,5").filter({ hasText: "Quarantined" }).first();
    await found.getByRole("button", { name: /^Show it/ }).click();
    await page.getByText("row 2, column kWh: “1,5”").waitFor();
    await page.getByRole("link", { name: "north.csv" }).click();
    await page.getByRole("heading", { name: /^north\.csv/ }).waitFor();
    // The refused field stands out among the rows around it.
    await page.getByRole("region", { name: "Content of north.csv" }).getByText("1,5", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Try it in the playground" }).click();
    await result(page).getByText("Would be quarantined").waitFor();
    await page.getByLabel("Find a setting").fill("decimal");
    await page.getByLabel(/^decimal/).selectOption(",");
    await result(page)
      .getByText(/3 readings of 1 target\b/)
      .waitFor();
    await page.getByRole("button", { name: "Replay with these settings" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("3 new readings").waitFor();
    await expect.poll(() => dialog.getByRole("row").count()).toBe(4);
    expect(await rig.stored(variable)).toEqual({});
    await dialog.getByLabel("Why (optional)").fill("the meter writes commas");
    await dialog.getByRole("button", { name: "Replay", exact: true }).click();
    await dialog.getByText("Done: 1").waitFor();
    await dialog.getByRole("button", { name: "Close" }).first().click();
    await page.getByRole("link", { name: "See the file" }).click();
    // Nothing is loaded again by hand.
    await page
      .getByRole("heading", { name: /^north\.csv/ })
      .getByText("Delivered")
      .waitFor();
    await page.getByText(/^Replay of \w+ by alex: the meter writes commas$/).waitFor();
    expect(await rig.stored(variable)).toEqual({ "2026-02-28": 1.5, "2026-03-01": 3.5 });
    expect(faults).toEqual([]);
    await leave(page);
  });

  test("a missing meter is provisioned from the inbox, after what would be created was shown", async () => {
    const { page, faults } = await signedIn(chromium, gateway);
    const held = group(page, "M-9").first();
    await held.getByRole("button", { name: /^Show it/ }).click();
    await held.getByRole("button", { name: "Provision…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("source Meter M-9").waitFor();
    await dialog.getByRole("button", { name: "Provision", exact: true }).click();
    await dialog.getByText("Done: 1").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByLabel("Search").fill("unknown");
    const row = page.getByRole("row").filter({ hasText: "unknown.csv" });
    await row.getByText("Delivered").waitFor();
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    expect(faults).toEqual([]);
    await leave(page);
  });

  test("a reading is traced to its row by a date as pages show it, or by its link", async () => {
    const { page, faults } = await signedIn(chromium, gateway, { timezoneId: "Europe/Brussels" });
    await page.getByRole("link", { name: "Find a reading" }).click();
    await page.getByLabel("Target").fill("sourceSerialNumber=M-9 mappingConfig=v");
    await page.getByLabel("Date").fill("2026-03-01 01:00");
    await page.getByRole("button", { name: "Find" }).click();
    const found = page.getByRole("row").filter({ hasText: "unknown.csv" });
    await found.getByRole("link", { name: "row 3" }).click();
    const sought = page.locator("tr.sought");
    await sought.waitFor();
    expect(await sought.innerText()).toContain("01/03/2026 01:00;M-9;2.5");
    await page.getByRole("link", { name: "Readings", exact: true }).click();
    await page.getByRole("link", { name: "2026-03-01 00:00:00" }).click();
    await found.getByRole("link", { name: "row 2" }).waitFor();
    expect(await page.getByLabel("Date").inputValue()).toBe("2026-03-01 00:00:00");
    // What was found before does not stand below the fault of another question.
    await page.getByLabel("Date").fill("the first of March");
    await page.getByRole("button", { name: "Find" }).click();
    await page.getByRole("alert").waitFor();
    expect(await found.count()).toBe(0);
    expect(faults).toEqual([]);
    await leave(page);
  });

  test("a check of a drop says when, which parts, how many findings, and that nothing has changed", async () => {
    const { page, faults } = await signedIn(chromium, gateway);
    await page.goto(`${gateway.consoleUrl}/drops/in`);
    const card = page.getByRole("region", { name: "Check", exact: true });
    const check = card.getByRole("button", { name: "Check this drop" });
    await check.click();
    // A failure shows what the check found.
    await expect.poll(() => card.innerText()).toMatch(/: .*listing.*triggers.*\. Nothing needs attention\./);
    expect(await card.getByText("As at the check before.").count()).toBe(0);
    await check.click();
    await card.getByText("As at the check before.").waitFor();
    expect(faults).toEqual([]);
    await leave(page);
  });

  test("hostile names, cells and reasons are texts on every page", async () => {
    const { page, faults } = await signedIn(chromium, gateway);
    await page.getByRole("link", { name: "Files" }).click();
    await page.getByRole("link", { name: FILE_SHOWN }).click();
    await page.getByRole("heading", { name: SHOWN.slice(0, 20) }).waitFor();
    const address = page.url();
    for (const view of ["", "?view=input"]) {
      await page.goto(address + view);
      await page.getByRole("heading", { name: SHOWN.slice(0, 20) }).waitFor();
      await page.getByText("<script>document.title=2</script>").first().waitFor();
      // A line of a million characters is cut, and says so.
      await page.getByText(/more characters/).waitFor();
      expect(await page.locator("main img, main script").count()).toBe(0);
    }
    await page.goto(`${gateway.consoleUrl}/playground?file=${address.split("/").at(-1)}`);
    await result(page).getByText("Would be quarantined").waitFor();
    await page.goto(`${gateway.consoleUrl}`);
    // The only group is open.
    await page.getByRole("link", { name: FILE_SHOWN }).waitFor();
    expect(await page.title()).toMatch(/Needs attention/);
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(faults).toEqual([]);
    await leave(page);
  });

  test("all is reached by the keyboard, and a dialog keeps the focus and gives it back", async () => {
    const { page } = await signedIn(chromium, gateway);
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    /** Presses Tab until the focus is there. */
    const reach = async (...words: string[]) => {
      for (let count = 0; count < 60; count += 1) {
        const found = words.find((one) => focusedWords.startsWith(one));
        if (found !== undefined) return found;
        await page.keyboard.press("Tab");
        focusedWords = await focused();
      }
      throw new Error(`the keyboard does not reach ${words}`);
    };
    let focusedWords = "";
    await reach("Skip to the content");
    await page.keyboard.press("Enter");
    // A group that stands alone is open.
    if ((await reach("Hide", "Show it")) === "Hide") {
      await page.keyboard.press("Enter");
      focusedWords = await focused();
    }
    await reach("Show it");
    await page.keyboard.press("Enter");
    await reach("Replay…");
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.waitFor();
    for (let count = 0; count < 12; count += 1) {
      await page.keyboard.press("Tab");
      const isInside = await page.evaluate(
        () => document.activeElement === document.body || document.activeElement?.closest("dialog") !== null,
      );
      expect(isInside).toBe(true);
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(focused).toBe("Replay…");
    await leave(page);
  });
});
