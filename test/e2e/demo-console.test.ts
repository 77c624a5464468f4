/** The console of `npm start`. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { openBrowser } from "../operations/console/fixture.ts";
import { HeadgateProcess } from "./processes.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

test("the demo prints a link to its console, which signs in, and names it for programs", async () => {
  const folder = await mkdtemp(join(tmpdir(), "headgate-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const demo = new HeadgateProcess(["demo", "--state", join(folder, "demo")]);
  onTestFinished(() => demo.end("SIGKILL").then(() => undefined));
  await demo.said("stdout", /console +http/);
  const link = /console +(http\S+)/.exec(demo.stdout)?.[1] ?? "";
  const links = JSON.parse(await readFile(join(folder, "demo/links.json"), "utf8"));
  expect(links).toMatchObject({ console: link, explorer: expect.any(String), explorerUser: expect.any(String) });
  const browser = openBrowser(link);
  expect((await browser.ask(link)).status).toBe(200);
  expect((await browser.ask("/console")).status).toBe(200);
  expect(await (await browser.ask("/operations/me")).json()).toMatchObject({ role: "operator" });
});
