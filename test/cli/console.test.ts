import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { verifyPassword } from "../../src/support/sign-in/passwords.ts";
import { headgate } from "../e2e/processes.ts";
import { openBrowser } from "../operations/console/fixture.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

test("a link to the console of a running gateway signs in, under the name of the person who asked", async () => {
  rig.configure({});
  const without = await headgate(["console", "link", "-c", rig.config]);
  expect(without.code).toBe(2);
  expect(without.stderr).toContain("HG-OPS-008");
  await rig.open({});
  const { code, stdout, stderr } = await headgate(["console", "link", "-c", rig.config, "--by", "Jürgen"]);
  expect(code, stderr).toBe(0);
  const browser = openBrowser(stdout);
  expect((await browser.ask(stdout.trim())).status).toBe(200);
  expect(await (await browser.ask("/operations/me")).json()).toMatchObject({ name: "Jürgen", role: "operator" });
});

test("a hash of a password from standard input is one that signs in", async () => {
  const { code, stdout } = await headgate(["console", "password"], {
    through: ["sh", "-c", 'echo "a password" | "$0" "$@"'],
  });
  expect(code).toBe(0);
  expect(await verifyPassword("a password", stdout.trim())).toBe(true);
  const short = await headgate(["console", "password"], { through: ["sh", "-c", 'echo short | "$0" "$@"'] });
  expect(short.code).toBe(2);
});
