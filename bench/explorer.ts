/**
 * How soon the explorer has drawn a year of ten variables after the hub's answer, and how long it occupies the browser,
 * beside uPlot alone with the same number of points in arrays that are ready.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { startBenchHub } from "./hub-client.ts";
import { prefill, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

const CHROMIUM = "/usr/bin/chromium";
const VARIABLES = 10;
const YEARS = Number(process.env["HEADGATE_BENCH_YEARS"] ?? 10);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 5);
const WAIT_MS = 120_000;
const YEAR = "from=2025-01-01&to=2026-01-01";
const DECADE = `from=2025-01-01&to=${2025 + YEARS}-01-01`;
const ZOOMS = 12;
const MANY = 100_000;

/** What a page measures of itself; `answered` and `drawn` are of its own clock, in milliseconds. */
interface Measured {
  readonly answered: number;
  readonly drawn: number;
  readonly longestTask: number;
  readonly bytes: number;
}

export async function benchExplorer(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const path = join(folder, "hub.sqlite");
  await prefill(path, VARIABLES, Math.round(STEPS_A_YEAR * YEARS));
  const hub = await startBenchHub({ kind: "sqlite", path });
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    print(`explorer: ${VARIABLES * STEPS_A_YEAR} points of a year, in Chromium; medians of ${ROUNDS}, milliseconds`);
    const bare = await repeated(() => drawBare(browser));
    print(row("", "answer", "drawn after", "longest task", "times bare", "answer, MB"));
    print(row("uPlot alone, from ready arrays", "", bare.drawn.toFixed(0), bare.longestTask.toFixed(0), "1.0"));
    const page = await signIn(browser, hub.url);
    const ids = Array.from({ length: VARIABLES }, (_, at) => at + 1).join(",");
    const shapes = { "as stored": "&granularity=Raw", "by hour": "&granularity=Hour", automatic: "" };
    for (const [name, shape] of Object.entries(shapes)) {
      const address = `${hub.url}/?variables=${ids}&${YEAR}${shape}`;
      const measured = await repeated(() => drawPage(page, address));
      const after = measured.drawn - measured.answered;
      const cells = [measured.answered, after, measured.longestTask].map((ms) => ms.toFixed(0));
      const ratio = (after / bare.drawn).toFixed(1);
      print(row(name, ...cells, ratio, (measured.bytes / 1e6).toFixed(1)));
    }
    const zoomed = await zoomThrough(page, `${hub.url}/?variables=${ids}&${DECADE}`);
    print(`zooming through ${YEARS} years and back, ${2 * ZOOMS} steps: longest task ${zoomed.toFixed(0)} ms`);
    await page.close();
    await searchMany(browser, join(folder, "many.sqlite"));
  } finally {
    await browser.close();
    await hub.stop();
    rmSync(folder, { recursive: true });
  }
}

/** Words that a person types, by what they find. */
const SEARCHES: Readonly<Record<string, string>> = {
  "the number of a meter": "METER-154321",
  "the beginning of very many names": "met",
  "a unit and the beginning of many numbers": "METER-15 kWh",
  nothing: "nowhere",
};

/** From the question of the page to its answer, in a hub with very many variables. */
async function searchMany(browser: Browser, path: string): Promise<void> {
  await prefill(path, MANY, 0);
  const hub = await startBenchHub({ kind: "sqlite", path });
  try {
    const page = await signIn(browser, hub.url);
    print(`search among ${MANY} variables; medians of ${ROUNDS}, milliseconds`);
    for (const [name, words] of Object.entries(SEARCHES)) {
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) times.push(await page.evaluate(askSearch, words));
      print(row(name, quantile(times, 0.5).toFixed(0)));
    }
  } finally {
    await hub.stop();
  }
}

/** In the page. */
async function askSearch(words: string): Promise<number> {
  const began = performance.now();
  const answer = await fetch(`/search?SearchText=${encodeURIComponent(words)}`);
  if (!answer.ok) throw new Error(`the search was answered ${answer.status}`);
  await answer.json();
  return performance.now() - began;
}

async function repeated(work: () => Promise<Measured>): Promise<Measured> {
  const all: Measured[] = [];
  // Once more than is counted: the first finds nothing compiled.
  for (let round = 0; round <= ROUNDS; round += 1) all.push(await work());
  const median = (name: keyof Measured) =>
    quantile(
      all.slice(1).map((one) => one[name]),
      0.5,
    );
  const [answered, drawn] = [median("answered"), median("drawn")];
  return { answered, drawn, longestTask: median("longestTask"), bytes: median("bytes") };
}

