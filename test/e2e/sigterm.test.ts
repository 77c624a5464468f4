/**
 * The daemons told to stop in the middle of each kind of work: they end in time and in order, and the next
 * start goes on.
 */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { BatchState, RunState } from "#gateway/model.ts";
import { ALWAYS, expectNothingArchivedEarly, expectStoredOnce } from "./kill-scenario.ts";
import type { HeadgateProcess } from "./processes.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { quickPush, Rig, type Stage, standardTrigger } from "./rig.ts";
import { layThreeDrops } from "./three-drops.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const IN_TIME_MS = 10_000;

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

async function expectStopsInTime(daemon: HeadgateProcess): Promise<void> {
  const askedMs = performance.now();
  const ended = await daemon.end("SIGTERM");
  expect(ended, ended.stderr).toMatchObject({ code: 0, signal: null });
  expect(performance.now() - askedMs).toBeLessThan(IN_TIME_MS);
}

async function expectGoesOn(stage: Stage, expected: readonly Readings[], folder = stage.drop): Promise<void> {
  await expectNothingArchivedEarly(stage, folder);
  const { code, stderr } = await stage.untilIdle();
  expect(code, stderr).toBe(0);
  expect(stage.lane.conflicts).toEqual([]);
  await expectStoredOnce(rig, expected);
  await stage.inspect(async (ledger) => {
    expect((await ledger.tally(ALWAYS)).files).toEqual({ delivered: expected.length });
  });
}

const runIs = (stage: Stage, state: RunState) =>
  until(`a run that is ${state}`, () =>
    stage.inspect(async (ledger) => (await ledger.recentRuns(1))[0]?.state === state),
  );

const batchIs = (stage: Stage, state: BatchState) =>
  until(`a batch that is ${state}`, () =>
    stage.inspect(async (ledger) => {
      const [run] = await ledger.recentRuns(1);
      return run !== undefined && (await ledger.batches(run.id)).some((batch) => batch.state === state);
    }),
  );

async function layFile(stage: Stage, points: number, folder = stage.drop): Promise<readonly Readings[]> {
  const readings = readingsOf(await rig.variable(stage.name), points);
  await stage.put("standard_one.csv", readings.csv, folder);
  return [readings];
}

test("while a file is fetched", async () => {
  const { stage, folders, sftpFaults, close } = await layThreeDrops(rig, "fetching");
  try {
    const readings = readingsOf(await rig.variable("fetching"), 400);
    const filler = "x".repeat(100_000);
    const large = readings.csv.trimEnd().split("\n").join(`,${filler}\n`);
    await stage.put("standard_one.csv", `${large},${filler}\n`, folders.sftp);
    const daemon = stage.gateway([]);
    await daemon.said("stderr", /gateway started/);
    await runIs(stage, "claimed");
    sftpFaults.silent = true;
    await expectStopsInTime(daemon);
    await stage.inspect(async (ledger) =>
      expect((await ledger.recentRuns(1))[0]).toMatchObject({ state: "claimed", reason: null }),
    );
    sftpFaults.silent = false;
    await expectGoesOn(stage, [readings], folders.sftp);
  } finally {
    await close();
  }
});

test.each([
  ["waits", "await new Promise((resolve) => setTimeout(resolve, 20));"],
  ["computes without a pause", ""],
])("while a mapper %s", async (words, pause) => {
  const stage = await rig.stage(`mapping-${words.slice(0, 5)}`, {
    triggers: [{ ...standardTrigger, mapper: "slow" }],
    mappers: { folders: ["./mappers"] },
  });
  const marker = join(stage.folder, "slow");
  await writeFile(marker, "");
  await mkdir(join(stage.folder, "mappers"));
  await writeFile(
    join(stage.folder, "mappers", "slow.ts"),
    `import { existsSync } from "node:fs";
import { defineMapper, z } from "headgate/mapper";
export default defineMapper({
  name: "slow",
  summary: "Waits until a file is gone",
  version: "1.0.0",
  settings: z.strictObject({}),
  async map({ file, emit, eachRow }) {
    await eachRow(file.csv({ columns: true }), (row) =>
      emit({ target: { variableId: Number(row["variable_id"]) }, date: row["date"] ?? "", value: Number(row["value"]) }));
    while (existsSync(${JSON.stringify(marker)})) { ${pause} }
  },
});
`,
  );
  const expected = await layFile(stage, 100);
  const daemon = stage.gateway([]);
  await daemon.said("stderr", /gateway started/);
  await runIs(stage, "mapping");
  await expectStopsInTime(daemon);
  await rm(marker);
  await expectGoesOn(stage, expected);
});

test("while a response to a push is awaited", async () => {
  const stage = await rig.stage("delivering");
  const expected = await layFile(stage, 200);
  const held = Promise.withResolvers<void>();
  stage.lane.interfere = () => (stage.lane.pushes.length >= 3 ? held.promise : "pass");
  const daemon = stage.gateway([]);
  await until("the third push", () => stage.lane.pushes.length >= 3);
  await batchIs(stage, "sending");
  await expectStopsInTime(daemon);
  stage.lane.interfere = () => "pass";
  held.resolve(); // The service takes it after all, though nobody hears the answer.
  await expectGoesOn(stage, expected);
});

test("while the service is unreachable", async () => {
  const stage = await rig.stage("unreachable");
  const expected = await layFile(stage, 100);
  stage.lane.interfere = () => ({ status: 503, body: "{}" });
  const daemon = stage.gateway([]);
  await until("some attempts", () => stage.lane.pushes.length > 3);
  await expectStopsInTime(daemon);
  stage.lane.interfere = () => "pass";
  await expectGoesOn(stage, expected);
});

test("while an outcome is awaited", async () => {
  const stage = await rig.stage("confirming");
  stage.lane.fateOfWebhook = () => "lost";
  const expected = await layFile(stage, 100);
  const daemon = stage.gateway([]);
  await until("three webhooks", () => stage.lane.webhooks === 3);
  await runIs(stage, "accepted");
  await expectStopsInTime(daemon);
  await stage.configure({ push: { ...quickPush, confirm: { pollEvery: "100ms", within: "2s" } } });
  await expectGoesOn(stage, expected);
  await stage.inspect(async (ledger) =>
    expect((await ledger.recentRuns(1))[0]).toMatchObject({ state: "confirmed", points: { stored: 100 } }),
  );
});

test("--until-idle stops too, and reports unfinished work by its exit code", async () => {
  const stage = await rig.stage("until-idle");
  const expected = await layFile(stage, 100);
  stage.lane.interfere = () => ({ status: 503, body: "{}" });
  const gateway = stage.gateway(["--until-idle"]);
  await until("a push", () => stage.lane.pushes.length > 0);
  const askedMs = performance.now();
  expect(await gateway.end("SIGTERM")).toMatchObject({ code: 1, signal: null });
  expect(performance.now() - askedMs).toBeLessThan(IN_TIME_MS);
  stage.lane.interfere = () => "pass";
  await expectGoesOn(stage, expected);
});

test("the hub, while it stores what was pushed", async () => {
  const stage = await rig.stage("hub");
  const expected = await layFile(stage, 3_000);
  const gateway = stage.gateway(["--until-idle", "--timeout", "60s"]);
  await until("some pushes", () => stage.lane.pushes.length > 5);
  await expectStopsInTime(rig.hub);
  await rig.restartHub();
  const { code, stderr } = await gateway.ended();
  expect(code, stderr).toBe(0);
  await expectStoredOnce(rig, expected);
  expect(stage.lane.conflicts).toEqual([]);
});
