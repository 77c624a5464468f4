/** Views of the explorer and the values at a position of them: in Chromium, with the keyboard, against /data. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "#core/pages/bundle.ts";
import { axeFaults } from "../../operations/console/console-browser.ts";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

const HOUR_MS = 3_600_000;
const BEGIN_MS = Date.parse("2026-03-22T23:00:00Z");
const PERIOD = { From: "2026-03-23", To: "2026-04-01", TimeZoneId: "Europe/Paris" };
const HOURLY = { ...PERIOD, Granularity: "Hour", DisplayLevel: "ValueVariableDate" };
/** Hours without a value: most of a day. */
const GAP = { from: 60, to: 75 };

describeInChromium("the views of the explorer", () => {
  let hub: TestHub;
  let chromium: Browser;
  let energy: number;
  let power: number;
  beforeAll(async () => {
    await buildPage("explorer");
    hub = await startTestHub();
    chromium = await openChromium();
    const hourly = { granularity: 1, granularityTimeBase: 3 };
    const variables = [
      { name: "Active energy", quantityType: 2, ...hourly },
      { name: "Power", quantityType: 1, unitId: 4, ...hourly },
    ];
    const { variableIds } = await createChain(hub, { variables });
    [energy = 0, power = 0] = variableIds;
    const data = Array.from({ length: 9 * 24 - 1 }, (_, hour) => ({
      date: new Date(BEGIN_MS + hour * HOUR_MS).toISOString(),
      value: ((hour * 7) % 31) + 0.25,
    })).filter((_, hour) => hour < GAP.from || hour >= GAP.to);
    await hub.push(variableIds.map((variableId) => ({ variableId, data })));
  });
  afterAll(async () => {
    await chromium.close();
    await hub.close();
  });

  interface Row {
    readonly date: string;
    readonly sumValue: number;
  }
  const hoursOf = (): Promise<Row[]> => hub.get("/data", { ...HOURLY, VariableId: energy, Aggregation: "SUM" });
  const wordsOf = ({ date }: Row) => `${date.slice(0, 10)} ${date.slice(11, 16)} ${date.slice(19)}`;

  async function open(more: string): Promise<{ page: Page; faults: string[] }> {
    const page = await chromium.newPage({ viewport: { width: 1_280, height: 1_600 } });
    page.setDefaultTimeout(15_000);
    const faults: string[] = [];
    page.on("console", (message) => faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(error.message));
    await page.goto(`${hub.url()}/?variables=${energy},${power}&from=2026-03-23&to=2026-04-01${more}`);
    await page.getByLabel("User name or e-mail").fill("plain");
    await page.getByLabel("Password").fill("plain-password");
    await page.getByRole("button", { name: "Sign in" }).click();
    return { page, faults };
  }

  const spoken = (page: Page) => page.getByRole("slider", { name: "Position in the plot" });
  const spokenText = async (page: Page) => (await spoken(page).getAttribute("aria-valuetext")) ?? "";
  const readings = (page: Page) =>
    page.getByRole("list", { name: "Values at this position" }).getByRole("listitem").allInnerTexts();

  test("the values of all variables at a position, by the keyboard and by the pointer", async () => {
    const { page, faults } = await open("&granularity=Hour");
    const rows = await hoursOf();
    await spoken(page).focus();
    await page.keyboard.press("Home");
    const first = rows[0] as Row;
    await expect
      .poll(() => spokenText(page))
      .toMatch(`${wordsOf(first)}: Active energy ${first.sumValue} kWh in sum; Power `);
    expect((await readings(page)).map((text) => text.replace("\n", " "))).toEqual([
      `Active energy ${first.sumValue} kWh in sum`,
      `Power ${first.sumValue} kW on average (${first.sumValue} to ${first.sumValue})`,
    ]);
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => spokenText(page)).toContain(wordsOf(rows[1] as Row));
    // Over the hour that the clock skips.
    const after = rows.findIndex(({ date }) => date.startsWith("2026-03-29T03:00"));
    await spoken(page).fill(String(after - 1));
    await expect.poll(() => spokenText(page)).toContain("2026-03-29 01:00 +01:00");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => spokenText(page)).toContain("2026-03-29 03:00 +02:00");
    const plot = page.getByRole("img", { name: /^Plot of Active energy, Power/ });
    const before = await spokenText(page);
    await plot.hover({ position: { x: 300, y: 100 } });
    await expect.poll(() => spokenText(page)).not.toBe(before);
    expect(rows.map(wordsOf)).toContain((await spokenText(page)).slice(0, "2026-03-29 03:00 +02:00".length));
    expect([await axeFaults(page), faults]).toEqual([[], []]);
    await page.close();
  });

  test("a heat map has the values of /data in the cells of their local hours, and stands in the address", async () => {
    const { page, faults } = await open("");
    await page.getByLabel("View").selectOption("Heat map: day and hour");
    const map = page.getByRole("img", { name: /^Heat map of Active energy, 2026-03-23/ });
    await map.waitFor();
    const rows = await hoursOf();
    const values = rows.map(({ sumValue }) => sumValue);
    await page
      .getByRole("img", { name: `Colours from ${Math.min(...values)} kWh to ${Math.max(...values)} kWh` })
      .waitFor();
    await page.getByText("Without a value").waitFor();
    const cells = page.locator(".plot .u-over");
    const box = (await cells.boundingBox()) ?? { width: 0, height: 0 };
    const hover = (day: number, hour: number) =>
      cells.hover({ position: { x: ((day + 0.5) / 9) * box.width, y: ((hour + 0.5) / 24) * box.height } });
    for (const [day, hour] of [
      [0, 5],
      [6, 1],
      [6, 3],
      [8, 23],
    ] as const) {
      await hover(day, hour);
      const local = new Date(Date.UTC(2026, 2, 23 + day, hour)).toISOString().slice(0, 13);
      const row = rows.find(({ date }) => date.startsWith(local)) as Row;
      await expect.poll(() => spokenText(page)).toBe(`${wordsOf(row)}: Active energy ${row.sumValue} kWh in sum`);
    }
    // A cell without a value leaves the position where it was: one that is missing, and the hour that is skipped.
    const held = await spokenText(page);
    await hover(3, 0);
    await hover(6, 2);
    expect(await spokenText(page)).toBe(held);
    await page.getByLabel("Variable of the heat map").selectOption("Power");
    await page.getByRole("img", { name: /^Heat map of Power/ }).waitFor();
    expect([await axeFaults(page), faults]).toEqual([[], []]);
    const kept = page.url();
    expect(new URL(kept).search).toContain(`view=heat&of=${power}`);
    await page.goto("about:blank");
    await page.goto(kept);
    await page.getByRole("img", { name: /^Heat map of Power/ }).waitFor();
    await page.close();
  });

  test("a load duration curve has the values of /data from the highest down", async () => {
    const { page, faults } = await open("&granularity=Hour&view=duration");
    await page.getByRole("img", { name: /^Load duration curve of Active energy, Power/ }).waitFor();
    const sorted = (await hoursOf()).map(({ sumValue }) => sumValue).sort((a, b) => b - a);
    const table = page.getByRole("table", { name: "Values that are reached or exceeded for a share of the time" });
    await table.waitFor();
    const shown = (await table.getByRole("row").allInnerTexts()).slice(1).map((row) => row.split(/\t/));
    const expected = shown.map(([share = ""]) => {
      const at = Math.min(sorted.length - 1, Math.floor((Number.parseInt(share, 10) / 100) * sorted.length + 1e-9));
      return [share, String(sorted[at]), String(sorted[at])];
    });
    expect(shown.length).toBeGreaterThan(10);
    expect(shown).toEqual(expected);
    await spoken(page).focus();
    await page.keyboard.press("End");
    await expect.poll(() => spokenText(page)).toContain(`100 % of the time: Active energy ${sorted.at(-1)} kWh`);
    expect([await axeFaults(page), faults]).toEqual([[], []]);
    await page.close();
  });
});
