import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { verifyPassword } from "#core/sign-in/passwords.ts";
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

test("a link that was made before a restart opens the console after it, once, and its file holds no code", async () => {
  await rig.open({});
  const make = async (name: string) => {
    const { stdout } = await headgate(["console", "link", "-c", rig.config, "--by", name]);
    return new URL(stdout.trim());
  };
  const used = await make("Ada");
  expect((await openBrowser(used.href).ask(used.href)).status).toBe(200);
  const kept = await make("Jürgen");
  const file = join(rig.folder, "state/ledger.sqlite.links");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await readFile(file, "utf8")).not.toContain(kept.searchParams.get("code"));
  for (const isUsed of [false, true]) {
    const { consoleUrl } = await rig.open({});
    const enter = async ({ search }: URL) => {
      const browser = openBrowser(consoleUrl ?? "");
      await browser.ask(`/console/enter${search}`);
      return (await (await browser.ask("/operations/me")).json()) as object;
    };
    expect(await enter(used)).toMatchObject({ status: 401 });
    expect(await enter(kept)).toMatchObject(isUsed ? { status: 401 } : { name: "Jürgen", role: "operator" });
  }
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
