/** The explorer as a person uses it: in Chromium, by the words on the page. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "#core/pages/bundle.ts";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";
import { pageFaults } from "../page-faults.ts";

const HOUR_MS = 3_600_000;
/** Hostile in HTML, and with a mark that turns the direction of what follows. */
const HOSTILE = '<img src=x onerror="document.title=1"> \u202egnp.exe';
const MARCH = { From: "2026-03-01T00:00", To: "2026-04-01T00:00", TimeZoneId: "Europe/Paris" };

describeInChromium("the explorer in Chromium", () => {
  let hub: TestHub;
  let chromium: Browser;
  let energy: number;
  beforeAll(async () => {
    // Says at once what is missing where `npm ci` has not brought its libraries.
    await buildPage("explorer");
    hub = await startTestHub();
    chromium = await openChromium();
    const hourly = { granularity: 1, granularityTimeBase: 3 };
    const { variableIds } = await createChain(hub, {
      source: { name: "Main meter", serialNumber: "MTR-0042" },
      variables: [
        { name: "Active energy", quantityType: 2, ...hourly },
        { name: HOSTILE, quantityType: 1, unitId: 4, ...hourly },
      ],
    });
    energy = variableIds[0] ?? 0;
    // A month of local time around the change of the clocks on 29 March.
    const data = Array.from({ length: 31 * 24 - 1 }, (_, hour) => ({
      date: new Date(Date.UTC(2026, 1, 28, 23) + hour * HOUR_MS).toISOString(),
      value: 1 + (hour % 7) / 8,
    }));
    await hub.push(variableIds.map((variableId) => ({ variableId, data })));
  });
  afterAll(async () => {
    await chromium.close();
    await hub.close();
  });

  async function signIn(page: Page, path: string, name: string) {
    await page.goto(hub.url() + path);
    await page.getByLabel("User name or e-mail").fill(name);
    await page.getByLabel("Password").fill(`${name}-password`);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  /** A page that notes what a strict policy would not allow. */
  async function watched() {
    const page = await chromium.newPage();
    const faults: string[] = [];
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(hub.url()) && !/^(data|blob):/.test(url)) faults.push(`asks ${url}`);
    });
    page.on("console", (message) => faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(error.message));
    return { page, faults };
  }

  const rowsOf = async (page: Page) => {
    const rows = await page.getByRole("region", { name: "Table" }).getByRole("row").allInnerTexts();
    return rows.slice(1).map((row) => row.split(/\s+/));
  };

  test("a meter is found by its number, and its month by day has the sums of /data", async () => {
    const { page, faults } = await watched();
    await signIn(page, "/", "plain");
    await page.getByLabel("Search").fill("mtr-0042 kwh");
    await page.getByRole("button", { name: /^Active energy/ }).click();
    // The newest values, before a period is chosen.
    await page.getByRole("img", { name: /2026-03-25 00:00 – 2026-04-01 00:00/ }).waitFor();
    await page.getByRole("button", { name: "Month" }).click();
    await page.getByLabel("Granularity").selectOption("Day");
    await page.getByRole("img", { name: /^Plot of Active energy, 2026-03-01/ }).waitFor();
    await expect.poll(async () => (await rowsOf(page)).length).toBe(31);

    const query = { VariableId: energy, ...MARCH, Granularity: "Day", Aggregation: "SUM" };
    const days = await hub.get("/data", { ...query, DisplayLevel: "ValueVariableDate" });
    const shown = (await rowsOf(page)).map(([date, value]) => ({ date, sumValue: Number(value) }));
    expect(shown).toEqual(
      days.map(({ date, sumValue }: { date: string; sumValue: number }) => ({ date: date.slice(0, 10), sumValue })),
    );
    expect(shown.find(({ date }) => date === "2026-03-29")?.sumValue).toBeLessThan(24 * 1.4);

    // The address says it all: in UTC the month has its last hours of summer time in April.
    await page.getByLabel("Time zone").selectOption("UTC");
    await expect.poll(async () => (await rowsOf(page))[0]?.[0]).toBe("2026-03-01");
    const kept = page.url();
    expect(kept).toContain("zone=UTC");
    await page.goto("about:blank");
    await page.goto(kept);
    await page.getByText("Time zone: UTC.").waitFor();
    expect((await rowsOf(page)).length).toBe(31);
    expect(await pageFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.close();
  });

  test("hostile names are texts, and each time has its offset, also where the clocks change", async () => {
    const { page, faults } = await watched();
    await signIn(page, `/?variables=${energy},${energy + 1}&from=2026-03-29&to=2026-03-30`, "plain");
    await expect.poll(async () => (await rowsOf(page)).length).toBe(23);
    const times = (await rowsOf(page)).map(([date, time, offset]) => [date, time, offset].join(" "));
    expect(times.slice(1, 3)).toEqual(["2026-03-29 01:00 +01:00", "2026-03-29 03:00 +02:00"]);
    expect(await page.getByText(HOSTILE, { exact: true }).count()).toBeGreaterThan(0);
    expect(await page.locator("#explorer img:not(.plot)").count()).toBe(0);
    expect(await page.title()).toBe("Explorer · Headgate hub");
    expect(faults).toEqual([]);
    await page.close();
  });

  test("a user of another account sees nothing, also by a link", async () => {
    const { page } = await watched();
    await signIn(page, `/?variables=${energy}`, "second");
    await page.getByRole("alert").getByText("not in your account").waitFor();
    await page.getByLabel("Search").fill("mtr-0042");
    await page.getByText("Nothing was found.").waitFor();
    await page.getByLabel("Search").fill("");
    await page.getByText("This account has no sites yet.").waitFor();
    await page.close();
  });

  test("programs are led to the documentation, and files of the page are small and kept", async () => {
    const front = await fetch(hub.url(), { redirect: "manual" });
    expect([front.status, front.headers.get("location")]).toEqual([302, "docs/"]);
    const page = await chromium.newPage();
    await signIn(page, "/", "plain");
    await page.getByLabel("Search").waitFor();
    const files = page.locator("script[src], link[rel=stylesheet]");
    const paths = await files.evaluateAll((all) =>
      all.map((one) => one.getAttribute("src") ?? one.getAttribute("href") ?? ""),
    );
    await page.close();
    const own = paths.filter((path) => path.startsWith("/assets/explorer/"));
    expect(own.length).toBe(2);
    let bytes = 0;
    for (const path of own) {
      const answer = await fetch(hub.url() + path, { headers: { "accept-encoding": "gzip" } });
      expect(answer.headers.get("cache-control")).toContain("immutable");
      expect(answer.headers.get("content-encoding")).toBe("gzip");
      bytes += Number(answer.headers.get("content-length"));
    }
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(200_000);
  });
});