async function signIn(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(url);
  await page.getByLabel("User name or e-mail").fill("bench");
  await page.getByLabel("Password").fill("bench-password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Search").waitFor();
  await page.addInitScript(() => {
    const seen = { longestTask: 0 };
    Object.assign(globalThis, { seen });
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) seen.longestTask = Math.max(seen.longestTask, duration);
    }).observe({ type: "longtask", buffered: true });
    performance.setResourceTimingBufferSize(10_000);
  });
  return page;
}

/** Until the second frame after the plot is there: the first one shows it. */
async function drawPage(page: Page, address: string): Promise<Measured> {
  await page.goto(address);
  return page.evaluate(
    () =>
      new Promise<Measured>((resolve) => {
        const check = () => {
          const isDrawn = document.querySelector('.shown[aria-busy="false"] .plot canvas') !== null;
          if (!isDrawn) return void requestAnimationFrame(check);
          requestAnimationFrame(() => {
            const drawn = performance.now();
            // Tasks are reported after they end.
            setTimeout(() => {
              const { seen } = globalThis as unknown as { seen: { longestTask: number } };
              const answers = performance
                .getEntriesByType("resource")
                .filter(({ name }) => new URL(name).pathname.startsWith("/data")) as PerformanceResourceTiming[];
              const answered = Math.max(...answers.map(({ responseEnd }) => responseEnd));
              const bytes = Math.max(...answers.map(({ decodedBodySize }) => decodedBodySize));
              resolve({ answered, drawn, longestTask: seen.longestTask, bytes });
            }, 500);
          });
        };
        check();
      }),
  );
}

const UPLOT = readFileSync(createRequire(import.meta.url).resolve("uplot/dist/uPlot.iife.min.js"), "utf8");

/** The same number of points in as many lines, from arrays of numbers. */
async function drawBare(browser: Browser): Promise<Measured> {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
  await page.setContent('<div id="plot"></div>');
  await page.addScriptTag({ content: UPLOT });
  const measured = await page.evaluate(
    ({ variables, points }) =>
      new Promise<Measured>((resolve) => {
        let longestTask = 0;
        new PerformanceObserver((list) => {
          for (const { duration } of list.getEntries()) longestTask = Math.max(longestTask, duration);
        }).observe({ type: "longtask" });
        const times = Float64Array.from({ length: points }, (_, at) => 1_735_689_600 + at * 900);
        const lines = Array.from({ length: variables }, (_, line) =>
          Float64Array.from({ length: points }, (_, at) => (at % 400) * 0.25 + line),
        );
        // A task of its own, as an answer that has come.
        setTimeout(() => {
          const began = performance.now();
          const { uPlot } = globalThis as unknown as { uPlot: new (...parts: unknown[]) => unknown };
          const series = [{}, ...lines.map((_, at) => ({ stroke: `hsl(${at * 36} 70% 40%)`, label: `${at}` }))];
          const place = document.getElementById("plot");
          new uPlot({ width: 900, height: 400, series, legend: { show: false } }, [times, ...lines], place);
          requestAnimationFrame(() =>
            requestAnimationFrame(() => {
              const drawn = performance.now() - began;
              setTimeout(() => resolve({ answered: 0, drawn, longestTask, bytes: 0 }), 500);
            }),
          );
        });
      }),
    { variables: VARIABLES, points: STEPS_A_YEAR },
  );
  await page.close();
  return measured;
}

/** The longest task, in milliseconds. */
async function zoomThrough(page: Page, address: string): Promise<number> {
  await drawPage(page, address);
  await page.evaluate(() => Object.assign((globalThis as unknown as { seen: object }).seen, { longestTask: 0 }));
  for (const name of ["Zoom in", "Zoom out"])
    for (let step = 0; step < ZOOMS; step += 1) {
      await page.getByRole("button", { name, exact: true }).click();
      await page.locator('.shown[aria-busy="false"] .plot canvas').waitFor();
    }
  await page.waitForTimeout(500);
  return page.evaluate(() => (globalThis as unknown as { seen: { longestTask: number } }).seen.longestTask);
}
