/** A file of 2,300 batches stays readable: its page in Chromium, and its trace. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { captureShown } from "../../cli/shown.ts";
import { GatewayRig, until } from "../../runs/gateway-rig.ts";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { openPage, signedIn } from "./console-browser.ts";

const BATCHES = 2_300;
const shown = captureShown();

describeInChromium("the page of a file with 2,300 batches", () => {
  let rig: GatewayRig;
  let gateway: Gateway;
  let chromium: Browser;
  beforeAll(async () => {
    rig = await GatewayRig.start();
    const variable = await rig.variable("a");
    const rows = Array.from({ length: BATCHES }, (_, nth) => {
      const date = new Date(Date.UTC(2025, 0, 1) + nth * 900_000).toISOString();
      return `${variable},${date},${nth}\n`;
    });
    rig.put("in/large.csv", `variable_id,date,value\n${rows.join("")}`);
    gateway = await rig.open({ push: { batch: { points: 1 }, confirm: { by: "none" } } });
    chromium = await openChromium();
    await until("the file is delivered", async () => (await gateway.ledger.recentRuns(1))[0]?.state === "accepted");
  }, 300_000);
  afterAll(async () => {
    await chromium.close();
    await rig.close();
  });

  test("has fewer than 5,000 nodes, and shows more batches when it is asked to", async () => {
    const [run] = await gateway.ledger.recentRuns(1);
    const { page, faults } = await signedIn(chromium, gateway);
    await openPage(page, `${gateway.consoleUrl}/files/${run?.arrivalId}`);
    const folded = "And 2,298 more batches with 2,298 readings, which went like most.";
    await page.getByText(folded).waitFor();
    await page
      .getByText(/2,300 of these, the last/)
      .first()
      .waitFor();
    const nodes = () => page.evaluate(() => document.querySelectorAll("*").length);
    expect(await nodes()).toBeLessThan(5_000);
    await page.getByRole("button", { name: "Show more" }).first().click();
    await page.getByText("The first 200 of 2,300.").waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test("is traced in a few lines, in all with --all, and as JSON with every batch", async () => {
    const trace = async (...more: readonly string[]) => {
      shown.stdout = "";
      expect(await shown.headgate(["trace", "large.csv", "-c", rig.config, "--no-service", ...more])).toBe(0);
      return shown.stdout;
    };
    const short = await trace();
    expect(short.split("\n").length).toBeLessThan(60);
    expect(short).toContain("2,300 of these");
    expect(short).toMatch(/and 2,298 more with 2,298 points, like most/);
    expect((await trace("--all")).split("\n").length).toBeGreaterThan(2 * BATCHES);
    const [file] = JSON.parse(await trace("--json"));
    expect(file.runs[0].batches).toHaveLength(BATCHES);
    expect(file.events.length).toBeGreaterThan(2 * BATCHES);
  });
});
