/**
 * Files that are delivered again on purpose (forgotten, replayed, undone, a correction taken back), in the ordinary
 * course, with a ledger that was lost, and with one that was restored from an older copy.
 */
import { readdir, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type Fate, fileCopies, type LedgerCopies, suffer } from "./ledger-copies.ts";
import { readingsOf } from "./readings.ts";
import { localDrop, never, Rig, type Settings, type Stage } from "./rig.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const FATES: readonly Fate[] = ["kept", "lost", "restored"];
const COUNT = 20;
const FIRST = 100;
const CORRECTED = 500;
const push: Settings = {
  batch: { points: 8 },
  confirm: { pollEvery: "100ms", webhookWait: "300ms", within: "8s" },
  retry: { initial: "20ms", max: "200ms", quickWait: "500ms" },
};

let rig: Rig;
beforeAll(async () => {
  rig = await Rig.start();
});
afterAll(() => rig.close());

class Scene {
  readonly stage: Stage;
  readonly id: number;
  readonly #copies: LedgerCopies;

  constructor(stage: Stage, id: number) {
    [this.stage, this.id] = [stage, id];
    this.#copies = fileCopies(join(stage.folder, "state"));
  }

  copy = () => this.#copies.copy("copy");
  suffer = (fate: Fate) => suffer(fate, this.#copies, "copy");

  /** Always of the same size and time. */
  async put(base: number): Promise<void> {
    await this.stage.put("standard_a.csv", readingsOf(this.id, COUNT, base).csv);
    const at = new Date("2026-11-01T00:00:00Z");
    await utimes(join(this.stage.drop, "standard_a.csv"), at, at);
  }

  async expectEnd(code: number): Promise<string> {
    const ended = await this.stage.untilIdle();
    expect(ended.code, ended.stderr).toBe(code);
    return ended.stderr;
  }

  async command(...args: readonly string[]): Promise<string> {
    const ended = await rig.start([...args, "-c", this.stage.config]).ended();
    expect(ended.code, ended.stderr).toBe(0);
    return ended.stdout;
  }

  /** All versions, and the value that counts of the first date. */
  async expectStored(versions: number, first: number): Promise<void> {
    await until("it is stored", async () => (await rig.stored(this.id)).length >= versions);
    expect(await rig.stored(this.id)).toHaveLength(versions);
    const counting = await rig.stored(this.id, false);
    expect(counting).toHaveLength(COUNT);
    expect(counting[0]?.value).toBe(first);
  }

  async latest(): Promise<string> {
    return await this.stage.inspect(async (ledger) => (await ledger.recentRuns(1))[0]?.id ?? "");
  }
}

async function sceneOf(name: string, delivered: unknown, isVersioned = true): Promise<Scene> {
  const drops = [{ ...localDrop, finish: { delivered, guard: "0s" } }];
  const stage = await rig.stage(name, { push, drops });
  return new Scene(stage, await rig.variable(name, isVersioned));
}

describe.each(FATES)("with a ledger that is %s", (fate) => {
  test.each([true, false])("a correction that is taken back counts, or a person is told (%s)", async (isVersioned) => {
    const scene = await sceneOf(`back-${fate}-${isVersioned}`, "delete", isVersioned);
    const versions = (files: number) => (isVersioned ? files * COUNT : COUNT);
    await scene.put(FIRST);
    await scene.expectEnd(0);
    await scene.copy();
    await scene.put(CORRECTED);
    await scene.expectEnd(0);
    await scene.expectStored(versions(2), CORRECTED);
    await scene.suffer(fate);
    await scene.put(FIRST);
    const said = await scene.expectEnd(fate === "kept" ? 0 : 1);
    if (fate !== "kept") {
      expect(said).toMatch(/already delivered by .*, and the service has other values since/);
      await scene.expectStored(versions(2), CORRECTED);
      await scene.command("replay", await scene.latest(), "--overwrite");
      await scene.expectEnd(0);
    }
    await scene.expectStored(versions(3), FIRST);
    // It comes once more, which is no news.
    await scene.suffer(fate);
    await scene.put(FIRST);
    await scene.expectEnd(0);
    await scene.expectStored(versions(3), FIRST);
  });

  test("a file that was forgotten is delivered again, and once", async () => {
    const scene = await sceneOf(`forgotten-${fate}`, "leave");
    await scene.put(FIRST);
    await scene.expectEnd(0);
    await scene.copy();
    await rig.client.deleteData({ VariableIds: [scene.id], FromDateUtc: "2026-01-01", ToDateUtc: "2027-01-01" }, never);
    const forget = () => scene.command("forget", "standard_a.csv", "--yes", "--drop", "field");
    await forget();
    await scene.suffer(fate);
    // The older copy has no word of it.
    if (fate === "restored") await forget();
    await scene.expectEnd(0);
    await scene.expectStored(COUNT, FIRST);
    await scene.suffer(fate);
    await scene.expectEnd(0);
    await scene.expectStored(COUNT, FIRST);
  });

  test("what was discarded is delivered once its variable exists, and once", async () => {
    const name = `discarded-${fate}`;
    const stage = await rig.stage(name, {
      push,
      drops: [{ ...localDrop, finish: { delivered: "leave", guard: "0s" } }],
    });
    const rows = readingsOf(0, COUNT, FIRST).points.map(({ date, value }) => `${date},${value},${name},value`);
    await stage.put("unguarded_a.csv", `date,value,source_serial_number,mapping_config\n${rows.join("\n")}\n`);
    const before = await stage.untilIdle();
    expect(before.code, before.stderr).toBe(1);
    expect(JSON.parse(before.stdout).files).toEqual({ discarded: 1 });
    const scene = new Scene(stage, await rig.variable(name));
    await scene.copy();
    await scene.suffer(fate);
    if (fate !== "lost") await scene.command("replay", await scene.latest());
    await scene.expectEnd(0);
    await scene.expectStored(COUNT, FIRST);
    await scene.suffer(fate);
    await scene.expectEnd(fate === "restored" ? 1 : 0);
    await scene.expectStored(COUNT, FIRST);
    expect(stage.lane.conflicts, "a key that came before may be renewed").toEqual([]);
  });

  test("a migration that was undone is delivered again, and once", async () => {
    const scene = await sceneOf(`undone-${fate}`, "leave");
    const history = join(scene.stage.folder, "history");
    await scene.stage.put("a.csv", readingsOf(scene.id, COUNT, FIRST).csv, history);
    const migrate = () =>
      rig.start(["migrate", `${history}/*.csv`, "-m", "standard", "--priority", "normal", "-c", scene.stage.config]);
    const migrated = async () => {
      const ended = await migrate().ended();
      expect(ended.code, ended.stdout + ended.stderr).toBe(0);
      await scene.expectStored(COUNT, FIRST);
    };
    await migrated();
    const migrations = join(scene.stage.folder, "state/spool/migrations");
    const [id = ""] = await readdir(migrations);
    const folder = join(migrations, id);
    const copies = fileCopies(folder);
    await copies.copy("copy");
    await scene.command("migrate", "undo", id, "--yes");
    expect(await rig.stored(scene.id)).toEqual([]);
    if (fate === "lost") await rm(folder, { recursive: true });
    if (fate === "restored") {
      await copies.restore("copy");
      const refused = await migrate().ended();
      expect(refused.code, refused.stdout).toBe(2);
      expect(refused.stderr).toContain("HG-MIGR-012");
      await copies.lose();
    }
    await migrated();
    if (fate === "lost") await copies.lose();
    await migrated();
  });
});
