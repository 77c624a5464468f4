/**
 * The console of a gateway with a large ledger, as a browser sees it: how soon the first view and the answers of the
 * search are shown, and what the page takes of memory.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Browser, chromium, type Page } from "playwright-core";
import { dropNames, triggerNames } from "./console-data.ts";
import { writeConfig } from "./delivery-gateway.ts";
import { print, quantile, row } from "./hub-print.ts";

const CHROMIUM = "/usr/bin/chromium";
const WAIT_MS = 60_000;
/** Words that a person searches for, by what they find. The names are of one of the oldest files. */
const SEARCHES: Readonly<Record<string, string>> = {
  "the beginning of a name": "meters_07919000",
  "a part of a name": "07919000",
  "a part of a folder": "site-77/",
  "in no name": "nowhere",
};

export async function benchConsoleBrowser(folder: string, rounds: number): Promise<void> {
  const gateway = await startDaemon(folder);
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } });
    page.setDefaultTimeout(WAIT_MS);
    await page.goto(gateway.link);
    await page.getByRole("heading", { name: "Needs attention" }).waitFor();
    const base = new URL("/console", gateway.link).href;
    print(`in Chromium: medians of ${rounds}, milliseconds`);
    const views: number[] = [];
    for (let round = 0; round < rounds; round += 1) views.push(await firstView(browser, page, base));
    print(row("first view, nothing cached", quantile(views, 0.5).toFixed(0)));
    for (const [name, words] of Object.entries(SEARCHES)) {
      const times: number[] = [];
      for (let round = 0; round < rounds; round += 1) times.push(await search(page, base, words));
      print(row(`search: ${name}`, quantile(times, 0.5).toFixed(0)));
    }
    await page.goto(base);
    for (const button of (await page.getByRole("button", { name: /^Show/ }).all()).slice(0, 3)) {
      await button.click();
      await page.getByRole("table").first().waitFor();
    }
    print(row("memory of its scripts, MB", ((await heapBytes(page)) / 1e6).toFixed(0)));
    print(row("memory of its process, MB", ((await processBytes(browser)) / 1e6).toFixed(0)));
  } finally {
    await browser.close();
    await gateway.stop();
  }
}

/** From the request for the page to the list of causes, in a browser that has none of its files. */
async function firstView(browser: Browser, signedIn: Page, base: string): Promise<number> {
  const context = await browser.newContext({ storageState: await signedIn.context().storageState() });
  const page = await context.newPage();
  await page.addInitScript(() => {
    const watch = () => {
      if (document.querySelector("main .groups") === null) return void requestAnimationFrame(watch);
      requestAnimationFrame(() => Object.assign(globalThis, { shownMs: performance.now() }));
    };
    watch();
  });
  await page.goto(base);
  const shown = await page.waitForFunction(() => (globalThis as unknown as { shownMs?: number }).shownMs);
  const ms = Number(await shown.jsonValue());
  await context.close();
  return ms;
}

/** From the last letter to the complete answer on the screen; in this time the page also waits for more letters. */
async function search(page: Page, base: string, words: string): Promise<number> {
  await page.goto(`${base}/files`);
  await page.getByRole("table").waitFor();
  return page.evaluate(
    (text) =>
      new Promise<number>((resolve) => {
        const input = document.getElementById("q") as HTMLInputElement;
        const main = document.querySelector("main") as HTMLElement;
        const began = performance.now();
        const check = () => {
          // Until the answer comes, the former one is shown.
          const rows = [...main.querySelectorAll("tbody tr")];
          const isFound = rows.length > 0 && rows.every(({ textContent }) => textContent.includes(text));
          if (!isFound && main.textContent?.includes("No file was found") !== true) return;
          changes.disconnect();
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
        };
        const changes = new MutationObserver(check);
        changes.observe(main, { childList: true, subtree: true, characterData: true });
        input.value = text;
        input.dispatchEvent(new Event("input", { bubbles: true }));
      }),
    words,
  );
}

/** Of the page's scripts and its document, after what is no longer used was removed. */
async function heapBytes(page: Page): Promise<number> {
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("HeapProfiler.collectGarbage");
  await devTools.send("Performance.enable");
  const { metrics } = await devTools.send("Performance.getMetrics");
  return metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? Number.NaN;
}

/** The largest private memory of a process that shows a page. */
async function processBytes(browser: Browser): Promise<number> {
  const devTools = await browser.newBrowserCDPSession();
  const { processInfo } = await devTools.send("SystemInfo.getProcessInfo");
  const pages = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => privateBytes(id));
  return Math.max(...pages);
}

function privateBytes(pid: number): number {
  const found = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8").matchAll(/^Private_\w+: +(\d+) kB$/gm);
  return [...found].reduce((sum, [, kilobytes]) => sum + Number(kilobytes) * 1024, 0);
}

/** The real command on the ledger of the folder. */
async function startDaemon(folder: string): Promise<{ readonly link: string; stop(): Promise<void> }> {
  mkdirSync(join(folder, "drop"), { recursive: true });
  const config = writeConfig({ folder, url: "http://127.0.0.1:9", sections: consoleSections(folder) });
  const args = [join(import.meta.dirname, "../src/headgate.js"), "gateway", "-c", config];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  const link = await Promise.race([linkOf(child), exited.then(() => null)]);
  if (link === null) throw new Error("the gateway did not start");
  return {
    link,
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/**
 * The drops and triggers that the files of the ledger name, and one with files to deliver. Drops that cannot be read
 * leave the files as they are, and so does a ledger that keeps everything.
 */
export function consoleSections(folder: string): Readonly<Record<string, unknown>> {
  const ofLedger = dropNames.map((name) => ({ kind: "local", name, path: join(folder, "missing", name) }));
  const bench = { kind: "local", name: "bench", path: join(folder, "drop"), settle: { observations: 1 } };
  const fileNamePatternMatches = [{ filterType: "EndsWith", value: ".csv" }];
  const triggers = triggerNames.map((name) => ({ name, fileNamePatternMatches, mapper: "standard", guard: "push" }));
  const [first, ...others] = triggers;
  return {
    ledger: { kind: "sqlite", path: join(folder, "state/ledger.sqlite"), keep: "10000d" },
    drops: [bench, ...ofLedger],
    triggers: [{ ...first, drops: ["bench"] }, ...others.map((one) => ({ ...one, drops: dropNames }))],
  };
}

async function linkOf({ stderr }: ChildProcess): Promise<string> {
  if (stderr === null) throw new Error("the gateway has no log");
  for await (const line of createInterface({ input: stderr })) {
    if (!line.includes('"console":')) continue;
    stderr.resume();
    return (JSON.parse(line) as { readonly console: string }).console;
  }
  throw new Error("the gateway printed no link");
}
