/** `headgate migrate --provision`: what is missing is created first, written down, and can be taken back. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ExcelJS from "exceljs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stringify } from "yaml";
import { captureShown } from "../cli/shown.ts";
import { PATIENTLY } from "../e2e/wait.ts";
import { FaultyService } from "../provisioning/faulty-service.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { AMONG_OTHERS, headgateHere, main, migrateHere } from "./migrate-command.ts";

vi.setConfig(PATIENTLY);

const never = new AbortController().signal;
const HEADER = [
  "site_name",
  "site_type_id",
  "site_time_zone",
  "source_serial_number",
  "mapping_config",
  "unit",
  "is_versioned",
];
const PLANT = ["North plant", 10, "Europe/Brussels"];
const ROWS = [
  [...PLANT, "GM-1", "import", "kWh", true],
  [...PLANT, "GM-1", "export", "kWh", true],
  [...PLANT, "GM-2", "import", "kWh", false],
];

let rig: GatewayRig;
let child: ChildProcess | null = null;
const shown = captureShown();
const push = { retry: { initial: "50ms", max: "200ms", quickAttempts: 1 } };
beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({ push });
});
afterEach(async () => {
  child?.kill("SIGKILL");
  child = null;
  await rig.close();
});

const csv = (rows: readonly (readonly unknown[])[], delimiter = ",") =>
  [HEADER, ...rows].map((row) => `${row.join(delimiter)}\n`).join("");
const master = () => join(rig.folder, "master.csv");
const migrate = (...args: readonly string[]) => migrateHere(rig, shown, ...args);
const undo = (id: string, ...args: readonly string[]) =>
  headgateHere(rig, shown, "migrate", "undo", id, "--structure", ...args);

/** A file of each meter that the table has. */
function putHistory(...meters: readonly (readonly [meter: string, config: string])[]): void {
  for (const [meter, config] of meters)
    rig.put(
      `history/${meter}-${config}.csv`,
      `source_serial_number,mapping_config,date,value\n${meter},${config},2025-01-01T00:00:00Z,1\n${meter},${config},2025-01-02T00:00:00Z,2\n`,
    );
}
const ALL = [
  ["GM-1", "import"],
  ["GM-1", "export"],
  ["GM-2", "import"],
] as const;

/** Everything that the account has, in words. */
async function structure(): Promise<readonly string[]> {
  const sites = (await rig.client.getSites({}, never)).items;
  const sources = (await rig.client.getSources({}, never)).items;
  const variables = (await rig.client.getVariables({}, never)).items;
  return [
    ...sites.map(({ name }) => `site ${name}`),
    ...sources.map(({ name }) => `source ${name}`),
    ...variables.map(({ sourceId, name }) => `variable ${sources.find(({ id }) => id === sourceId)?.name} ${name}`),
  ].sort();
}
const WHOLE = [
  "site North plant",
  "source GM-1",
  "source GM-2",
  "variable GM-1 export",
  "variable GM-1 import",
  "variable GM-2 import",
];

/** Ends at the fault, and answers whether it did. */
async function killed(point: string, ...args: readonly string[]): Promise<boolean> {
  child = spawn(process.execPath, [main, ...args, ...AMONG_OTHERS, "-c", rig.config], {
    cwd: rig.folder,
    stdio: "ignore",
    env: { ...process.env, HEADGATE_FAULT: point },
  });
  const [, signal] = await new Promise<[number | null, string | null]>((done) =>
    child?.once("exit", (...how) => done(how)),
  );
  return signal === "SIGKILL";
}

interface Reported {
  readonly structure: {
    readonly created: readonly { readonly entity: string; readonly id: number; readonly state: string }[];
  };
}
async function reported(id: string): Promise<Reported["structure"]["created"]> {
  const { stdout } = await headgateHere(rig, shown, "migrate", "report", id, "--json");
  return (JSON.parse(stdout) as Reported).structure.created;
}

