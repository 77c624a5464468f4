/** A migration as a person carries it out in the console: in Chromium, by the words on the page. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { axeFaults, signedIn } from "./console-browser.ts";
import { openRichRig, type RichRig } from "./rich-rig.ts";

/** The files are listed and mapped by processes of their own. */
const LONG_MS = 60_000;

describeInChromium("the migrations of the console in Chromium", () => {
  let rig: RichRig;
  let chromium: Browser;
  beforeAll(async () => {
    rig = await openRichRig();
    chromium = await openChromium();
  });
  afterAll(async () => {
    await chromium.close();
    await rig.close();
  });

  test("one is planned, started with hours, paused and resumed, and its undo is previewed", async () => {
    const { page, faults } = await signedIn(chromium, rig.gateway);
    await page.getByRole("link", { name: "Migrations" }).click();
    await page.getByRole("button", { name: "Plan a migration" }).click();
    await page.getByRole("textbox", { name: "Files" }).fill("/etc/*");
    await page.getByLabel("Mapper").selectOption("standard");
    await page.getByRole("button", { name: "Make the plan" }).click();
    await page.getByText("does not name files below a folder of histories").waitFor();
    await page.getByRole("textbox", { name: "Files" }).fill(`${rig.folder}/history/*.csv`);
    await page.getByLabel("Version tag").fill("first");
    await page.getByRole("button", { name: "Make the plan" }).click();
    const card = page.getByRole("region", { name: /Planned|Running|Stopped|Ended/ }).filter({ hasText: "first" });
    await card.getByText("Plan: ready").waitFor({ timeout: LONG_MS });
    await card.getByText("Cannot be mapped").first().waitFor();
    expect(await axeFaults(page)).toEqual([]);

    const dialog = page.getByRole("dialog");
    await card.getByRole("button", { name: "Start…" }).click();
    await dialog.getByText("The plan has findings.").waitFor();
    await dialog.getByLabel("Hours").fill("nonsense");
    await dialog.getByRole("button", { name: "Start", exact: true }).click();
    await dialog.getByText("write it as 22:00-05:00 Europe/Paris").waitFor({ timeout: LONG_MS });
    const hour = new Date(Date.now() + 6 * 3_600_000).getUTCHours();
    await dialog.getByLabel("Hours").fill(`${hour}:00-${hour}:30 UTC`);
    await dialog.getByRole("button", { name: "Start", exact: true }).click();
    await card.getByText("Outside of its hours until").waitFor({ timeout: LONG_MS });
    await card.getByRole("button", { name: "Pause…" }).click();
    await dialog.getByLabel("Why (optional)").fill("not in the night");
    await dialog.getByRole("button", { name: "Pause", exact: true }).click();
    await card.getByRole("button", { name: "Resume…" }).click({ timeout: LONG_MS });
    await dialog.getByLabel("Hours").fill("");
    await dialog.getByRole("button", { name: "Resume", exact: true }).click();
    await card.getByText("Ended", { exact: true }).waitFor({ timeout: LONG_MS });
    await card.getByText("What people did").click();
    await card.getByText("alex: not in the night").waitFor();
    await card.getByRole("button", { name: "What an undo would remove…" }).click();
    await dialog.getByText(/would be removed\./).waitFor({ timeout: LONG_MS });
    expect(await axeFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
    await page.context().close();
  });
});
