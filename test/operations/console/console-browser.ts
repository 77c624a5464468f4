/** A gateway with its console, and Chromium signed in to it. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import type { Gateway } from "#gateway/gateway.ts";

/** Of axe: what WCAG 2.2 requires on level AA, and what the makers of axe recommend. */
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface WatchedPage {
  readonly page: Page;
  /** Requests to other machines, errors of scripts, and what the content policy forbids. */
  readonly faults: readonly string[];
}

/** Signed in by a link that works once. */
export async function signedIn(chromium: Browser, gateway: Gateway, options = {}): Promise<WatchedPage> {
  const context = await chromium.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const own = new URL(gateway.operationsUrl).origin;
  const faults: string[] = [];
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(own) && !/^(data|blob):/.test(url)) faults.push(`asks ${url}`);
  });
  page.on("console", (message) => {
    // A refused request is shown on the page, and the browser notes it besides.
    if (!message.text().startsWith("Failed to load resource")) faults.push(message.text());
  });
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(gateway.consoleLink("alex") ?? "");
  await page.getByRole("heading", { name: "Needs attention" }).waitFor();
  return { page, faults };
}

/** Violations that axe finds on the page as it is shown now. */
export async function axeFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async (values) => {
    const { axe } = globalThis as unknown as {
      axe: {
        run(
          of: unknown,
          options: object,
        ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }>;
      };
    };
    const { violations } = await axe.run(document, { runOnly: { type: "tag", values } });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`);
  }, RULES);
  return found.map((words) => `${page.url()}: ${words}`);
}

/** By how many pixels the page is wider than its window. */
export function tooWide(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}

/** The page at the address below the console, once it has loaded what it shows. */
export async function openPage(page: Page, address: string): Promise<void> {
  await page.goto(address);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.getByText("Loading …").first().waitFor({ state: "detached" });
  await page.getByText("The file is mapped …").first().waitFor({ state: "detached" });
  await page.locator('[aria-busy="true"]').first().waitFor({ state: "detached" });
}

/** Opens the parts of the page that unfold. */
export async function unfold(page: Page): Promise<void> {
  const folded = page.locator("main details:not([open]) > summary:visible");
  while ((await folded.count()) > 0) await folded.first().click();
}

/** What a text of a file, a server or an address became on the page beside a text. */
export async function hostileFaults(page: Page): Promise<readonly string[]> {
  const found = await page.evaluate(() => {
    const turns = /[\u202a-\u202e\u2066-\u2069\u200e\u200f]/;
    const all = [...document.body.querySelectorAll("*")];
    const attributes = ["title", "aria-label", "placeholder", "alt", "label"];
    return [
      ...all.filter((one) => one.matches("img, script, svg, iframe, [onerror], [onload]")).map((one) => one.outerHTML),
      ...(/^\d$/.test(document.title) ? [`the title is ${document.title}`] : []),
      ...(turns.test(document.body.innerText) ? ["a mark turns a text"] : []),
      ...all.flatMap((one) => attributes.filter((name) => turns.test(one.getAttribute(name) ?? ""))),
    ];
  });
  return found.map((words) => `${page.url()}: ${words.slice(0, 200)}`);
}
