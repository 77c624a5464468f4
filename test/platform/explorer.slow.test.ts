/** From a meter's number to the row of a file, as a person does it: in Chromium, by the words on the page. */
import exceljs from "exceljs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "#core/pages/bundle.ts";
import { until } from "../hub/fixture.ts";
import { pageFaults } from "../hub/page-faults.ts";
import { axeFaults } from "../operations/console/console-browser.ts";
import { describeInChromium, openChromium } from "../support/chromium.ts";
import { type PlatformRig, startRig } from "./rig.ts";

const HOUR_MS = 3_600_000;
const HEAD = "date,value,source_serial_number,mapping_config\n";
const MARCH = { From: "2026-03-01", To: "2026-04-01", TimeZoneId: "Europe/Paris" };
/** In the night in which the clocks go forward: 3 o'clock in Paris. */
const CORRECTED = "2026-03-29T01:00:00.000Z";

describeInChromium("the explorer of a hub with files", () => {
  let rig: PlatformRig;
  let chromium: Browser;
  let variable: number;
  let before: string;
  let correctedRow: number;
  beforeAll(async () => {
    await buildPage("explorer");
    rig = await startRig();
    chromium = await openChromium();
    await rig.trigger("std_", "standard");
    const siteId = await rig.post("/sites", { name: "Water works", typeId: 3, timeZoneId: "Europe/Paris" });
    const source = { name: "Pump", siteId, sourceTypeId: 1, serialNumber: "MTR-0077" };
    const { id: sourceId } = await rig.post("/sources", source);
    const hourly = { granularity: 1, granularityTimeBase: 3, quantityType: 2, isVersioned: true };
    const more = { variableTypeId: 0, unitId: 8, mappingConfig: "kWh", ...hourly };
    variable = await rig.post("/variables", { name: "Pumped energy", sourceId, ...more });
    const begin = Date.parse("2026-02-28T23:00:00Z");
    const dates = Array.from({ length: 31 * 24 - 1 }, (_, hour) => new Date(begin + hour * HOUR_MS).toISOString());
    correctedRow = dates.indexOf(CORRECTED) + 2;
    const lines = dates.map((date, hour) => `${date},${1 + (hour % 7) / 8},MTR-0077,kWh\n`);
    await stored("std_first.csv", HEAD + lines.join(""));
    const [{ versionTimestamp }] = await rig.get("/data", { VariableId: variable, AllVersions: true, ...MARCH });
    before = versionTimestamp;
    // The state as of a second is shown: the correction is of a later one.
    await until(async () => new Date().toISOString() > nextSecond(before) || undefined);
    await stored("std_correction.csv", `${HEAD}${CORRECTED},100,MTR-0077,kWh\n`);
  });
  afterAll(async () => {
    await chromium.close();
    await rig.close();
  });

  async function stored(name: string, content: string) {
    const id = await rig.store(name, content);
    await until(async () => (await rig.get(`/storage/${id}`)).state === "stored" || undefined);
  }

  const nextSecond = (iso: string) => new Date(Math.ceil(Date.parse(iso) / 1_000) * 1_000).toISOString();

  async function signIn(page: Page, path: string, name: string) {
    page.setDefaultTimeout(8_000);
    await page.goto(rig.platform().url + path);
    await page.getByLabel("User name or e-mail").fill(name);
    await page.getByLabel("Password").fill(`${name}-password`);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  const sumShown = async (page: Page) => {
    const cell = page.getByRole("table", { name: "Shown variables" }).locator("td[data-label=Sum]");
    return Number((await cell.innerText()).replaceAll(",", ""));
  };
  const sumOf = async (more = {}) => {
    const whole = { VariableId: variable, ...MARCH, Granularity: "All", Aggregation: "SUM", ...more };
    return (await rig.get("/data", whole))[0].sumValue as number;
  };
  const rowsOf = async (page: Page) => {
    const rows = await page.getByRole("region", { name: "Table" }).getByRole("row").allInnerTexts();
    return rows.slice(1).map((row) => row.split(/\s+/));
  };

  test("a month by hour has its sums, a state before the correction, a workbook, and the rows of points", async () => {
    const page = await chromium.newPage();
    const faults: string[] = [];
    page.on("console", (message) => faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(error.message));
    await signIn(page, "/", "plain");
    await page.getByLabel("Search").fill("mtr-0077");
    await page.getByRole("button", { name: /^Pumped energy/ }).click();
    await page.getByRole("button", { name: "Month", exact: true }).click();
    await page.getByLabel("Granularity").selectOption("Hour");
    await page.getByRole("img", { name: /2026-03-01.* – 2026-04-01/ }).waitFor();
    await page.getByRole("button", { name: "Show more" }).click();
    await expect.poll(async () => (await rowsOf(page)).length).toBe(743);
    const night = (await rowsOf(page)).filter(([date]) => date === "2026-03-29");
    expect([night.length, night[2]]).toEqual([23, ["2026-03-29", "03:00", "+02:00", "100"]]);
    expect(await sumShown(page)).toBeCloseTo(await sumOf(), 2);

    // As it was before the correction.
    await page.getByLabel("Versions", { exact: true }).last().selectOption("As of a moment");
    const local = new Date(Date.parse(nextSecond(before))).toLocaleString("sv-SE", { timeZone: "Europe/Paris" });
    await page.getByLabel("As of", { exact: true }).fill(local.replace(" ", "T"));
    const old = await sumOf({ AsOf: nextSecond(before) });
    expect(old).toBeLessThan((await sumOf()) - 90);
    await expect.poll(() => sumShown(page)).toBeCloseTo(old, 2);
    await page.getByLabel("Compare with").selectOption("The state as of a moment");
    await page.getByLabel("Versions", { exact: true }).last().selectOption("Current");
    await page.getByLabel("Compared as of").fill(local.replace(" ", "T"));
    await page.getByText("1 values differ, 0 are only in the shown ones, 0 only in the compared ones.").waitFor();
    await page.getByLabel("Compare with").selectOption("Nothing");

    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "XLSX" }).click();
    const workbook = new exceljs.Workbook();
    await workbook.xlsx.readFile(await (await download).path());
    expect(workbook.worksheets[0]?.rowCount).toBe(744);

    await page.getByLabel("Granularity").selectOption("Raw");
    await page.getByRole("button", { name: /^100: versions and origin of Pumped energy/ }).click();
    const versions = page.getByRole("region", { name: /^Pumped energy, 2026-03-29 03:00/ }).getByRole("row");
    await expect.poll(() => versions.count()).toBe(3);
    const texts = await versions.allInnerTexts();
    expect(texts[1]).toMatch(/100 kWh[\s\S]*std_correction\.csv\s*row 2[\s\S]*manager/);
    expect(texts[2]).toMatch(new RegExp(`std_first\\.csv\\s*row ${correctedRow}\\b`));
    expect(await axeFaults(page)).toEqual([]);
    expect(await pageFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
    const kept = page.url();
    await page.close();

    const other = await chromium.newPage();
    await signIn(other, kept.slice(rig.platform().url.length), "second");
    await other.getByRole("alert").getByText("not in your account").waitFor();
    expect(await other.getByText("std_correction").count()).toBe(0);
    await other.close();
  });

  test("a click on the plot chooses a point, also by the keyboard in the table", async () => {
    const page = await chromium.newPage();
    await signIn(page, `/?variables=${variable}&from=2026-03-29&to=2026-03-30&granularity=Raw`, "plain");
    const plot = page.getByRole("img", { name: /^Plot of Pumped energy/ });
    await plot.click();
    await page
      .getByRole("region", { name: /^Pumped energy, 2026-03-29/ })
      .getByText("std_first.csv")
      .waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: /^100: versions/ }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("std_correction.csv").waitFor();
    await page
      .getByRole("button", { name: /^Show this state, as of/ })
      .last()
      .press("Enter");
    await expect.poll(() => page.url()).toContain("state=asof:");
    await page.close();
  });
});
