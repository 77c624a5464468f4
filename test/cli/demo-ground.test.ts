import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { prepareGround } from "#app/cli/demo/demo.ts";
import { openBrowser } from "../hub/browser.ts";

const folder = mkdtempSync(join(tmpdir(), "headgate-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("a second demo in the same folder is refused and changes nothing, until the first has ended", async () => {
  const state = join(folder, "demo");
  const kept = join(state, "kept");
  const first = await prepareGround(state, false);
  try {
    writeFileSync(kept, "");
    const refused = { code: "HG-CLI-007", hint: expect.stringContaining("--state") };
    for (const keep of [false, true]) await expect(prepareGround(state, keep)).rejects.toMatchObject(refused);
    expect(existsSync(kept)).toBe(true);
  } finally {
    await first.close();
  }
  const next = await prepareGround(state, false);
  try {
    // A person or a program signs in at the explorer as its links say.
    const links = JSON.parse(readFileSync(join(state, "links.json"), "utf8"));
    expect(links).toEqual(next.links);
    const browser = openBrowser({ url: () => next.hubUrl });
    await browser.signIn(links.explorerUser, links.explorerPassword);
    const headers = { accept: "text/html" };
    const page = await browser.request("GET", new URL(links.explorer).pathname, { headers });
    expect(await page.text()).toContain("<title>Explorer · Headgate hub</title>");
  } finally {
    await next.close();
  }
  expect(existsSync(kept)).toBe(false);
});
