/** All pages of the hub, as people with other eyes and hands meet them: axe in each look, and the Tab key. */
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildPage } from "#core/pages/bundle.ts";
import { axeFaults, tooWide } from "../operations/console/console-browser.ts";
import { describeInChromium, openChromium } from "../support/chromium.ts";
import { addressOf, createChain, startTestHub, type TestHub } from "./fixture.ts";

const WIDTHS = [400, 1_280, 1_920];
const COLOURS = ["light", "dark"] as const;
/** More than any page has places for the focus. */
const STEPS_MAX = 400;
const LIMIT_MS = 300_000;

/** What the Tab key does not reach, where the focus cannot be seen, and where it does not leave. */
async function walkFaults(page: Page): Promise<readonly string[]> {
  const faults = new Set<string>();
  await page.evaluate(() => {
    Object.assign(globalThis, { reached: new Set<Element>() });
    (document.activeElement as HTMLElement | null)?.blur();
  });
  // A page may begin in its first field: the first round has what is after it.
  let rounds = 0;
  for (let step = 0; step < STEPS_MAX && rounds < 2; step += 1) {
    await page.keyboard.press("Tab");
    const found = await page.evaluate(() => {
      const { reached } = globalThis as unknown as { reached: Set<Element> };
      const active = document.activeElement;
      if (active === null || active === document.body || active === document.documentElement) return "round";
      reached.add(active);
      const { outlineStyle, outlineWidth } = getComputedStyle(active);
      const isSeen = outlineStyle !== "none" && Number.parseFloat(outlineWidth) >= 2;
      return isSeen ? null : `the focus is not seen: ${active.outerHTML.slice(0, 120)}`;
    });
    if (found === "round") rounds += 1;
    else if (found !== null) faults.add(found);
  }
  if (rounds < 2) faults.add("the focus does not leave the page");
  const missed = await page.evaluate(() => {
    const { reached } = globalThis as unknown as { reached: Set<Element> };
    const controls = "a[href], button, input:not([type=hidden]), select, textarea, summary";
    return [...document.querySelectorAll<HTMLElement>(controls)]
      .filter((one) => !one.matches(":disabled, [tabindex='-1']") && one.checkVisibility() && !reached.has(one))
      .map((one) => `the focus does not reach ${one.outerHTML.slice(0, 120)}`);
  });
  return [...faults, ...missed].map((words) => `${page.url()}: ${words}`);
}

/** In each width and colour. */
async function lookFaults(page: Page): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const width of WIDTHS)
    for (const colorScheme of COLOURS) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      const wide = await tooWide(page);
      if (wide > 0) faults.push(`${page.url()} at ${width} pixels is ${wide} too wide`);
      for (const words of await axeFaults(page)) faults.push(`${width} ${colorScheme} ${words}`);
    }
  return faults;
}

describeInChromium("the looks of the hub's pages", () => {
  let hub: TestHub;
  let chromium: Browser;
  let page: Page;
  let variables: string;
  beforeAll(async () => {
    await buildPage("explorer");
    hub = await startTestHub();
    chromium = await openChromium();
    const hourly = { granularity: 1, granularityTimeBase: 3, isVersioned: true };
    const { variableIds } = await createChain(hub, {
      source: { serialNumber: "MTR-0042" },
      variables: [
        { name: "Energy", quantityType: 2, ...hourly },
        { name: "Power", quantityType: 1, unitId: 4, ...hourly },
      ],
    });
    variables = variableIds.join(",");
    const data = Array.from({ length: 30 }, (_, hour) => ({
      date: new Date(Date.UTC(2026, 2, 1, hour)).toISOString(),
      value: hour % 7,
    })).filter((_, hour) => hour !== 9);
    await hub.push(variableIds.map((variableId) => ({ variableId, data })));
    page = await chromium.newPage();
    page.setDefaultTimeout(20_000);
  });
  afterAll(async () => {
    await chromium.close();
    await hub.close();
  });

  async function signIn() {
    await page.goto(`${hub.url()}/sign-in`);
    if ((await page.getByLabel("User name or e-mail").count()) === 0) return;
    await page.getByLabel("User name or e-mail").fill("manager");
    await page.getByLabel("Password").fill("manager-password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL((url) => !url.pathname.endsWith("/sign-in"));
  }

  /** Pages that a browser opens by their addresses; the explorer has tests of its own. */
  const paths = () => [
    ...new Set(
      hub.routes
        .filter(({ method, url, facts }) => method === "GET" && facts.tag === "Pages" && !/assets|oidc|\.css/.test(url))
        .map((route) => addressOf(route, { "": 1 }))
        .filter((path) => path !== "/"),
    ),
  ];

  test("axe finds nothing on pages without a session, and each control has the focus in turn", {
    timeout: LIMIT_MS,
  }, async () => {
    const faults: string[] = [];
    for (const path of ["/sign-in", "/password/forgot", "/invitation?token=x"]) {
      await page.goto(hub.url() + path);
      faults.push(...(await lookFaults(page)), ...(await walkFaults(page)));
    }
    expect(faults).toEqual([]);
  });

  test("axe finds nothing on the pages of a manager, and each control has the focus in turn", {
    timeout: LIMIT_MS,
  }, async () => {
    await signIn();
    const faults: string[] = [];
    const own = paths();
    expect(own).toEqual(expect.arrayContaining(["/me", "/me/tokens", "/people", "/people/1", "/sign-out"]));
    for (const path of own) {
      await page.goto(hub.url() + path);
      faults.push(...(await lookFaults(page)), ...(await walkFaults(page)));
    }
    expect(faults).toEqual([]);
  });

  const PERIOD = "&from=2026-03-01&to=2026-03-02";
  const VIEWS: Readonly<Record<string, string>> = {
    nothing: "",
    "values as stored, with a comparison": `${PERIOD}&granularity=Raw&compare=day`,
    "a point": `${PERIOD}&granularity=Raw&point=VARIABLE@2026-03-01T05:00:00.000Z&state=asof:2099-01-01T00:00:00Z`,
    "a heat map": `${PERIOD}&view=heat`,
    "a load duration curve": `${PERIOD}&view=duration`,
  };
  for (const [name, more] of Object.entries(VIEWS))
    test(`the explorer with ${name} is read and walked through`, { timeout: LIMIT_MS }, async () => {
      await signIn();
      const query =
        more === "" ? "" : `?variables=${variables}${more.replace("VARIABLE", variables.split(",")[0] ?? "")}`;
      await page.goto(`${hub.url()}/${query}`);
      if (more === "") {
        await page.getByLabel("Search").fill("mtr-0042");
        await page.getByText(/found$/).waitFor();
      } else await page.getByRole("region", { name: "Table" }).getByRole("table").waitFor();
      if (more.includes("point="))
        await page
          .getByRole("region", { name: /^Energy, 2026-03-01/ })
          .getByRole("table")
          .waitFor();
      expect(await lookFaults(page)).toEqual([]);
      expect(await walkFaults(page)).toEqual([]);
    });
});
