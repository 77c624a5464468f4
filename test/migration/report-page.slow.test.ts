/** The report of a migration as people see it: in a real browser, on a screen, on a phone and on paper. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { MigrationReport } from "#gateway/migration/report/report.ts";
import { reportPage } from "#gateway/migration/report/reports.ts";
import { captureShown } from "../cli/shown.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { describeInChromium, openChromium } from "../support/chromium.ts";
import { headgateHere, migrateHere } from "./migrate-command.ts";

const SECTIONS = [
  "Points accepted over time",
  "Coverage by target",
  "Reconciliation",
  "Refused rows by reason",
  "Files and their operations",
] as const;
const WIDTHS = [1280, 400] as const;
const LEGIBLE_PX = 10;

describeInChromium("the report in a browser", () => {
  const folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const shown = captureShown();
  let browser: Browser;
  beforeAll(async () => {
    browser = await openChromium();
  });
  afterAll(async () => {
    await browser.close();
    rmSync(folder, { recursive: true });
  });

  /**
   * Calls `look` with the page as it was loaded at each width; the page asked for nothing else, and
   * complained of nothing.
   */
  async function atEachWidth(path: string, look: (page: Page, width: number) => Promise<void>) {
    for (const width of WIDTHS) {
      const context = await browser.newContext({ viewport: { width, height: 900 } });
      const page = await context.newPage();
      const asked: string[] = [];
      const complaints: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      page.on("console", (message) => complaints.push(message.text()));
      page.on("pageerror", (error) => complaints.push(error.message));
      const url = pathToFileURL(path).href;
      await page.goto(url, { waitUntil: "load" });
      await look(page, width);
      expect(asked, `requests at ${width} pixels`).toEqual([url]);
      expect(complaints, `complaints at ${width} pixels`).toEqual([]);
      await context.close();
    }
  }

  async function expectToLookRight(page: Page, width: number): Promise<void> {
    expect(await page.evaluate("document.documentElement.scrollWidth"), "width of the page").toBe(width);
    // What is wider than the paper would be cut off there, wherever it may scroll on a screen.
    expect(await page.evaluate(TOO_WIDE), `cut off at ${width} pixels`).toEqual([]);
    expect(await page.getByRole("heading", { level: 2 }).allTextContents()).toEqual(
      expect.arrayContaining([...SECTIONS]),
    );
    for (const name of SECTIONS)
      expect(await page.getByRole("heading", { name, exact: true }).isVisible(), name).toBe(true);
    for (const drawn of [page.locator("svg.line"), page.locator(".map > svg").first()]) {
      const box = await drawn.boundingBox();
      expect(box?.width).toBeGreaterThan(width / 2);
      expect(box?.height).toBeGreaterThan(LEGIBLE_PX);
    }
    const sizes = (await page.evaluate(TEXT_SIZES)) as readonly number[];
    expect(sizes.length).toBeGreaterThan(20);
    expect(Math.min(...sizes), "height of the smallest letters").toBeGreaterThanOrEqual(LEGIBLE_PX);
  }

  it("shows a migration on a screen and on a phone, without other resources", async () => {
    const rig = await GatewayRig.start();
    try {
      rig.configure({ push: { retry: { initial: "50ms", max: "200ms", quickAttempts: 1 } } });
      const [meter, pump] = [await rig.variable("meter"), await rig.variable("pump")];
      for (const id of [meter, pump])
        for (const month of ["01", "02", "03"]) rig.put(`history/${id}/2025-${month}.csv`, rows(id, month));
      rig.put("history/odd.csv", `${rows(meter, "04")}${meter},2025-04-31T00:00:00Z,1\n`);
      const first = await migrateHere(rig, shown, "--lenient", "--json");
      expect(first.stderr).not.toContain("HG-");
      await rig.removePoints(pump, "2025-02-11T00:00:00Z", "2025-02-14T00:00:00Z");
      const { stdout } = await migrateHere(rig, shown, "--lenient", "--verify", "--json");
      const { report } = JSON.parse(stdout);

      await atEachWidth(report, async (page, width) => {
        await expectToLookRight(page, width);
        const words = await page.locator("body").innerText();
        for (const said of [
          /^196\npoints accepted$/m,
          /^7\ndelivered$/m,
          /^1\ndifferences$/m,
          /3 readings are missing$/m,
          /\n2025-01-01\n+2025-04-28\n/,
          /is not a date of the form/,
        ])
          expect(words, `at ${width} pixels`).toMatch(said);
        const operations = page.locator("details td[data-name=operations]");
        expect(await operations.count()).toBe(7);
        expect(await operations.first().isVisible()).toBe(true);
      });

      const { id } = JSON.parse(stdout);
      await headgateHere(rig, shown, "migrate", "undo", id, "--yes");
      const told = await headgateHere(rig, shown, "migrate", "report", id);
      expect(told.stdout).toMatch(/^undone at 20\S+Z by \S+: 193 points removed\n( {2}! gap: .*\n)+report: /);
      const page = /^report: (.*)$/m.exec(told.stdout)?.[1] ?? "";
      await atEachWidth(page, async (page, width) => {
        await expectToLookRight(page, width);
        const words = await page.locator("body").innerText();
        expect(words, `at ${width} pixels`).toMatch(/^Undone at 20[\d-]+ [\d:]+ UTC by \S+: 193 points were removed/m);
      });
      const { stdout: anew } = await migrateHere(rig, shown, "--lenient", "--json");
      expect(readFileSync(JSON.parse(anew).report, "utf8")).toMatch(
        /<p class="soft">An earlier delivery was undone at 20/,
      );
    } finally {
      await rig.close();
    }
  });

  it("stays within the page with hundreds of files and long names, and prints folded parts", async () => {
    const path = join(folder, "report.html");
    writeFileSync(path, reportPage(large()));
    await atEachWidth(path, async (page, width) => {
      await expectToLookRight(page, width);
      const row = page.locator("details tr", { hasText: "export_119.csv" });
      expect(await row.isVisible()).toBe(false);
      await page.emulateMedia({ media: "print", colorScheme: "dark" });
      expect(await row.isVisible()).toBe(true);
      expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(255, 255, 255)");
    });
  });
});

