/** Every page of the console in each width and colour, by the rules of axe, by the keyboard, and with hostile texts. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { axeFaults, hostileFaults, openPage, signedIn, tooWide, unfold } from "./console-browser.ts";
import { get } from "./console-rig.ts";
import { walkFaults } from "./keyboard.ts";
import { HOSTILE, openRichRig, type RichRig, SHOWN } from "./rich-rig.ts";

const VIEWS = ["", "?view=input&row=3", "?view=readings", "?view=payload"];
const LOOKS = [400, 1_280, 1_920].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme) => ({ width, colorScheme })),
);

describeInChromium("all pages of the console in Chromium", () => {
  let rig: RichRig;
  let chromium: Browser;
  let pages: readonly string[];
  let groups: readonly { readonly key: string }[];
  const groupPath = ({ key }: { readonly key: string }) => `?group=${encodeURIComponent(key)}`;
  let ids: Readonly<Record<string, number>>;
  beforeAll(async () => {
    rig = await openRichRig();
    chromium = await openChromium();
    const found = await rig.gateway.ledger.recentRuns(20);
    ids = Object.fromEntries(found.map(({ path, arrivalId }) => [path, arrivalId]));
    ({ groups } = await get(rig.gateway, "attention"));
    const file = (name: string) => `/files/${ids[name]}`;
    pages = [
      ...groups.map(groupPath),
      ...["", "/files", "/readings", "/overview", "/overview?period=month", "/drops", "/drops/in"],
      ...["/drops/gone", "/triggers", "/playground", "/configuration", "/migrations", "/none"],
      ...VIEWS.flatMap((view) => [file("good.csv") + view, file("north.csv") + view]),
      ...["good.csv", "north.csv"].map((name) => `/playground?file=${ids[name]}`),
    ];
  });
  afterAll(async () => {
    await chromium.close();
    await rig.close();
  });
  const signIn = (look: object) => signedIn(chromium, rig.gateway, look);
  const leave = (page: Page) => page.context().close();

  test.each(LOOKS)("axe finds nothing at $width pixels in $colorScheme, and no page is too wide", async (look) => {
    const { width, colorScheme } = look;
    const { page, faults } = await signIn({ viewport: { width, height: 900 }, colorScheme });
    const found: string[] = [];
    for (const path of pages) {
      await openPage(page, `${rig.gateway.consoleUrl}${path}`);
      await unfold(page);
      found.push(...(await axeFaults(page)));
      const pixels = await tooWide(page);
      if (pixels > 0) found.push(`${path} is ${pixels} px too wide`);
    }
    expect(found).toEqual([]);
    expect(faults).toEqual([]);
    await leave(page);
  });

  test.each([400, 1_280])("every control is reached by Tab in its order and seen, at %i pixels", async (width) => {
    const { page } = await signIn({ viewport: { width, height: 900 }, timezoneId: "Europe/Brussels" });
    const found: string[] = [];
    for (const path of pages) {
      await openPage(page, `${rig.gateway.consoleUrl}${path}`);
      await unfold(page);
      if (width === 400) await page.getByRole("button", { name: "Menu" }).click();
      found.push(...(await walkFaults(page)));
    }
    expect(found).toEqual([]);
    await leave(page);
  });

  // On a phone, most dialogs are higher than the window.
  test.each([
    { width: 400, height: 640 },
    { width: 1_280, height: 900 },
  ])("each dialog has no fault, keeps the focus and gives it back, at $width × $height pixels", async (viewport) => {
    const { page } = await signIn({ viewport });
    const dialog = page.getByRole("dialog");
    const found: string[] = [];
    const seen = new Set<string>();
    const dialogPages = [
      ...groups.map(groupPath),
      ...["/drops/in", "/triggers", "/migrations", `/playground?file=${ids["good.csv"]}`],
    ];
    for (const path of dialogPages) {
      await openPage(page, `${rig.gateway.consoleUrl}${path}`);
      const all = page.getByLabel("Choose all that are shown");
      if ((await all.count()) > 0) await all.press("Space");
      const buttons = page.locator("main button:not([aria-disabled])").filter({ hasText: "…" });
      for (const button of await buttons.all()) {
        seen.add((await button.innerText()).replace(/….*/s, "…"));
        await button.focus();
        await page.keyboard.press("Enter");
        await dialog.waitFor();
        await dialog.locator('[aria-busy="true"]').waitFor({ state: "detached" });
        found.push(...(await axeFaults(page)), ...(await hostileFaults(page)), ...(await walkFaults(page, "dialog")));
        await page.keyboard.press("Escape");
        await dialog.waitFor({ state: "detached" });
        const isBack = () => button.evaluate((one) => one === document.activeElement);
        await expect.poll(isBack, { message: `${path}: ${[...seen].at(-1)}` }).toBe(true);
      }
    }
    expect(found).toEqual([]);
    for (const words of ["Replay…", "Replay 2…", "Provision…", "Release…", "Check again…", "Pause…"])
      expect([...seen]).toContain(words);
    for (const words of ["Cancel the run…", "Replay with these settings…", "Resume…", "What an undo would remove…"])
      expect([...seen]).toContain(words);
    await leave(page);
  });

  test("what plots draw stands in tables, which scroll by the keyboard", async () => {
    const { page } = await signIn({ viewport: { width: 400, height: 900 } });
    for (const path of ["/overview", `/files/${ids["good.csv"]}?view=readings`]) {
      await openPage(page, `${rig.gateway.consoleUrl}${path}`);
      const plots = page.getByRole("img");
      await plots.first().waitFor();
      const unfolds = page.getByText("The numbers as a table");
      if ((await unfolds.count()) > 0) {
        await unfolds.focus();
        await page.keyboard.press("Enter");
      }
      const numbers = page.getByRole("table").filter({ hasText: path === "/overview" ? "Mean delay" : "2.5" });
      await expect.poll(() => numbers.getByRole("row").count()).toBeGreaterThan(1);
    }
    await openPage(page, `${rig.gateway.consoleUrl}/files/${ids["good.csv"]}?view=readings`);
    const scrolled = page.locator(".scroll[tabindex]").filter({ has: page.locator("table.values") });
    await page.setViewportSize({ width: 280, height: 900 });
    await scrolled.focus();
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => scrolled.evaluate((one) => one.scrollLeft)).toBeGreaterThan(0);
    await leave(page);
  });

  test("hostile names, cells, paths and addresses are texts on every page", async () => {
    const { page, faults } = await signIn({});
    const found: string[] = [];
    const html = encodeURIComponent('<img src=x onerror="document.title=1">');
    const hostile = ids[`${HOSTILE}.csv`];
    const showing = [
      ...["", "/files", "/overview", "/drops", "/drops/gone", "/triggers", "/migrations"],
      ...VIEWS.map((view) => `/files/${hostile}${view}`),
      `/playground?file=${hostile}`,
    ];
    const addresses = [
      ...["", "/files", "/overview", "/playground"].map((path) => `${path}?kind=${html}&group=${html}&period=${html}`),
      ...[`/files?q=${html}&state=${html}&drop=${html}`, `/files/1?view=${html}&run=${html}&sheet=${html}`],
      ...[`/readings?target=${html}&date=${html}`, `/drops/${html}`, `/${html}`],
      ...[`/files/99999999999999999999`, `/playground?file=${html}`, `/playground?file=999999`],
    ];
    for (const path of [...showing, ...addresses]) {
      await openPage(page, `${rig.gateway.consoleUrl}${path}`);
      await unfold(page);
      found.push(...(await hostileFaults(page)));
      if (!showing.includes(path)) continue;
      const words = await page.locator("main").innerText();
      // Without what it would hide, it stands there letter by letter.
      if (!words.includes("<img src=x onerror=") && !words.includes("&lt;img")) found.push(`${path} does not show it`);
    }
    expect(found).toEqual([]);
    expect(faults).toEqual([]);
    await leave(page);
  });

  test("a hostile reason of a person is a text, too", async () => {
    const { page } = await signIn({});
    await openPage(page, `${rig.gateway.consoleUrl}/drops/other`);
    await page.getByRole("button", { name: "Pause…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Why (optional)").fill(HOSTILE);
    await dialog.getByRole("button", { name: "Pause", exact: true }).click();
    await dialog.getByText("Done: 1").waitFor();
    await page.keyboard.press("Escape");
    for (const path of ["/drops/other", "/drops", "/overview", ""]) {
      await openPage(page, `${rig.gateway.consoleUrl}${path}`);
      await page.getByText(SHOWN).first().waitFor();
      expect(await hostileFaults(page)).toEqual([]);
    }
    await leave(page);
  });
});
