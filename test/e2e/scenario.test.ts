/** The scenario of `npm start`, and what the commands tell about it afterwards. */
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { TracedFile } from "#gateway/ledger/ledger.ts";
import type { Summary } from "#gateway/model.ts";
import { expectStoredOnce } from "./kill-scenario.ts";
import { type Ended, headgate, PROJECT } from "./processes.ts";
import { readingsOf } from "./readings.ts";
import { Rig } from "./rig.ts";
import { KINDS, layThreeDrops } from "./three-drops.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

const MINUTE_MS = 60_000;

describe("the demo", () => {
  let folder: string;
  let state: string;
  let config: string;
  let ended: Ended;
  beforeAll(async () => {
    folder = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
    state = join(folder, "demo");
    config = join(state, "gateway.yaml");
    ended = await demo();
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const demo = (...more: string[]) => headgate(["demo", "--until-idle", "--json", "--state", state, ...more]);
  const trace = async (id: string): Promise<TracedFile[]> => {
    const { code, stdout, stderr } = await headgate(["trace", id, "-c", config, "--json"]);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as TracedFile[];
  };

  test("ends within a minute, with every drop delivered, one file quarantined and one unmatched", () => {
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.tookMs).toBeLessThan(MINUTE_MS);
    const summary = JSON.parse(ended.stdout) as Summary;
    expect(summary.files).toMatchObject({ quarantined: 1, unmatched: 1 });
    expect(summary.points.accepted).toBeGreaterThan(10_000);
    expect(summary.points.stored).toBe(summary.points.accepted);
    const drops = Object.values(summary.drops);
    expect(new Set(drops.map(({ kind }) => kind))).toEqual(new Set(["local", "sftp", "ftp"]));
    for (const { files } of drops) expect(files).toBeGreaterThan(0);
  });

  test("the files that loggers send to the hub are stored there", async () => {
    const words = await headgate(["demo", "--until-idle", "--keep", "--state", state]);
    expect(words.code, words.stderr).toBe(0);
    expect(words.stdout).toMatch(/hub +standard_water_2026-03\.csv +stored +GET \/storage\/\d/);
    expect(words.stdout).toMatch(/hub +helios_roof-east_2026-10-26\.csv +stored/);
  });

  test("a file's trace shows its whole life, and an operationId leads to the same run", async () => {
    const name = "standard_building_2026-03.csv";
    const [file, ...others] = await trace(name);
    expect(others).toEqual([]);
    const [one] = file?.runs ?? [];
    expect(one?.run).toMatchObject({ path: name, state: "confirmed", points: { stored: 10_752 } });
    const life = file?.events.map(({ what }) => what) ?? [];
    const steps = ["run.claimed", "run.fetched", "run.mapping", "run.mapped", "run.delivering"];
    const ends = ["batch.accepted", "run.accepted", "source.archived", "run.confirmed"];
    expect(life.filter((what) => steps.includes(what))).toEqual(steps);
    expect(life).toEqual(expect.arrayContaining(ends));
    expect(life.indexOf("run.accepted")).toBeGreaterThan(life.lastIndexOf("batch.accepted"));
    expect(life.indexOf("source.archived")).toBeGreaterThan(life.indexOf("run.accepted"));

    const operationId = one?.batches.at(-1)?.operationId ?? "";
    const [byOperation] = await trace(operationId);
    expect(byOperation?.runs.map(({ run }) => run.id)).toEqual([one?.run.id]);
  });

  test("a trace in words shows where the file is now", async () => {
    const { code, stdout } = await headgate(["trace", "standard_building_2026-03.csv", "-c", config]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/archived as archive\/standard_building_2026-03\.[0-9a-z]{26}\.csv/);
    expect(stdout).toMatch(/10752 mapped, 10752 accepted, 10752 stored/);
  });

  test("the trace of a quarantined file names the place of its fault", async () => {
    const [file] = await trace("standard_corrected_2026-03-20.csv");
    const reason = file?.runs[0]?.run.reason;
    expect(file?.runs[0]?.run.state).toBe("quarantined");
    expect(reason?.place).toMatchObject({ row: expect.any(Number), column: expect.any(String) });
    const found = await readFile(join(state, "drops/local/standard_corrected_2026-03-20.csv"), "utf8");
    const row = found.split("\n")[(reason?.place?.row ?? 0) - 1];
    expect(row).toContain(reason?.place?.text);
  });

  test("a trace of an unknown name reports it and fails", async () => {
    const { code, stdout, stderr } = await headgate(["trace", "nowhere.csv", "-c", config]);
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain("nowhere.csv");
    expect(stderr).toMatch(/nothing in the ledger .* has this name/);
  });

  test("a second run with its state delivers nothing more", async () => {
    const again = await demo("--keep");
    expect(again.code, again.stderr).toBe(0);
    expect(JSON.parse(again.stdout).points).toEqual({ mapped: 0, accepted: 0, stored: 0, rejected: 0 });
  });

  test("trigger test names the trigger of a file name, and fails when there is none", async () => {
    const claimed = await headgate(["trigger", "test", "standard_x.csv", "-c", config]);
    expect(claimed).toMatchObject({ code: 0, stdout: expect.stringContaining("standard files") });
    const unclaimed = await headgate(["trigger", "test", "standard_x.csv", "notes.txt", "-c", config]);
    expect(unclaimed).toMatchObject({ code: 1, stdout: expect.stringContaining("no trigger claims it") });
    expect((await headgate(["trigger", "test", "x", "-c", join(folder, "none.yaml")])).code).toBe(2);
  });
});

describe("a gateway and a hub as processes of their own", () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await Rig.start();
  });
  afterAll(() => rig.close());

  test("a second gateway on the same state pushes nothing", async () => {
    const { stage, folders, close } = await layThreeDrops(rig, "twice");
    try {
      const expected = [];
      for (const kind of KINDS) {
        const readings = readingsOf(await rig.variable(`twice-${kind}`), 100, 1_000 * expected.length);
        expected.push(readings);
        await stage.put("standard_one.csv", readings.csv, folders[kind]);
      }
      await stage.put("notes.txt", "nobody claims this");
      const first = await stage.untilIdle();
      expect(first.code, first.stderr).toBe(0);
      expect(JSON.parse(first.stdout)).toMatchObject({
        files: { delivered: 3, unmatched: 1 },
        points: { mapped: 300, accepted: 300, stored: 300 },
      });
      const pushed = stage.lane.pushes.length;
      expect(pushed).toBe(9);

      const second = await stage.untilIdle();
      expect(second.code, second.stderr).toBe(0);
      expect(stage.lane.pushes.length).toBe(pushed);
      expect(JSON.parse(second.stdout)).toMatchObject({
        files: { unmatched: 1 },
        points: { mapped: 0, accepted: 0, stored: 0 },
      });
      await expectStoredOnce(rig, expected);
    } finally {
      await close();
    }
  });

  test("a second gateway beside the first is refused with the reason", async () => {
    const stage = await rig.stage("beside");
    const first = stage.gateway([]);
    await first.said("stderr", /gateway started/);
    const second = await headgate(["gateway", "-c", stage.config, "--until-idle"]);
    expect(second.code).toBe(2);
    expect(second.stderr).toContain("ledger.sqlite");
    expect(first.running).toBe(true);
    await first.end("SIGTERM");
  });
});

describe("wrong usage ends with 2 and an explanation", () => {
  test.each([
    ["map without a file name", ["map", "", "-m", "standard"], /name of the file is empty/],
    ["map of a directory", ["map", PROJECT, "-m", "standard"], /is a directory/],
    ["map of a file that is not there", ["map", "nowhere.csv", "-m", "standard"], /there is no such file/],
    ["an unknown mapper", ["map", "package.json", "-m", "nobody"], /there is no mapper nobody/],
    ["a configuration that is not there", ["gateway", "-c", "nowhere.yaml"], /nowhere\.yaml/],
    ["an unknown command", ["deliver"], /unknown command/],
    ["trace without a ledger", ["trace", "x", "-c", "config/demo.gateway.yaml"], /there is no ledger yet/],
  ])("%s", async (_, args, words) => {
    const { code, stdout, stderr } = await headgate(args);
    expect(code).toBe(2);
    expect(stderr).toMatch(words);
    expect(stdout).toBe("");
  });
});