describe("a table of sites, sources and variables", () => {
  it("is shown by a plan, created once before anything is sent, listed, and undone", async () => {
    putHistory(...ALL);
    rig.put("master.csv", csv(ROWS, ";"));
    const plan = await migrate("--provision", master(), "--dry-run", "--json");
    expect(plan.code).toBe(0);
    expect(JSON.parse(plan.stdout)).toMatchObject({
      unfit: [],
      structure: { impossible: [], differences: [] },
    });
    expect(JSON.parse(plan.stdout).structure.wouldCreate).toHaveLength(6);
    expect(await structure()).toEqual([]);
    // Without it the files are held, and go on when they have what they need.
    expect((await migrate("--json")).code).toBe(1);

    const first = await migrate("--provision", master(), "--json");
    expect(first.code).toBe(0);
    const { id, points, structure: told, report } = JSON.parse(first.stdout);
    expect(points).toMatchObject({ mapped: 6, accepted: 6 });
    expect(told).toMatchObject({ undo: `headgate migrate undo ${id} --structure`, differences: [] });
    expect(told.created.map(({ entity }: { entity: string }) => entity)).toEqual([
      "site",
      "source",
      "variable",
      "variable",
      "source",
      "variable",
    ]);
    expect(await structure()).toEqual(WHOLE);
    expect(readFileSync(report, "utf8")).toContain("Structure that was created");
    expect(await reported(id)).toHaveLength(6);

    const again = await migrate("--provision", master());
    expect(again.code).toBe(0);
    expect(again.stdout).not.toContain("created");
    expect(await structure()).toEqual(WHOLE);

    const asked = await undo(id, "--dry-run");
    expect(asked.code).toBe(0);
    expect(asked.stdout).toMatch(/site +North plant +\d+ .* goes/);
    expect(asked.stdout).not.toContain("stays");
    expect(await undo(id)).toMatchObject({ code: 2, stderr: expect.stringContaining("HG-MIGR-010") });
    expect(await structure()).toEqual(WHOLE);
    const done = await undo(id, "--yes", "--json");
    expect(JSON.parse(done.stdout)).toMatchObject({
      removed: { points: 6 },
      structure: { removed: { variable: 3, source: 2, site: 1 } },
    });
    expect(await structure()).toEqual([]);
    expect((await reported(id)).map(({ state }) => state)).toEqual(Array(6).fill("removed"));
    const remade = await headgateHere(rig, shown, "migrate", "report", id);
    const page = /^report: (.*)$/m.exec(remade.stdout)?.[1] ?? "";
    expect(readFileSync(page, "utf8")).toMatch(/North plant(?:(?!<\/tr>).)*removed 20/s);
    expect((await undo(id, "--yes")).stdout).toContain("none is left");
    expect((await migrate("--provision", master())).code).toBe(0);
    expect(await structure()).toEqual(WHOLE);
  });

  it("may be a workbook; existing values that differ are reported and kept, and a conflict prevents all", async () => {
    putHistory(...ALL);
    const siteId = await rig.client.postSite({ name: "Depot", typeId: 10, timeZoneId: "Europe/Brussels" }, never);
    const source = await rig.client.postSource({ name: "GM-2", siteId, serialNumber: "GM-2", sourceTypeId: 72 }, never);
    await rig.client.postVariable(
      { name: "import", sourceId: source.id, variableTypeId: 131, unitId: 9, mappingConfig: "import" },
      never,
    );
    const before = await structure();
    const write = async (rows: readonly (readonly unknown[])[]) => {
      const book = new ExcelJS.Workbook();
      book.addWorksheet("master").addRows([HEADER, ...rows].map((row) => [...row]));
      await book.xlsx.writeFile(join(rig.folder, "master.xlsx"));
    };
    const file = join(rig.folder, "master.xlsx");
    await write([...ROWS, [...PLANT, "GM-3", "import", "furlongs", false]]);
    const refused = await migrate("--provision", file);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("HG-MIGR-021") });
    expect(refused.stderr).toContain("(row 5) cannot be created: the service has no unit furlongs");
    expect(await structure()).toEqual(before);

    await write(ROWS);
    const { code, stdout, stderr } = await migrate("--provision", file, "--json");
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /needs you: source GM-2 \(id \d+\): site is Depot, and North plant is stated for .* \(row 4\)/,
    );
    expect(stderr).toMatch(/needs you: variable import \(id \d+\): unit is \S+, and kWh is stated for .* \(row 4\)/);
    const { structure: told, points } = JSON.parse(stdout);
    expect(points.accepted).toBe(6);
    expect(told.created).toHaveLength(4);
    expect(told.differences.map(({ field }: { field: string }) => field).sort()).toEqual(["site", "unit"]);
    const [kept] = (await rig.client.getVariables({ SourceIds: [source.id] }, never)).items;
    expect(kept).toMatchObject({ unitId: 9, sourceId: source.id });
  });

  it("is refused before any other step when one of its cells is doubtful", async () => {
    putHistory(...ALL);
    rig.put("master.csv", csv([[...PLANT, "", "import", "kWh", true]]));
    const { code, stderr } = await migrate("--provision", master());
    expect(code).toBe(2);
    expect(stderr).toContain("row 2, column source_serial_number: it is empty");
    expect(stderr).toContain("HG-MIGR-020");
    expect(await structure()).toEqual([]);
  });
});

