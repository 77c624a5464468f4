/** `headgate ledger check`, on what a gateway left whose service was away. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Run } from "../../src/model.ts";
import { GatewayRig, oneReading, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const spool = (...path: string[]) => join(rig.folder, "state/spool", ...path);
async function check(...more: string[]) {
  const { stdout, code } = await headgate(
    "ledger",
    "check",
    "-c",
    join(rig.folder, "gateway.yaml"),
    "--json",
    ...more,
  );
  return { code, found: JSON.parse(stdout) as { about: string; subject: string; repaired: boolean }[] };
}
const away = () => ({ services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }] });

/** A file that was sent in vain, and the gateway stopped. */
async function sentInVain(variable: number): Promise<Run> {
  rig.put("in/waits.csv", oneReading(variable, 4));
  const gateway = await rig.open(away());
  await until("it is sent", async () => (await gateway.ledger.recentRuns(1))[0]?.state === "delivering");
  expect((await check("--no-drops")).found).toEqual([]);
  const beside = await headgate("ledger", "check", "-c", join(rig.folder, "gateway.yaml"), "--repair");
  expect(beside).toMatchObject({ code: 2, stderr: expect.stringContaining("HG-LEDG-001") });
  const [run] = await gateway.ledger.recentRuns(1);
  await gateway.stop();
  if (run === undefined) throw new Error("no run");
  return run;
}

function scribble(path: string): void {
  const bytes = readFileSync(path);
  bytes[bytes.length - 2] = (bytes.at(-2) ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

it("finds a damaged segment and a damaged input, repairs them, and the file is delivered as it was meant", async () => {
  const variable = await rig.variable("a", true);
  const run = await sentInVain(variable);
  expect(await check()).toEqual({ code: 0, found: [] });
  scribble(spool("segments", `${run.id}.segment`));
  writeFileSync(spool("inputs", "0123stranger"), "of nobody");
  const found = await check();
  expect(found.code).toBe(1);
  expect(found.found.map(({ about, repaired }) => [about, repaired])).toEqual([
    ["segment", false],
    ["input", false],
  ]);
  const repaired = await check("--repair");
  expect(repaired.code).toBe(0);
  expect(existsSync(spool("segments", `${run.id}.segment`))).toBe(false);
  scribble(spool("inputs", run.id));
  expect((await check("--repair")).found.map(({ about }) => about)).toContain("input");
  expect(existsSync(spool("inputs", run.id))).toBe(false);

  const gateway = await rig.open({});
  await until("it is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 4);
  expect((await gateway.ledger.run(run.id))?.state).toMatch(/^(delivering|accepted|confirmed)$/);
});

it("finds a run whose bytes nobody has any more, and lets a person know by quarantine", async () => {
  const run = await sentInVain(await rig.variable("a"));
  rmSync(spool("inputs", run.id));
  rmSync(spool("segments", `${run.id}.segment`));
  rmSync(join(rig.folder, "in/waits.csv"));
  const { found } = await check();
  expect(found.map(({ about }) => about)).toEqual(["segment", "drop"]);
  await check("--repair");
  const listed = await headgate("quarantine", "-c", join(rig.folder, "gateway.yaml"), "--json");
  expect(JSON.parse(listed.stdout)).toMatchObject([{ run: run.id, code: "HG-RUN-009" }]);
});

it("finds a kept input that is torn, and removes it", async () => {
  const variable = await rig.variable("a");
  rig.put("in/a.csv", oneReading(variable, 1));
  const gateway = await rig.open({});
  await until("it is idle", () => gateway.isIdle());
  await gateway.stop();
  const [kept = ""] = readdirSync(spool("kept")).filter((name) => name.endsWith(".input"));
  const bytes = readFileSync(spool("kept", kept));
  writeFileSync(spool("kept", kept), bytes.subarray(0, bytes.length - 12));
  expect((await check()).found.map(({ about }) => about)).toEqual(["kept input"]);
  expect((await check("--repair")).code).toBe(0);
  expect(existsSync(spool("kept", kept))).toBe(false);
  expect((await check()).found).toEqual([]);
});
