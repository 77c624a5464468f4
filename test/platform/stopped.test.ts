/** The commands of operators on a hub that does not run: they work on the ledger of its gateway. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../hub/fixture.ts";
import { headgate as command } from "../runs/in-process.ts";
import { zip } from "./contents.ts";
import { type PlatformRig, standardCsv, startRig } from "./rig.ts";

const DATE = "2026-03-01T00:00:00Z";
const OTHER_DATE = "2026-03-02T00:00:00Z";
const HELD_DATE = "2026-03-03T00:00:00Z";

let rig: PlatformRig;
let stored: { id: number; run: string };
let broken: { id: number; run: string };
let packed: { id: number; run: string };
let unclaimed: number;
let held: { id: number; run: string };
let removed: { id: number; run: string };
let structure: { id: number; run: string };

/** Answers what it prints as an exit code of 0, and else fails with its error. */
async function headgate(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(...args, "-c", rig.config);
  expect(`${code}: ${stderr}`).toBe("0: ");
  return stdout;
}

const traced = async (name: string | number) => JSON.parse(await headgate("trace", String(name), "--json"));

beforeAll(async () => {
  rig = await startRig();
  await rig.variable("C-1");
  await rig.variable("C-2");
  await rig.trigger("cli", "standard");
  await rig.trigger("held", "meter-index", { metadata: { timeZone: "UTC", mappingConfig: "kWh" } });
  const at = async (name: string, content: string | Uint8Array<ArrayBuffer>, state: string) => {
    const id = await rig.store(name, content);
    const { run } = await until(async () => {
      const file = await rig.get(`/storage/${id}`);
      // One that is held keeps the state of those in progress.
      return file.state === state && (state !== "processing" || file.reason !== null) ? file : undefined;
    });
    return { id, run: String(run) };
  };
  stored = await at("cli.csv", standardCsv("C-1", DATE, 6), "stored");
  broken = await at("cli-broken.csv", standardCsv("C-1", DATE, "many"), "quarantined");
  packed = await at("cli.zip", await zip({ "cli-inside.csv": standardCsv("C-1", OTHER_DATE, 7) }), "stored");
  unclaimed = (await at("nobody.csv", "a;b\n", "unclaimed")).id;
  // The unit differs from that of the variable.
  const content = `serial_number,date,index,unit\nC-1,${HELD_DATE},5,m3\n`;
  held = await at("held.csv", content, "processing");
  removed = await at("held-removed.csv", content.replace("C-1", "C-2"), "processing");
  await rig.post("/fileTrigger", {
    fileType: "OpisenseMasterData",
    ingestionType: "UploadInStorage",
    fileNamePatternMatches: [{ filterType: "StartsWith", value: "sites" }],
  });
  structure = await at("sites.csv", "site_name,site_type,site_time_zone\nNew,Office,Europe/Brussels\n", "stored");
  // A trigger that could not be used would be a part of its own.
  const parts = (await rig.platform().gateway?.view.health())?.map(({ part }) => part);
  expect(parts).toContain("triggers of account-1");
  expect(parts?.filter((part) => part.startsWith("trigger account-1:"))).toEqual([]);
  // As by a hub that died before it cancelled the run.
  await rig.platform().inside.store.files.remove(1, [removed.id]);
  await rig.platform().close();
});
afterAll(() => rig.close());

describe("trace finds a file", () => {
  test("by the id of the stored file, also one without a run", async () => {
    expect(await traced(stored.id)).toMatchObject([{ arrival: { path: `${stored.id}/cli.csv` } }]);
    const sender = `manager, by upload (stored file ${unclaimed})`;
    expect(await traced(unclaimed)).toMatchObject([{ arrival: { path: `${unclaimed}/nobody.csv` }, runs: [], sender }]);
    expect(await headgate("trace", String(unclaimed))).toContain(sender);
    expect(await traced(packed.id)).toMatchObject([
      { arrival: { path: `${packed.id}/cli.zip` }, sender: `manager, by upload (stored file ${packed.id})` },
      { arrival: { path: `${packed.id}/cli.zip!/cli-inside.csv` }, runs: [{ run: { state: "confirmed" } }] },
    ]);
    const { code, stderr } = await command("trace", "4711", "-c", rig.config);
    expect([code, stderr]).toEqual([1, expect.stringContaining("nothing in the ledger")]);
  });

  test("by its operation, its run, and the target and date of a reading", async () => {
    expect(await traced(`file-${stored.id}`)).toHaveLength(1);
    const [{ runs }] = await traced(stored.run);
    const [{ operationId }] = runs[0].batches;
    expect(await traced(operationId)).toMatchObject([{ arrival: { path: `${stored.id}/cli.csv` } }]);
    const target = ["--target", "sourceSerialNumber=C-1 mappingConfig=kWh", "--date", DATE];
    expect(JSON.parse(await headgate("trace", ...target, "--json"))).toMatchObject([{ row: 2 }]);
  });
});