describe("a structure that a migration created", () => {
  it("is created once and listed, wherever the process is killed", async () => {
    putHistory(...ALL);
    rig.put("master.csv", csv(ROWS));
    const command = ["migrate", "history/**/*.csv", "-m", "standard", "--provision", "master.csv"];
    // A source that was not created, then one that was and is not noted, then a look for it that was not noted either.
    for (const point of ["structure.begun#2", "structure.created#1", "structure.resolved"])
      expect(await killed(point, ...command)).toBe(true);
    const last = await migrate("--provision", master(), "--json");
    expect(last.code).toBe(0);
    expect(await structure()).toEqual(WHOLE);
    const created = await reported(JSON.parse(last.stdout).id);
    expect(created.every(({ state }) => state === "created")).toBe(true);
    expect(new Set(created.map(({ entity, id }) => `${entity} ${id}`)).size).toBe(6);
    expect(created).toHaveLength(6);
  });

  it("is listed when the service created it and the response was lost, and is not created again", async () => {
    const service = await FaultyService.before(rig.hub.url);
    try {
      rig.configure({ push, services: [{ ...rig.service("hub"), base: service.url }] });
      putHistory(...ALL);
      rig.put("master.csv", csv(ROWS));
      let left = 1;
      service.after = (call) => (call === "POST /sources" && left-- > 0 ? 502 : null);
      const failed = await migrate("--provision", master());
      expect(failed.code).toBe(1);
      expect(failed.stdout).toContain("created site North plant");
      const { code, stdout } = await migrate("--provision", master(), "--json");
      expect(code).toBe(0);
      expect(JSON.parse(stdout).structure.created).toHaveLength(5);
      expect(await structure()).toEqual(WHOLE);
      expect(await reported(JSON.parse(stdout).id)).toHaveLength(6);
    } finally {
      await service.close();
    }
  });

  it("stays where others use it, with the names of its users", async () => {
    putHistory(...ALL);
    rig.put("master.csv", csv(ROWS));
    const { id } = JSON.parse((await migrate("--provision", master(), "--json")).stdout);
    const [gm1, gm2] = (await rig.client.getSources({}, never)).items;
    const variables = (await rig.client.getVariables({}, never)).items;
    const gm2Import = variables.find(({ sourceId }) => sourceId === gm2?.id)?.id ?? 0;
    const body = Buffer.from(
      JSON.stringify([{ variableId: gm2Import, data: [{ date: "2025-06-01T00:00:00Z", value: 7 }] }]),
    );
    const call = { operationId: "other", operationTimeoutSec: 60, idempotencyKey: "other" };
    await rig.client.push({ body: () => body, length: body.length, ...call }, never);
    await rig.client.postVariable(
      { name: "of others", sourceId: gm1?.id ?? 0, variableTypeId: 131, unitId: 8, mappingConfig: "x" },
      never,
    );
    await expect.poll(() => rig.stored(gm2Import)).toMatchObject({ "2025-06-01": 7 });
    const { code, stdout } = await undo(id, "--yes");
    expect(code).toBe(0);
    expect(stdout).toContain("stays: it holds 1 point");
    expect(stdout).toMatch(/stays: it has the variable of others \(id \d+\)/);
    expect(stdout).toMatch(/stays: it has the sources GM-1 \(id \d+\), GM-2 \(id \d+\)/);
    expect(stdout).toContain("removed: 2 variables, 0 sources, 0 sites");
    expect(await structure()).toEqual([
      "site North plant",
      "source GM-1",
      "source GM-2",
      "variable GM-1 of others",
      "variable GM-2 import",
    ]);
  });

  it("is undone completely by the same command when that was killed", async () => {
    putHistory(...ALL);
    rig.put("master.csv", csv(ROWS));
    const { id } = JSON.parse((await migrate("--provision", master(), "--json")).stdout);
    expect(await killed("structure.removed#4", "migrate", "undo", id, "--structure", "--yes")).toBe(true);
    expect((await structure()).length).toBeLessThan(WHOLE.length);
    expect((await undo(id, "--yes")).code).toBe(0);
    expect(await structure()).toEqual([]);
    expect((await reported(id)).map(({ state }) => state)).toEqual(Array(6).fill("removed"));
  });
});

describe("a template", () => {
  const TEMPLATE = {
    site: { name: "Plant of {metadata.timeZone}", typeId: 10, timeZoneId: "Europe/Brussels" },
    source: { name: "Meter {source}" },
    variable: { unit: "kWh", granularity: "1 day" },
  };

  it("creates the structure of each file before it is sent, and is listed and undone like a table", async () => {
    putHistory(...ALL);
    rig.put("template.yaml", stringify(TEMPLATE));
    const args = ["--provision", join(rig.folder, "template.yaml"), "-s", '{"timeZone":"UTC"}', "--json"];
    const plan = JSON.parse((await migrate(...args, "--dry-run")).stdout);
    expect(plan).toMatchObject({ unfit: [], structure: { impossible: [] } });
    expect(plan.structure.wouldCreate.map(({ name }: { name: string }) => name).sort()).toEqual([
      "Meter GM-1",
      "Meter GM-2",
      "Plant of UTC",
      "export",
      "import",
      "import",
    ]);
    const { code, stdout } = await migrate(...args);
    const { id, structure: told } = JSON.parse(stdout);
    expect(code).toBe(0);
    expect(told.created).toHaveLength(6);
    expect(JSON.parse((await migrate(...args)).stdout).structure.created).toEqual([]);
    expect((await undo(id, "--yes")).stdout).toContain("removed: 3 variables, 2 sources, 1 sites");
    expect(await structure()).toEqual([]);
  });
});
