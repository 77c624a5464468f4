/** `headgate migrate undo`: takes away what a migration delivered, and nothing else. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { captureShown } from "../cli/shown.ts";
import { PATIENTLY } from "../e2e/wait.ts";
import { GatewayRig, until } from "../runs/gateway-rig.ts";
import { headgateHere, main, migrateHere, versionsOf } from "./migrate-command.ts";

vi.setConfig(PATIENTLY);

let rig: GatewayRig;
let child: ChildProcess | null = null;
const shown = captureShown();
const undo = (id: string, ...args: readonly string[]) => headgateHere(rig, shown, "migrate", "undo", id, ...args);

beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({});
});
afterEach(async () => {
  child?.kill("SIGKILL");
  child = null;
  await rig.close();
});

function put(path: string, id: number, rows: Readonly<Record<string, number>>): void {
  const lines = Object.entries(rows).map(([date, value]) => `${id},${date}T00:00:00Z,${value}\n`);
  rig.put(path, `variable_id,date,value\n${lines.join("")}`);
}

async function migrated(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await migrateHere(rig, shown, "--json", ...args);
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout).id;
}

it("removes only the readings that the migration delivered, and the same command delivers them again", async () => {
  const [a, b] = [await rig.variable("a"), await rig.variable("b", true)];
  put("history/a.csv", a, { "2025-01-01": 1, "2025-01-02": 2, "2025-01-05": 5, "2025-01-06": 6 });
  put("history/b.csv", b, { "2025-01-01": 7 });
  const id = await migrated();
  put("in/live.csv", a, { "2025-01-03": 30, "2025-01-05": 50 });
  const gateway = await rig.open({});
  await until("the live file is delivered", () => gateway.isIdle());
  await gateway.stop();

  const asked = await undo(id.slice(0, 5), "--dry-run", "--json");
  expect(asked.code).toBe(0);
  expect(JSON.parse(asked.stdout)).toMatchObject({
    id,
    removed: null,
    services: [
      {
        absent: 0,
        gone: [],
        variables: [
          {
            variableId: a,
            from: "2025-01-01T00:00:00.000Z",
            to: "2025-01-06T00:00:00.000Z",
            points: 3,
            calls: 2,
            stay: { others: 1, changed: 0, unsure: 0 },
          },
          { variableId: b, points: 1, versions: 1, calls: 1 },
        ],
        others: { 1: expect.stringMatching(/^live\.csv \(run \w+ of the gateway\)$/) },
      },
    ],
  });
  const refused = await undo(id);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("HG-MIGR-010") });
  expect(refused.stdout).toContain("1 dates were also delivered by live.csv");
  expect(Object.keys(await rig.stored(a))).toHaveLength(5);

  const done = await undo(id, "--yes");
  expect(done.stdout).toMatch(/^removed: 4 points, 1 versions; the same `migrate` command/m);
  expect(done.code).toBe(0);
  expect(await rig.stored(a)).toEqual({ "2025-01-03": 30, "2025-01-05": 50 });
  expect(await rig.stored(b)).toEqual({});
  expect((await undo(id, "--yes")).stdout).toContain("has delivered nothing that is not undone");
  const report = await headgateHere(rig, shown, "migrate", "report", id, "--json");
  expect(JSON.parse(report.stdout)).toMatchObject({ points: { accepted: 5 }, undone: [{ points: 4 }] });

  const again = await migrateHere(rig, shown);
  expect(again.stdout).not.toContain("delivered before");
  expect(again.stdout).toContain("5 mapped, 5 accepted");
  expect(await rig.stored(a)).toMatchObject({ "2025-01-03": 30, "2025-01-05": 5, "2025-01-06": 6 });
  expect(await versionsOf(rig, b)).toHaveLength(1);

  // By now the migration stands over the live reading, which stays unless it is told otherwise.
  const last = await undo(id, "--yes", "--with-others", "--json");
  expect(JSON.parse(last.stdout)).toMatchObject({ removed: { points: 5 } });
  expect(await rig.stored(a)).toEqual({ "2025-01-03": 30 });
});

it("leaves journalled batches that were never sent, and removes those that may be stored", async () => {
  const a = await rig.variable("a");
  for (const [name, day] of Object.entries({ a: "01", b: "03" }))
    put(`history/${name}.csv`, a, { [`2025-01-${day}`]: 1 });
  const id = await migrated();
  // A migration ends when its pushes are accepted, and the hub stores afterwards.
  await until("the readings are stored", async () => Object.keys(await rig.stored(a)).length === 2);
  // Another sender had stored the same of the one that never went.
  const db = new DatabaseSync(join(rig.folder, "state/spool/migrations", id, "ledger.sqlite"));
  db.exec(`UPDATE runs SET state = 'delivering', accepted = 0;
    UPDATE batches SET state = 'sending', accepted_at = NULL, answer = CASE WHEN run_id = (SELECT min(id) FROM runs)
      THEN 'not sent: delivery was stopped' ELSE 'sent, and not answered so far' END`);
  db.close();
  const { stdout } = await undo(id, "--dry-run", "--json");
  expect(JSON.parse(stdout).services).toMatchObject([
    { variables: [{ from: "2025-01-03T00:00:00.000Z", to: "2025-01-03T00:00:00.000Z", points: 1 }] },
  ]);
});

it("removes the delivered readings of a run that was held or cancelled before its end", async () => {
  const a = await rig.variable("a");
  for (const [name, day] of Object.entries({ a: "01", b: "03" }))
    put(`history/${name}.csv`, a, { [`2025-01-${day}`]: 1 });
  const id = await migrated();
  // A migration ends when its pushes are accepted, and the hub stores afterwards.
  await until("the readings are stored", async () => Object.keys(await rig.stored(a)).length === 2);
  const db = new DatabaseSync(join(rig.folder, "state/spool/migrations", id, "ledger.sqlite"));
  db.exec(`UPDATE runs SET state = CASE WHEN id = (SELECT min(id) FROM runs) THEN 'held' ELSE 'cancelled' END`);
  db.close();
  const { stdout } = await undo(id, "--dry-run", "--json");
  expect(JSON.parse(stdout).services).toMatchObject([{ variables: [{ points: 2 }] }]);
});

it("leaves dates with another stored value, and reports them", async () => {
  const a = await rig.variable("a");
  put("history/a.csv", a, { "2025-01-01": 1, "2025-01-02": 2 });
  const id = await migrated();
  // Written by a gateway whose ledger is not here.
  put("other/a.csv", a, { "2025-01-02": 20 });
  const other = await rig.open({
    drops: [
      {
        name: "other",
        kind: "local",
        path: "./other",
        every: "100ms",
        watch: false,
        settle: { observations: 1 },
      },
    ],
    ledger: { kind: "sqlite", path: "./elsewhere.sqlite" },
    spool: { path: "./elsewhere" },
  });
  await until("the other file is delivered", () => other.isIdle());
  await other.stop();
  rig.configure({});
  const { stdout } = await undo(id, "--yes");
  expect(stdout).toContain("at 1 dates another value is stored than the migration delivered");
  expect(await rig.stored(a)).toEqual({ "2025-01-02": 20 });
});

it("resumes a killed undo, and permits no migration before", async () => {
  const a = await rig.variable("a");
  const days = Array.from({ length: 400 }, (_, day) => new Date(Date.UTC(2024, 0, 1 + day)).toISOString().slice(0, 10));
  put("in/live.csv", a, Object.fromEntries(days.filter((_, at) => at % 2 === 1).map((day) => [day, -1])));
  const gateway = await rig.open({});
  await until("the live file is delivered", () => gateway.isIdle());
  await gateway.stop();
  put("history/a.csv", a, Object.fromEntries(days.filter((_, at) => at % 2 === 0).map((day) => [day, 1])));
  const id = await migrated();
  child = spawn(process.execPath, [main, "migrate", "undo", id, "--yes", "-c", rig.config], {
    stdio: "ignore",
  });
  const ended = new Promise((done) => child?.once("exit", done));
  await until("some of it is removed", async () => Object.keys(await rig.stored(a)).length < 390);
  child.kill("SIGKILL");
  await ended;
  const left = Object.keys(await rig.stored(a)).length;
  expect(left).toBeGreaterThan(200);

  const refused = await migrateHere(rig, shown);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("HG-MIGR-011") });
  const meanwhile = await headgateHere(rig, shown, "migrate", "report", id);
  expect(meanwhile.stdout).toMatch(/^being undone since 20\S+Z by /);
  const page = /^report: (.*)$/m.exec(meanwhile.stdout)?.[1] ?? "";
  expect(readFileSync(page, "utf8")).toContain("<b>Being undone.</b>");
  const done = await undo(id, "--yes", "--json");
  expect(JSON.parse(done.stdout)).toMatchObject({ removed: { points: left - 200 } });
  expect(Object.values(await rig.stored(a)).every((value) => value === -1)).toBe(true);
  const report = await headgateHere(rig, shown, "migrate", "report", id, "--json");
  const [undone] = JSON.parse(report.stdout).undone;
  // The call under way at the kill may have removed its point without a word.
  expect(undone.points).toBeGreaterThanOrEqual(199);
  expect((await migrateHere(rig, shown)).code).toBe(0);
  expect(Object.keys(await rig.stored(a))).toHaveLength(400);
});
