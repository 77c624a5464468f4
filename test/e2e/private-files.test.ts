/**
 * What other users of the machine can read of the state, with the real processes under the umasks of common
 * machines.
 */
import { execFile } from "node:child_process";
import { chmod, lstat, mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { AMONG_OTHERS } from "../migration/migrate-command.ts";
import { HeadgateProcess, headgate } from "./processes.ts";
import { readingsOf } from "./readings.ts";
import { localDrop, Rig } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

/** Paths below a folder (and itself) that others than their owner can read, write or enter. */
async function wideOnes(folder: string, isState: (path: string) => boolean = () => true): Promise<string[]> {
  const names = ["", ...(await readdir(folder, { recursive: true }))];
  const found = await Promise.all(
    names.filter(isState).map(async (name) => {
      const stats = await lstat(join(folder, name)).catch(() => null); // A file under way may have left.
      return stats !== null && (stats.mode & 0o077) !== 0 ? `${name} ${(stats.mode & 0o777).toString(8)}` : "";
    }),
  );
  return found.filter((words) => words !== "");
}

/** Processes that are started by `work` inherit this umask. */
async function under<T>(mask: number, work: () => Promise<T>): Promise<T> {
  const before = process.umask(mask);
  try {
    return await work();
  } finally {
    process.umask(before);
  }
}

describe.each([0o022, 0o000])("under umask %o", (mask) => {
  test("no file of gateway and hub is readable by others, while they run and afterwards", async () => {
    await under(mask, async () => {
      const rig = await Rig.start();
      onTestFinished(() => rig.close());
      const stage = await rig.stage("modes");
      await stage.put("standard_a.csv", readingsOf(await rig.variable("modes"), 8).csv);
      const gateway = stage.gateway([]);
      await gateway.said("stderr", /gateway started/);
      await until("the delivery", async () =>
        (await stage.inspect((ledger) => ledger.recentRuns(1))).find(({ state }) => state === "confirmed"),
      );
      const isHub = (name: string) => name.startsWith("hub.sqlite");
      expect(await readdir(rig.folder)).toEqual(
        expect.arrayContaining(["hub.sqlite", "hub.sqlite-wal", "hub.sqlite.intake", "hub.sqlite.intake-wal"]),
      );
      expect(await wideOnes(rig.folder, isHub)).toEqual([]);
      expect(await wideOnes(join(stage.folder, "state"))).toEqual([]);
      await gateway.end("SIGTERM");

      const backup = join(stage.folder, "backup.sqlite");
      const made = await headgate(["ledger", "backup", backup, "-c", stage.config]);
      expect(made.code, made.stderr).toBe(0);
      await stage.put("old/standard_b.csv", readingsOf(await rig.variable("old"), 8).csv);
      const migrated = await headgate([
        "migrate",
        join(stage.drop, "old/*.csv"),
        "-c",
        stage.config,
        "--mapper",
        "standard",
        ...AMONG_OTHERS,
      ]);
      expect(migrated.code, migrated.stderr).toBe(0);
      expect((await lstat(backup)).mode & 0o777).toBe(0o600);
      expect(await wideOnes(join(stage.folder, "state"))).toEqual([]);
    });
  });

  test("an archive at a drop is readable by the readers of the drop", async () => {
    await under(mask, async () => {
      const rig = await Rig.start();
      onTestFinished(() => rig.close());
      const stage = await rig.stage("archive", {
        drops: [{ ...localDrop, finish: { delivered: { archive: "done/month" } } }],
      });
      await chmod(stage.drop, 0o755);
      await stage.put("standard_a.csv", readingsOf(await rig.variable("archive"), 8).csv);
      expect((await stage.untilIdle()).code).toBe(0);
      const [archived = ""] = await stage.files();
      expect(archived).toMatch(/^done\/month\/standard_a/);
      for (const folder of ["done", archived.slice(0, archived.lastIndexOf("/"))])
        expect((await lstat(join(stage.drop, folder))).mode & 0o777).toBe(0o755);
    });
  });

  test("nothing below the demo's folder is readable by others", async () => {
    await under(mask, async () => {
      const folder = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      const demo = new HeadgateProcess(["demo", "--state", join(folder, "demo")]);
      onTestFinished(() => demo.end("SIGKILL").then(() => undefined));
      await demo.said("stdout", /Everything has settled/);
      expect(await wideOnes(join(folder, "demo"))).toEqual([]);
    });
  });
});

test("state that others could read is narrowed at the next start, with a log line", async () => {
  const rig = await Rig.start();
  onTestFinished(() => rig.close());
  const stage = await rig.stage("narrowed");
  await stage.put("standard_a.csv", readingsOf(await rig.variable("narrowed"), 8).csv);
  expect((await stage.untilIdle()).code).toBe(0);
  await rig.hub.end("SIGTERM");
  const state = join(stage.folder, "state");
  const hubFiles = (await readdir(rig.folder)).filter((name) => name.startsWith("hub.sqlite"));
  for (const name of hubFiles) await chmod(join(rig.folder, name), 0o644);
  await promisify(execFile)("chmod", ["-R", "go+rX", state]);
  expect(await wideOnes(state)).not.toEqual([]);
  await rig.restartHub();
  expect(await wideOnes(rig.folder, (name) => name.startsWith("hub.sqlite"))).toEqual([]);
  expect(rig.hub.stderr).toContain("could be read by other users");
  const again = await stage.untilIdle();
  expect(again.code, again.stderr).toBe(0);
  expect(await wideOnes(state, (name) => name !== "")).toEqual([]);
  expect(again.stderr).toContain("could be read by other users");
});
