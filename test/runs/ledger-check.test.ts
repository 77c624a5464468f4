/** `headgate ledger check`, on what a gateway left whose service was away. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { digestOfFile } from "#core/digest.ts";
import type { Run } from "#gateway/model.ts";
import { BEHIND, laySegment } from "../spool/segment-layout.ts";
import { GatewayRig, oneReading, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const spool = (...path: string[]) => join(rig.folder, "state/spool", ...path);
async function check(...more: string[]) {
  const { stdout, code } = await headgate("ledger", "check", "-c", join(rig.folder, "gateway.yaml"), "--json", ...more);
  return { code, found: JSON.parse(stdout) as { about: string; subject: string; what: string; repaired: boolean }[] };
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
  bytes[8] = (bytes[8] ?? 0) ^ 1;
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

it("finds files that are not where the ledger has them, or archived without a record, and corrects this", async () => {
  const variable = await rig.variable("a");
  const names = ["lost", "moved", "stays"];
  for (const name of names) rig.put(`in/${name}.csv`, oneReading(variable, 1, "2026-03-01T00:00:00Z"));
  const gateway = await rig.open({});
  await until("it is idle", () => gateway.isIdle());
  await gateway.stop();
  const place = async (name: string) => {
    const { stdout } = await headgate("trace", `${name}.csv`, "-c", rig.config, "--json", "--no-service");
    return (JSON.parse(stdout) as { currentPlace: string }[])[0]?.currentPlace ?? "";
  };
  const [lost, moved] = [await place("lost"), await place("moved")];
  const inDrop = (path: string) => join(rig.folder, "in", path);
  expect(await check()).toEqual({ code: 0, found: [] });
  rmSync(inDrop(lost));
  const elsewhere = moved.replace("archive/", "archive/2026/");
  mkdirSync(inDrop("archive/2026"));
  renameSync(inDrop(moved), inDrop(elsewhere));
  const { stdout, code } = await headgate("ledger", "check", "-c", rig.config);
  expect(code).toBe(1);
  expect(stdout).toContain(`archive: lost.csv at in: the ledger has it at ${lost}, and there is no file`);
  expect(stdout).toContain(`the file is at ${elsewhere}, and the ledger has it at ${moved}`);
  expect((await check()).found).toHaveLength(3);
  expect((await check("--repair")).found.map(({ about, repaired }) => [about, repaired])).toEqual([
    ["archive", true],
    ["archive", true],
  ]);
  expect(await check()).toEqual({ code: 0, found: [] });
  expect([await place("lost"), await place("moved")]).toEqual(["no longer at its drop", elsewhere]);

  // A disk that was not mounted when the history was corrected.
  renameSync(inDrop("archive"), join(rig.folder, "away"));
  expect((await check("--repair")).found).toHaveLength(2);
  renameSync(join(rig.folder, "away"), inDrop("archive"));
  const back = await check();
  expect(back.found.map(({ what }) => what)).toEqual(
    Array(2).fill(expect.stringContaining("and the ledger has no place for it")),
  );
  await check("--repair");
  expect(await check()).toEqual({ code: 0, found: [] });
  expect(await place("moved")).toBe(elsewhere);
});

describe("of a run of a shared segment", () => {
  const OTHER = "01m7y3wv7m37a23mgyr2g8n1r1";
  const segmentPath = (runId: string) => spool("segments", `${runId}.segment`);
  const otherInput = Buffer.from("of the other run");

  /** A run without a file at the drop. Returns the offset of its input in the segment; the batches begin at 0. */
  async function inPack(variable: number): Promise<{ run: Run; inputAt: number }> {
    const run = await sentInVain(variable);
    const [batch = ""] = readFileSync(segmentPath(run.id), "utf8").split("\n");
    const input = readFileSync(spool("inputs", run.id));
    for (const path of [segmentPath(run.id), spool("inputs", run.id)]) rmSync(path);
    rmSync(join(rig.folder, "in/waits.csv"));
    const runs = [
      { runId: run.id, input, batches: [Buffer.from(batch)] },
      { runId: OTHER, input: otherInput, batches: [Buffer.from("[]")] },
    ];
    const inputAt = laySegment({ segmentPath }, runs, BEHIND).get(run.id)?.inputAt ?? 0;
    return { run, inputAt };
  }

  function scribbleAt(path: string, at: number): void {
    const bytes = readFileSync(path);
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(path, bytes);
  }

  const foundOf = async (run: Run, ...more: string[]) =>
    (await check(...more)).found.flatMap(({ about, subject, repaired }) =>
      subject.includes(run.id) ? [[about, repaired]] : [],
    );

  async function expectDelivered(run: Run, variable: number): Promise<void> {
    const gateway = await rig.open({});
    await until("it is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 4);
    await until("it is at rest", () => gateway.isIdle());
    expect((await gateway.ledger.run(run.id))?.state).toMatch(/^(accepted|confirmed)$/);
    await gateway.stop();
  }

  it("finds a damaged input, removes it, and delivers its batches although the file exists nowhere else", async () => {
    const variable = await rig.variable("a", true);
    const { run, inputAt } = await inPack(variable);
    expect(await foundOf(run)).toEqual([]);
    scribbleAt(segmentPath(run.id), inputAt + 3);
    expect(await foundOf(run)).toEqual([["input", false]]);
    expect(await foundOf(run, "--repair")).toEqual([["input", true]]);
    expect(await foundOf(run)).toEqual([]);
    await expectDelivered(run, variable);
    expect(readdirSync(spool("inputs"))).toEqual([]);
  });

  it("finds a damaged batch, and makes it again from the input in the same segment", async () => {
    const variable = await rig.variable("a", true);
    const { run } = await inPack(variable);
    scribbleAt(segmentPath(run.id), 5);
    expect(await foundOf(run)).toEqual([["segment", false]]);
    expect(await foundOf(run, "--repair")).toEqual([["segment", true]]);
    expect(existsSync(segmentPath(run.id))).toBe(false);
    expect(await digestOfFile(spool("inputs", run.id))).toBe(run.sha256);
    await expectDelivered(run, variable);
  });

  it("removes neither when both are damaged and the file exists nowhere else, and quarantines the run", async () => {
    const { run, inputAt } = await inPack(await rig.variable("a"));
    scribbleAt(segmentPath(run.id), 5);
    scribbleAt(segmentPath(run.id), inputAt + 3);
    expect(await foundOf(run)).toEqual([
      ["input", false],
      ["segment", false],
      ["drop", false],
    ]);
    expect(await foundOf(run, "--repair")).toEqual([
      ["input", true],
      ["segment", false],
      ["drop", true],
    ]);
    expect(existsSync(segmentPath(run.id))).toBe(true);
  });

  it("finds the one damaged input among files of one segment, and all of them are delivered and kept", async () => {
    const variable = await rig.variable("a", true);
    const days = ["01", "02", "03", "04", "05"];
    for (const day of days) rig.put(`in/${day}.csv`, oneReading(variable, 4, `2026-03-${day}T00:00:00Z`));
    const sending = await rig.open(away());
    const countMapped = async () =>
      (await sending.ledger.recentRuns(9)).filter(({ state }) => /^(mapped|delivering)$/.test(state)).length;
    await until("all are mapped", async () => (await countMapped()) === days.length);
    await sending.stop();
    const names = readdirSync(spool("segments")).filter((name) => statSync(spool("segments", name)).nlink > 1);
    expect(names.length).toBeGreaterThan(1);
    expect(await check()).toEqual({ code: 0, found: [] });
    // A shared segment begins with its inputs.
    scribbleAt(spool("segments", names[0] ?? ""), 3);
    expect((await check("--repair")).found).toMatchObject([{ about: "input", repaired: true }]);
    const gateway = await rig.open({});
    await until("all is done", () => gateway.isIdle());
    expect(Object.keys(await rig.stored(variable))).toEqual(days.map((day) => `2026-03-${day}`));
    await gateway.stop();
    expect(readdirSync(spool("kept"))).toEqual(expect.arrayContaining(names));
    expect(await check()).toEqual({ code: 0, found: [] });
  });

  it("finds a kept input that is damaged, and takes it out of what is kept", async () => {
    const { run, inputAt } = await inPack(await rig.variable("a"));
    for (const runId of [run.id, OTHER]) renameSync(segmentPath(runId), spool("kept", `${runId}.segment`));
    scribbleAt(spool("kept", `${run.id}.segment`), inputAt + 3);
    const kept = async (...more: string[]) =>
      (await check(...more)).found.filter(({ about }) => about === "kept input");
    expect(await kept()).toMatchObject([{ subject: expect.stringContaining(run.id), repaired: false }]);
    expect(await kept("--repair")).toMatchObject([{ repaired: true }]);
    expect(await kept()).toEqual([]);
    expect(existsSync(spool("kept", `${run.id}.segment`))).toBe(true);
  });
});
