/**
 * Bytes that the disk of the spool changed while no gateway ran: nothing that is wrong is sent, and the
 * damaged copy is made again.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { expectStoredOnce } from "./kill-scenario.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { Rig, type Stage } from "./rig.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

/** A stage whose gateway was killed at this point, with one file on its way. */
async function killedAt(fault: string, name: string): Promise<{ stage: Stage; readings: Readings }> {
  const stage = await rig.stage(name);
  const readings = readingsOf(await rig.variable(name), 100);
  await stage.put("standard_one.csv", readings.csv);
  expect((await stage.untilIdle(fault)).signal).toBe("SIGKILL");
  return { stage, readings };
}

/** Changes one byte of the only file in a folder of the spool whose name ends so; of the text, its last digit. */
async function change(stage: Stage, folder: string, end: string, text: string): Promise<void> {
  const places = join(stage.folder, "state/spool", folder);
  const [name, ...others] = (await readdir(places)).filter((one) => one.endsWith(end));
  expect(others).toEqual([]);
  const path = join(places, name ?? expect.fail("nothing is in the spool"));
  const bytes = await readFile(path);
  const at = bytes.indexOf(text) + text.length - 1;
  expect(at).toBeGreaterThan(text.length);
  // Another digit.
  bytes[at] = 0x30 + (0x39 - (bytes[at] ?? 0));
  await writeFile(path, bytes);
}

async function eventsOf(stage: Stage): Promise<readonly string[]> {
  return await stage.inspect(async (ledger) =>
    (await ledger.trace("standard_one.csv")).flatMap(({ events }) => events.map(({ detail }) => detail ?? "")),
  );
}

test("an input that was changed before it was mapped is fetched again", async () => {
  const { stage, readings } = await killedAt("ledger.run.fetched.after", "changed-input");
  await change(stage, "inputs", "", ",12.5");
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("an input in the spool is damaged");
  expect(await eventsOf(stage)).toContainEqual(expect.stringContaining("it is fetched again"));
  await expectStoredOnce(rig, [readings]);
});

test("a segment is mapped again from an intact input, also where the copy in the spool was changed", async () => {
  const { stage, readings } = await killedAt("ledger.run.mapped.after", "changed-both");
  await change(stage, "inputs", "", ",12.5");
  await rm(join(stage.folder, "state/spool/segments"), { recursive: true });
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  expect(stderr).toContain("an input in the spool is damaged");
  await expectStoredOnce(rig, [readings]);
});

test("a changed target index is not trusted: the guard checks the targets of the batches", async () => {
  const { stage, readings } = await killedAt("ledger.run.mapped.after", "changed-about");
  await change(stage, "segments", ".segment", `"target":{"variableId":${readings.variableId}`);
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  await expectStoredOnce(rig, [readings]);
});

test("a container that was changed is fetched again before its entries are extracted", async () => {
  const stage = await rig.stage("changed-container");
  const readings = readingsOf(await rig.variable("changed-container"), 100);
  // Stored and not compressed, its digits can be changed.
  await stage.put("standard_one.csv.gz", gzipSync(readings.csv, { level: 0 }));
  expect((await stage.untilIdle("ledger.run.opened.after")).signal).toBe("SIGKILL");
  await change(stage, "inputs", "", ",12.5");
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  await expectStoredOnce(rig, [readings]);
});