test("the lists of runs, files that need attention and triggers are shown", async () => {
  expect(await headgate("runs")).toContain("cli-broken.csv");
  expect(await headgate("runs", "--waiting")).toContain("no gateway responds");
  expect(JSON.parse(await headgate("runs", "--state", "quarantined", "--json"))).toMatchObject([{ id: broken.run }]);
  expect(await headgate("quarantine")).toContain("cli-broken.csv");
  expect(await headgate("trigger", "list")).toContain("account-1:");
  expect(await headgate("trigger", "test", "cli-2.csv", "--ingestion", "UploadInStorage")).toContain("account-1:");
});

test("the configuration is checked, without the hub", async () => {
  const findings = JSON.parse(await headgate("check", "--json"));
  // The password of a test's database is short.
  const isWrong = ({ level, about }: { level: string; about?: string }) => level !== "ok" && about !== "secrets";
  expect(findings.filter(isWrong)).toEqual([]);
  const triggers = { part: "service account-1", about: "triggers", what: expect.stringMatching(/^3, as the hub read/) };
  expect(findings).toEqual(expect.arrayContaining([expect.objectContaining(triggers)]));
});

test.each([["gateway"], ["provision", "--dry-run"], ["notify", "test"], ["health", "gateway"], ["migrate", "list"]])(
  "%s is for a gateway, and says so in one sentence",
  async (...args) => {
    const { code, stderr } = await command(...args, "-c", rig.config);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/configuration of a hub.*headgate hub -c FILE/s)]);
    expect(stderr).not.toContain("unknown key");
  },
);

test("the ledger is checked", async () => {
  expect(await headgate("ledger", "check")).toContain("ledger, spool and drops agree");
  expect(await headgate("ledger", "check", "--repair")).toContain("ledger, spool and drops agree");
});

test("the ledger is copied and replaced by the copy, one in PostgreSQL by its own tools", async () => {
  const copy = join(rig.directory, "copy.sqlite");
  const { code, stderr } = await command("ledger", "backup", copy, "-c", rig.config);
  if (existsSync(join(rig.directory, "hub.sqlite"))) {
    expect([code, existsSync(copy)]).toEqual([0, true]);
    expect(await headgate("ledger", "restore", copy)).toContain("restored");
    expect(await traced(stored.id)).toHaveLength(1);
  } else expect([code, stderr]).toEqual([2, expect.stringContaining("pg_dump")]);
});

test("a drop and a trigger are paused and resumed", async () => {
  const { triggers } = JSON.parse(await headgate("trigger", "list", "--json"));
  for (const name of ["account-1", triggers[0].name]) {
    expect(await headgate("pause", name)).toContain("No gateway runs now");
    expect(await headgate("resume", name)).toContain("is resumed");
  }
});

test("master data and containers are not replayed, and the error names what to do", async () => {
  for (const [name, hint] of [
    [structure.run, "POST /storage/{id}/dryRun"],
    [packed.run, "shows the runs of the entries"],
  ] as const)
    for (const how of ["--dry-run", "--no-diff"]) {
      const { code, stderr } = await command("replay", name, how, "-c", rig.config);
      expect([code, stderr]).toEqual([1, expect.stringContaining(hint)]);
    }
});

test("the held run of a removed file is not released, but cancelled", async () => {
  const { code, stderr } = await command("release", removed.run, "-c", rig.config);
  expect([code, stderr]).toEqual([1, expect.stringContaining("its stored file was removed")]);
  const found = JSON.parse(await headgate("runs", "--state", "cancelled", "--json"));
  expect(found).toMatchObject([{ id: removed.run }]);
});

test("what a person decides takes effect at the next start: a replay, and a held run that is released", async () => {
  expect(await headgate("quarantine")).toContain("held.csv");
  expect(await headgate("recheck", "held.csv")).toContain("No gateway runs now");
  expect(await headgate("release", held.run)).toContain("released");
  expect(await headgate("replay", String(stored.id), "--dry-run")).toContain("cli.csv");
  const [replay] = JSON.parse(await headgate("replay", String(stored.id), "--json"));
  await rig.restart();
  const stateOf = async (run: string) => (await rig.platform().gateway?.ledger.run(run))?.state;
  await expect.poll(() => stateOf(replay.run)).toBe("confirmed");
  await expect.poll(() => stateOf(held.run)).toBe("confirmed");
  await rig.platform().close();
});

test("a run is given up", async () => {
  expect(await headgate("cancel", broken.run, "--yes")).toContain("cancelled");
});

test("a file is forgotten", async () => {
  const path = `${broken.id}/cli-broken.csv`;
  const byId = JSON.parse(await headgate("forget", String(broken.id), "--dry-run", "--json"));
  expect(byId).toMatchObject({ drop: "account-1", path, arrivals: 1 });
  const byContainer = JSON.parse(await headgate("forget", String(packed.id), "--dry-run", "--json"));
  expect(byContainer).toMatchObject({ path: `${packed.id}/cli.zip`, arrivals: 2 });
  expect(await headgate("forget", path, "--dry-run")).toContain("cli-broken.csv");
  expect(await headgate("forget", path, "--yes")).toContain("forgotten");
});