it("uses no green text beside findings in the files, and only green text without findings", () => {
  const found = large();
  const reconciliation = found.reconciliation === null ? null : { ...found.reconciliation, differences: [] };
  const odd = reportPage({ ...found, reconciliation });
  expect(odd).not.toContain("No difference.");
  expect(odd).not.toMatch(/class="good">0<\/b><span class="soft">differences/);
  expect(odd).toContain("Stored as the files say.");
  expect(odd).toContain("<h2>Findings in the files</h2>");
  expect(odd).toContain("or one of the two is in another time zone (1 h)");
  const sound = reportPage({ ...found, reconciliation, findings: [] });
  expect(sound).toContain('<b class="good">No difference.</b>');
  expect(sound).not.toContain("Findings in the files");
});

/** Words whose box ends right of the window. */
const TOO_WIDE = `[...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 80))`;

/** Of each piece of text that is shown, also of those drawn in a plot: pixels as they are rendered. */
const TEXT_SIZES = `[...document.querySelectorAll("body *")]
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== ""))
  .filter((one) => one.checkVisibility() && one.tagName !== "STYLE")
  .map((one) => parseFloat(getComputedStyle(one).fontSize) * (one.getScreenCTM?.().d ?? 1))`;

function rows(id: number, month: string): string {
  const days = Array.from({ length: 28 }, (_, day) => String(day + 1).padStart(2, "0"));
  return `variable_id,date,value\n${days.map((day) => `${id},2025-${month}-${day}T00:00:00Z,1${day}\n`).join("")}`;
}

/** Eleven years of a few hundred meters. */
function large(): MigrationReport {
  const target = (at: number) =>
    `sourceEan=5414490000${10_000_000 + at}, mappingConfig=active_energy_offtake_high_tariff_and_low_tariff`;
  const times = (many: number) => Array.from({ length: many }, (_, at) => at);
  return {
    id: "5d1f0c77ab",
    patterns: ["sftp://collector@files.example/exports/history/of/the/northern/plants/**/*.csv.gz"],
    mapper: "delimited",
    madeAt: "2026-03-04T09:12:44Z",
    startedAt: "2026-03-03T20:00:05Z",
    endedAt: "2026-03-04T04:51:00Z",
    files: times(120).map((at) => ({
      ...{ drop: "history", path: `northern_plants_${"and_their_neighbours_".repeat(4)}/export_${at}.csv` },
      ...{ run: `run${at}`, state: at === 7 ? "quarantined" : "accepted", operations: 12 },
      ...{ mapped: 1_234_567, accepted: at === 7 ? 0 : 1_234_567, rejected: 0, refused: at },
      reason: at === 7 ? `row 12, column value: ${"9".repeat(120)} is not a number` : null,
    })),
    points: { mapped: 148_148_040, accepted: 146_913_473, rejected: 0 },
    timeline: times(200).map((at) => ({
      at: new Date(Date.UTC(2026, 2, 3, 20, 0, at * 160)).toISOString(),
      points: (at + 1) * 740_000,
    })),
    coverage: {
      ...{ from: "2014-01-01", cellDays: 25, cells: 176, targets: 312 },
      rows: times(60).map((at) => ({
        ...{ target: target(at), points: 474_000, from: "2014-01-01T00:00:00Z", to: "2025-12-31T00:00:00Z" },
        cells: times(176).map((cell) => (cell % (at + 2) === 0 ? 0 : cell * 17)),
      })),
    },
    findings: times(3).map((at) => ({
      ...{ kind: "overlap" as const, files: [], targets: [target(at)], count: 1, places: [] },
      ...{ needsPerson: false, isInformation: false },
      words:
        `northern_plants_${"and_their_neighbours_".repeat(4)}/export_${at}.csv and the next ` +
        "overlap by 1 reading, or one of the two is in another time zone (1 h)",
    })),
    refusals: [
      { reason: "a_reason_without_any_space_".repeat(6), rows: 1_234_567, files: 12_345 },
      { reason: "the local time does not exist in Europe/Brussels", rows: 48, files: 12 },
    ],
    reconciledAt: null,
    empty: [],
    reconciliation: {
      ...{ targets: 312, points: 146_913_473, superseded: 212, months: 44_928, stored: 0, unknown: [] },
      differences: times(40).map((at) => ({
        ...{ target: target(at), variableId: at, from: "2019-01-01T00:00:00Z", to: "2019-02-01T00:00:00Z" },
        ...{ expected: { count: 2_976, sum: 4 }, stored: { count: 0, sum: 0 } },
        reason: "nothing of the month is stored: the service accepted the readings and discarded them",
      })),
    },
  };
}
