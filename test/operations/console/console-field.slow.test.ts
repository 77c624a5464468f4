/** The console beside the field in Chromium: a changed host key, a late file, and a person who may only read. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import ssh2 from "ssh2";
import { afterAll, beforeAll, expect, test } from "vitest";
import { silentLog } from "#core/log.ts";
import { hashPassword } from "#core/sign-in/passwords.ts";
import type { Gateway } from "#gateway/gateway.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "../../runs/gateway-rig.ts";
import { describeInChromium, openChromium } from "../../support/chromium.ts";
import { type FieldSftp, startFieldSftp } from "../../support/field/sftp.ts";
import { JumpingClock } from "../../support/jumping-clock.ts";
import { axeFaults, signedIn } from "./console-browser.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const user = { username: "meter", password: "open sesame" };
const COST = { memory: 64, passes: 1 };

describeInChromium("the console beside the field, in Chromium", () => {
  let rig: GatewayRig;
  let gateway: Gateway;
  let chromium: Browser;
  let server: FieldSftp;
  let variable: number;
  const clock = new JumpingClock();
  beforeAll(async () => {
    rig = await GatewayRig.start();
    variable = await rig.variable("M-1");
    const root = join(rig.folder, "remote");
    mkdirSync(root);
    const former = await startFieldSftp({ root, ...user });
    await former.close();
    server = await startFieldSftp({
      ...{ root, ...user, port: former.port },
      hostKey: ssh2.utils.generateKeyPairSync("ed25519").private,
    });
    const { host, port } = server;
    const hostKeys = [former.hostKeyFingerprint];
    const polls = { every: "100ms", settle: { observations: 1 } };
    // An hour before the next noon, when the daily file is due.
    clock.jump(2 * DAY_MS - ((clock.now().epochMilliseconds - 12 * HOUR_MS) % DAY_MS) - HOUR_MS);
    gateway = await rig.open(
      {
        drops: [drop("in"), { kind: "sftp", name: "field", host, port, ...user, hostKeys, ...polls }],
        triggers: [trigger("daily", { expect: { by: "12:00", timeZone: "UTC" } })],
      },
      silentLog,
      clock,
    );
    chromium = await openChromium();
  });
  afterAll(async () => {
    await chromium.close();
    await rig.close();
    await server.close();
  });

  test("the changed host key of a server is shown beside the trusted one, and approved", async () => {
    writeFileSync(join(rig.folder, "remote/a.csv"), oneReading(variable, 7));
    const { page, faults } = await signedIn(chromium, gateway);
    await page.getByRole("link", { name: "Drops" }).click();
    await page.getByRole("row").filter({ hasText: "field" }).getByText("In trouble").waitFor();
    await page.getByRole("link", { name: "field" }).click();
    const card = page.getByRole("region", { name: "Host key" });
    await card.getByText("Not trusted").waitFor();
    await card.getByText(server.hostKeyFingerprint).waitFor();
    expect(await card.getByText(/^SHA256:/).count()).toBe(2);
    expect(await axeFaults(page)).toEqual([]);
    await card.getByRole("button", { name: "Approve the new key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText(server.hostKeyFingerprint).waitFor();
    await dialog.getByRole("button", { name: "Approve this key" }).click();
    await card.getByText("Trusted", { exact: true }).waitFor();
    await page
      .getByRole("heading", { name: /^field/ })
      .getByText("In order")
      .waitFor();
    await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 7);
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test("a file that came late shows in the calendar, and leads to its page", async () => {
    clock.jump(26 * HOUR_MS);
    rig.put("in/late.csv", oneReading(variable, 2));
    await until("the file is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 2);
    const { page, faults } = await signedIn(chromium, gateway);
    await page.getByRole("link", { name: "Overview" }).click();
    const calendar = page.getByRole("region", { name: "Expected files" });
    await calendar.getByRole("heading", { name: /daily .*1 late/ }).waitFor();
    await calendar.getByRole("link", { name: /Late, came/ }).click();
    await page.getByRole("heading", { name: /^late\.csv/ }).waitFor();
    expect(faults).toEqual([]);
    await page.context().close();
  });

  test("a viewer sees all and reads why actions are refused, and the page stays small", async () => {
    const password = await hashPassword("vic's password", COST);
    rig.put("in/wrong.csv", "variable_id,date,value\n1,2026-03-01T00:00:00Z,x\n");
    gateway = await rig.open({
      triggers: [trigger("daily")],
      operations: { listen: "127.0.0.1:0", console: { users: [{ name: "Vic", role: "viewer", password }] } },
    });
    const page = await chromium.newPage();
    await page.goto(gateway.consoleUrl ?? "");
    await page.getByLabel("Name").fill("Vic");
    await page.getByLabel("Password").fill("vic's password");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("viewer").first().waitFor();
    const replay = page.getByRole("button", { name: /^Replay…/ });
    await replay.waitFor();
    expect(await replay.getAttribute("aria-disabled")).toBe("true");
    expect(await replay.innerText()).toContain("Only an operator may do this");
    await replay.click({ force: true });
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(await axeFaults(page)).toEqual([]);
    // Script and stylesheets of the first view, compressed.
    const own = page.locator("script[src], link[rel=stylesheet]");
    const paths = await own.evaluateAll((all) => all.map((one) => one.getAttribute("src") ?? one.getAttribute("href")));
    let bytes = 0;
    for (const path of paths) {
      const answer = await fetch(new URL(path ?? "", gateway.operationsUrl), {
        headers: { "accept-encoding": "gzip" },
      });
      expect(answer.status).toBe(200);
      bytes += Number(answer.headers.get("content-length"));
    }
    expect(paths.length).toBeGreaterThan(1);
    expect(bytes).toBeGreaterThan(1_000);
    expect(bytes).toBeLessThan(200_000);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Password").waitFor();
    await page.close();
  });
});
