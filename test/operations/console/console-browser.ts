/** A gateway with its console, and Chromium signed in to it. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, Page } from "playwright-core";
import type { Gateway } from "../../../src/gateway.ts";

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
