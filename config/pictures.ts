/**
 * Takes the pictures of the console and the explorer in `docs/images/`: the demo runs in a folder of its own, and
 * Chromium opens its pages in the widths and colours in which people see them. As WebP they have a third of the size of
 * PNG. `node config/pictures.ts [FOLDER]`.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";

const root = join(import.meta.dirname, "..");
const folder = resolve(process.argv[2] ?? join(root, "docs/images"));
const CHROMIUM = "/usr/bin/chromium";
const WAIT_MS = 120_000;
/** Of WebP: text stays sharp. */
const QUALITY = 70;
const SIZES = [
  { width: 400, height: 800 },
  { width: 1_280, height: 860 },
  { width: 1_920, height: 1_080 },
] as const;
const LOOKS = SIZES.flatMap((size) => (["light", "dark"] as const).map((colorScheme) => ({ ...size, colorScheme })));

/** A file as the field sends it: its decimal marks are not those that the trigger expects. */
const WRONG = [
  "source_serial_number,mapping_config,date,value",
  ...Array.from({ length: 24 }, (_, hour) => {
    const value = (3 + Math.sin(hour / 4)).toFixed(2).replace(".", ",");
    return `BRU-E-001,active-energy,2026-03-21T${String(hour).padStart(2, "0")}:00:00Z,"${value}"`;
  }),
  "",
].join("\n");
const FILE = "standard_office_2026-03-21.csv";

/** Each begins at the page after the sign-in, which shows the inbox. */
const PAGES: Readonly<Record<string, (page: Page, base: string) => Promise<unknown>>> = {
  attention: async (page) => {
    await page.getByRole("button", { name: /^Show/ }).first().click();
    await page.getByRole("table").first().waitFor();
  },
  file: (page) => openFile(page),
  playground: async (page) => {
    await openFile(page);
    await page.getByRole("link", { name: "Try it in the playground" }).click();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByText("Would be quarantined").waitFor();
    await page.getByLabel(/^decimal/).selectOption(",");
    await result.getByText("24 readings").waitFor();
    // Where it stands below the settings.
    if (((await result.boundingBox())?.x ?? 0) < 100) await result.evaluate((one) => one.scrollIntoView());
  },
  overview: async (page, base) => {
    await page.goto(`${base}/overview`);
    await page.getByRole("heading", { name: "Expected files" }).waitFor();
  },
  drops: async (page, base) => {
    await page.goto(`${base}/drops`);
    await page.getByRole("table").waitFor();
  },
};

/** Of the explorer, by the variables of the demo; each begins at its address. */
const VIEWS: Readonly<Record<string, string>> = {
  plot: "?variables=1,3&from=2026-03-02&to=2026-03-09",
  heat: "?variables=1&from=2026-03-01&to=2026-04-01&view=heat",
};

async function openFile(page: Page): Promise<void> {
  for (const button of await page.getByRole("button", { name: /^Show/ }).all()) {
    await button.click();
    await page.getByRole("button", { name: /^Hide/ }).waitFor();
    const link = page.getByRole("link", { name: FILE });
    await page.getByRole("table").first().waitFor();
    if ((await link.count()) === 0) continue;
    await link.first().click();
    await page.getByRole("heading", { name: "Timeline" }).waitFor();
    return;
  }
  throw new Error(`${FILE} is not in the inbox`);
}

/** What the window shows. */
async function take(page: Page, path: string): Promise<void> {
  const devTools = await page.context().newCDPSession(page);
  const { data } = await devTools.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  writeFileSync(path, data, "base64");
}

async function until<Value>(what: string, read: () => Promise<Value | null>): Promise<Value> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const value = await read();
    if (value !== null) return value;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await sleep(200);
  }
}

async function takeAll(browser: Browser, link: string): Promise<void> {
  const base = link.slice(0, link.indexOf("/enter"));
  const first = await browser.newContext();
  const page = await first.newPage();
  await page.goto(link);
  // The demo's files are at their ends when the numbers of the inbox no longer change.
  let seen = "";
  await until("the demo's files", async () => {
    const words = await page.locator("main").innerText();
    const isSettled = words === seen && words.includes("Quarantined");
    seen = words;
    if (!isSettled) await sleep(3_000);
    return isSettled || null;
  });
  const storageState = await first.storageState();
  for (const { width, height, colorScheme } of LOOKS) {
    const context = await browser.newContext({ storageState, viewport: { width, height }, colorScheme });
    // Pictures name neither the machine nor the user that took them.
    await context.route("**/operations/me", async (route) => {
      const answer = await route.fetch();
      const me = (await answer.json()) as { gateway: object };
      await route.fulfill({
        response: answer,
        json: { ...me, name: "Ada", gateway: { ...me.gateway, name: "plant-7" } },
      });
    });
    for (const [name, open] of Object.entries(PAGES)) {
      const shown = await context.newPage();
      await shown.goto(base);
      await shown.getByRole("button", { name: /^Show/ }).first().waitFor();
      await open(shown, base);
      await shown.getByText("Loading …").first().waitFor({ state: "detached" });
      await take(shown, join(folder, `console-${name}-${width}-${colorScheme}.webp`));
      await shown.close();
    }
    await context.close();
  }
}

interface Links {
  readonly console: string;
  readonly explorer: string;
  readonly explorerUser: string;
  readonly explorerPassword: string;
}

async function takeExplorer(browser: Browser, { explorer, explorerUser, explorerPassword }: Links): Promise<void> {
  const first = await browser.newContext();
  const page = await first.newPage();
  await page.goto(explorer);
  await page.getByLabel("User name or e-mail").fill(explorerUser);
  await page.getByLabel("Password").fill(explorerPassword);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Search").waitFor();
  const storageState = await first.storageState();
  for (const { width, height, colorScheme } of LOOKS) {
    const context = await browser.newContext({ storageState, viewport: { width, height }, colorScheme });
    for (const [name, address] of Object.entries(VIEWS)) {
      const shown = await context.newPage();
      await shown.goto(new URL(address, explorer).href);
      const plot = shown.locator('.shown[aria-busy="false"] canvas').first();
      await plot.waitFor();
      // On a phone it stands below the tree.
      if (width < 600) await plot.evaluate((one) => one.scrollIntoView({ block: "center" }));
      await take(shown, join(folder, `explorer-${name}-${width}-${colorScheme}.webp`));
      await shown.close();
    }
    await context.close();
  }
}

const parent = mkdtempSync(join(tmpdir(), "headgate-pictures-"));
const state = join(parent, "demo");
mkdirSync(folder, { recursive: true });
const demo = spawn(process.execPath, [join(root, "src/headgate.js"), "demo", "--state", state], { stdio: "ignore" });
const links = join(state, "links.json");
try {
  const found = await until("the demo", async () => {
    const known = existsSync(links) ? (JSON.parse(readFileSync(links, "utf8")) as Partial<Links>) : {};
    return known.console === undefined ? null : (known as Links);
  });
  writeFileSync(join(state, "drops/local", FILE), WRONG);
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args });
  try {
    await takeAll(browser, found.console);
    await takeExplorer(browser, found);
  } finally {
    await browser.close();
  }
} finally {
  demo.kill("SIGTERM");
  if (demo.exitCode === null) await once(demo, "exit");
  rmSync(parent, { recursive: true, force: true });
}
