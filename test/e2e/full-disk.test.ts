/**
 * Disks that are full and folders that may not be written, under a daemon that is not root. Each test first
 * proves the fault.
 */
import { execFile } from "node:child_process";
import { chmod, chown, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { callsOf, createChain } from "../hub/fixture.ts";
import { expectStoredOnce } from "./kill-scenario.ts";
import { type HeadgateProcess, PROJECT } from "./processes.ts";
import { type Readings, readingsOf } from "./readings.ts";
import { askOperations, localDrop, quickPush, Rig, type Settings, type Stage } from "./rig.ts";
import { NOBODY, SmallDisk } from "./small-disk.ts";
import { PATIENTLY, until } from "./wait.ts";

vi.setConfig(PATIENTLY);

const ROWS = 4_000;
const ENOUGH = 16_000_000;
const push: Settings = { ...quickPush, batch: { points: 1_000 } };
const spool: Settings = { path: "./state/spool", headroom: "0B" };

const may = await SmallDisk.isPossible();
if (!may) console.info("skipped: full disks under a daemon: file systems cannot be mounted here");

let rig: Rig;
let disk: SmallDisk | null = null;
beforeAll(async () => {
  rig = await Rig.start();
});
afterEach(async () => {
  await disk?.close();
  disk = null;
});
afterAll(() => rig.close());

/** A stage that belongs to nobody, with one file of about 200 KB. */
async function layStage(name: string, change: Settings = {}): Promise<{ stage: Stage; readings: Readings }> {
  const stage = await rig.stage(name, { push, spool, ...change });
  const readings = readingsOf(await rig.variable(name), ROWS);
  await stage.put("standard_one.csv", readings.csv);
  await chmod(rig.folder, 0o755);
  await chown(stage.folder, NOBODY, NOBODY);
  for (const item of await readdir(stage.folder, { recursive: true }))
    await chown(join(stage.folder, item), NOBODY, NOBODY);
  return { stage, readings };
}

async function expectDeliveredOnce(stage: Stage, gateway: HeadgateProcess, readings: Readings): Promise<void> {
  await until("the file to be archived", async () => (await gatewaySays(gateway, stage)).files["delivered"] === 1);
  await until("the source to be gone", async () => !(await stage.files()).includes("standard_one.csv"));
  await gateway.end("SIGTERM");
  expect(stage.lane.conflicts).toEqual([]);
  const accepted = stage.lane.pushes.filter(({ status }) => status === 200);
  expect(new Set(accepted.map(({ operationId }) => operationId)).size).toBe(ROWS / 1_000);
  expect(accepted, "nothing accepted is sent again").toHaveLength(ROWS / 1_000);
  await expectStoredOnce(rig, [readings]);
}

/** Asked of the daemon itself, since its ledger may lie where only it can see it. */
async function gatewaySays(gateway: HeadgateProcess, stage: Stage) {
  const url = (await gateway.said("stderr", /"operations":"([^"]+)"/))[1] ?? "";
  const { runs } = (await (await askOperations(url, "/operations/runs")).json()) as {
    runs: { state: string; reason: unknown }[];
  };
  const delivered = runs.filter(({ state }) => state === "confirmed").length;
  expect(
    runs.every(({ state }) => !["quarantined", "discarded", "cancelled"].includes(state)),
    stage.name,
  ).toBe(true);
  return { runs, files: { delivered } };
}

describe.skipIf(!may)("a full disk", () => {
  test("under the spool defers a file that does not fit with its segment, and it is delivered later", async () => {
    const { stage, readings } = await layStage("spool");
    disk = await SmallDisk.mount(join(stage.folder, "state", "spool"), 350_000, NOBODY);
    await disk.expectNoRoomFor(360_000);
    await chown(join(stage.folder, "state"), NOBODY, NOBODY);
    const gateway = stage.gateway([], { through: disk.through });
    const { runs } = await until("a run that waits", async () => {
      const says = await gatewaySays(gateway, stage);
      return says.runs[0]?.reason !== null && says.runs.length > 0 && says;
    });
    expect(runs[0]).toMatchObject({ state: "claimed", reason: { code: "HG-SPOOL-006" } });
    expect(stage.lane.pushes).toEqual([]);
    expect(await stage.files()).toEqual(["standard_one.csv"]);
    await disk.resize(ENOUGH);
    await expectDeliveredOnce(stage, gateway, readings);
  });

  test("under the ledger stops sending, since nothing can be recorded, and the daemon resumes by itself", async () => {
    const { stage, readings } = await layStage("ledger", {
      ledger: { kind: "sqlite", path: "./small/ledger.sqlite" },
    });
    await rm(join(stage.drop, "standard_one.csv"));
    disk = await SmallDisk.mount(join(stage.folder, "small"), 2_000_000);
    const gateway = stage.gateway([], { through: disk.through });
    await gateway.said("stderr", /gateway started/);
    const filler = await disk.fill();
    for (let index = 0; index < 5; index += 1) await stage.put(`other_${index}.txt`, "unclaimed");
    await stage.put("standard_one.csv", readings.csv);
    await chown(join(stage.drop, "standard_one.csv"), NOBODY, NOBODY);
    await gateway.said("stderr", /HG-LEDG-004/);
    expect(stage.lane.pushes).toEqual([]);
    expect(await stage.files()).toContain("standard_one.csv");
    await rm(filler);
    await expectDeliveredOnce(stage, gateway, readings);
  });

  test("under the archive keeps the source until its copy fits, and nothing is sent again", async () => {
    // Without a guard the copy follows at once.
    const { stage, readings } = await layStage("archive", {
      drops: [{ ...localDrop, finish: { guard: "0s" } }],
    });
    disk = await SmallDisk.mount(join(stage.drop, "archive"), 100_000);
    await disk.expectNoRoomFor(readings.csv.length);
    const gateway = stage.gateway([], { through: disk.through });
    await gateway.said("stderr", /HG-DROP-009/);
    expect(await stage.files()).toEqual(["standard_one.csv"]);
    await disk.resize(ENOUGH);
    await expectDeliveredOnce(stage, gateway, readings);
    expect(await readdir(disk.at("."))).toHaveLength(1);
  });
});

/** A hub with one user, on a small disk. */
async function startSmallHub(stage: Stage, small: SmallDisk) {
  const config = join(stage.folder, "hub.yaml");
  const user = "{ username: manager, password: manager-password, accounts: [1], roles: [Manager] }";
  await writeFile(
    config,
    "listen: 127.0.0.1:0\nmetrics: { listen: 127.0.0.1:0, token: metrics-token-of-a-test }\n" +
      "calculated: { engine: none }\nstore: { kind: sqlite, path: ./small/hub.sqlite }\n" +
      "accounts: [{ id: 1, name: A }]\n" +
      `clients: [{ id: gateway, secret: gateway-secret }]\nusers: [${user}]\n`,
  );
  const hub = rig.start(["hub", "-c", config], { through: small.through });
  const [, url = "", metrics = ""] = await hub.said("stderr", /"url":"([^"]+)","metricsUrl":"([^"]+)"/);
  // The disk is too small for the spool of the hub's own gateway, which is not ready before and after.
  const ready = async () => {
    const answer = await fetch(new URL("/health/ready", metrics), { headers: METRICS });
    return ((await answer.json()) as { parts: { part: string }[] }).parts.find(({ part }) => part === "store");
  };
  const disk = async () =>
    (await (await fetch(new URL("/metrics", metrics), { headers: METRICS })).text()).match(
      /^headgate_hub_disk_full (\d)$/m,
    )?.[1];
  return { hub, calls: callsOf(() => url), health: () => fetch(`${url}/health`), ready, disk };
}
const METRICS = { authorization: "Bearer metrics-token-of-a-test" };

describe.skipIf(!may)("a full disk under a hub", () => {
  test("is told by its health, its metrics and one log line, refuses pushes with 507, and ends by itself", async () => {
    const { stage } = await layStage("small-hub");
    disk = await SmallDisk.mount(join(stage.folder, "small"), ENOUGH, NOBODY);
    const { hub, calls, health, ready, disk: full } = await startSmallHub(stage, disk);
    const { variableIds } = await createChain(calls);
    const push = (at: number) =>
      calls.call("POST", "/push/api/data", {
        body: [{ variableId: variableIds[0], data: [{ date: new Date(at * 60_000).toISOString(), value: at }] }],
      });
    expect(await health()).toMatchObject({ status: 200 });
    const filler = await disk.fill();
    const refused = await until("a push to be refused", async () => {
      const answer = await push(1);
      return answer.status !== 200 && answer;
    });
    expect(refused).toMatchObject({ status: 507, body: { code: "storage-full" } });
    expect(refused.headers.get("retry-after")).toBe("30");
    for (let again = 0; again < 5; again += 1) expect(await push(2 + again)).toMatchObject({ status: 507 });
    const said = await health();
    expect(said.status).toBe(503);
    expect(await said.json()).toMatchObject({ status: "not ok", reason: expect.stringContaining("disk") });
    expect([await ready(), await full()]).toEqual([expect.objectContaining({ ready: false }), "1"]);
    await rm(filler);
    await until("the hub to be well again", async () => (await health()).status === 200);
    expect([await ready(), await full()]).toEqual([undefined, "0"]);
    expect(await push(100)).toMatchObject({ status: 200 });
    await until("the reading to be stored", async () => {
      const rows: { rawValue: number }[] = await calls.get("/data", { variableId: variableIds[0] ?? 0 });
      return rows.some(({ rawValue }) => rawValue === 100);
    });
    await hub.end("SIGTERM");
    const lines = hub.stderr.split("\n").filter((line) => /disk/i.test(line));
    expect(lines.filter((line) => line.includes('"level":"error"'))).toHaveLength(1);
    expect(lines.join("\n")).not.toContain('"stack"');
  });
});

describe.skipIf(process.getuid?.() !== 0)("a folder without write permission", () => {
  test.each(["spool", "archive"])(
    "as the %s keeps the file at its drop, and it is delivered once when permission is given",
    async (which) => {
      const { stage, readings } = await layStage(`read-only-${which}`);
      const folder = which === "spool" ? join(stage.folder, "state/spool/inputs") : join(stage.drop, "archive");
      await promisify(execFile)("mkdir", ["-p", folder], { uid: NOBODY, gid: NOBODY });
      await chmod(folder, 0o555);
      await expect(promisify(execFile)("touch", [join(folder, "proof")], { uid: NOBODY, gid: NOBODY })).rejects.toThrow(
        "Permission denied",
      );
      const gateway = stage.gateway([], { uid: NOBODY });
      await gateway.said("stderr", /EACCES|permission denied/);
      expect(await stage.files()).toEqual(["standard_one.csv"]);
      if (which === "spool") expect(stage.lane.pushes).toEqual([]);
      await chmod(folder, 0o755);
      await expectDeliveredOnce(stage, gateway, readings);
    },
  );
});

describe.skipIf(!may)("a full disk at the start of the daemon", () => {
  test("ends the start with 1, and the restart by the systemd unit succeeds when space is free", async () => {
    const { stage, readings } = await layStage("start");
    disk = await SmallDisk.mount(join(stage.folder, "state"), 1_000_000);
    const filler = await disk.fill();
    const unit = await readFile(join(PROJECT, "docs/headgate.service"), "utf8");
    const setting = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];
    const first = await stage.gateway([], { through: disk.through }).ended();
    expect(first.stderr).toMatch(/ENOSPC|full/);
    expect(first.code).toBe(1);
    expect(setting("Restart")).toBe("on-failure");
    expect(setting("RestartPreventExitStatus")).not.toContain(String(first.code));
    await rm(filler);
    await disk.resize(ENOUGH);
    await expectDeliveredOnce(stage, stage.gateway([], { through: disk.through }), readings);
  });

  test("ends a hub with 1", async () => {
    const { stage } = await layStage("hub");
    disk = await SmallDisk.mount(join(stage.folder, "state"), 100_000);
    await disk.fill();
    const config = join(stage.folder, "hub.yaml");
    await writeFile(
      config,
      "listen: 127.0.0.1:0\nstore: { kind: sqlite, path: ./state/hub.sqlite }\naccounts: [{ id: 1, name: A }]\n" +
        "clients: [{ id: c, secret: a-secret-of-a-client }]\nusers: []\n",
    );
    const { code, stderr } = await rig.start(["hub", "-c", config], { through: disk.through }).ended();
    expect(stderr).toMatch(/full|I\/O/);
    expect(code).toBe(1);
  });
});
