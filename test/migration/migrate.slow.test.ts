/** `headgate migrate` as a real process, against a hub in this one. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PATIENTLY } from "../e2e/wait.ts";
import { collect, openFile } from "../mapping/kit.ts";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { AMONG_OTHERS, headgate, main, migrate as migrateIn, type Result } from "./migrate-command.ts";

vi.setConfig(PATIENTLY);

let rig: GatewayRig;
let children: ChildProcess[] = [];
beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({});
});
afterEach(async () => {
  for (const child of children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null))
    child.kill("SIGKILL");
  children = [];
  await rig.close();
});

const migrate = (...args: readonly string[]): Promise<Result> => migrateIn(rig, ...args);

/** A month of days for each variable in a file of its own. */
function putMonths(variables: readonly number[], months: number, value = (at: number) => at): void {
  for (let month = 1; month <= months; month += 1)
    for (const variable of variables)
      rig.put(
        `history/${variable}/2025-${month}.csv`,
        `variable_id,date,value\n${Array.from(
          { length: 28 },
          (_, day) =>
            `${variable},2025-${String(month).padStart(2, "0")}-${String(day + 1).padStart(2, "0")}T00:00:00Z,${value(month * 100 + day)}\n`,
        ).join("")}`,
      );
}

it("delivers the matching files, verifies them, and finds nothing to do when called again", async () => {
  const variables = [await rig.variable("a"), await rig.variable("b", true)];
  putMonths(variables, 12);
  const first = await migrate("--verify", "--json");
  expect(first.stderr).toMatch(/^migration \w{10}: 24 files/);
  expect(JSON.parse(first.stdout)).toMatchObject({
    how: "done",
    files: { delivered: 24 },
    points: { mapped: 672, accepted: 672, rejected: 0 },
    verified: { targets: 2, points: 672, superseded: 0, months: 24, differences: [], unknown: [] },
  });
  expect(first.code).toBe(0);
  expect(await rig.stored(variables[0] ?? 0)).toMatchObject({ "2025-01-01": 100, "2025-12-28": 1227 });

  const { report } = JSON.parse(first.stdout);
  const page = readFileSync(report, "utf8");
  // The last days of most months are in no file.
  expect(page).toContain("<b>Stored as the files say.</b>");
  expect(page).not.toMatch(/(src|href)=/);
  const id: string = JSON.parse(first.stdout).id;
  const remade = await headgate(rig, "migrate", "report", id.slice(0, 4), "--json");
  expect(JSON.parse(remade.stdout)).toMatchObject({
    points: { accepted: 672 },
    coverage: { from: "2025-01-01", targets: 2, rows: [{ points: 336 }, { points: 336 }] },
    reconciliation: { differences: [] },
  });
  const xlsx = join(rig.folder, "report.xlsx");
  expect((await headgate(rig, "migrate", "report", id, "--xlsx", xlsx)).stdout).toContain(`workbook: ${xlsx}`);
  const { file } = await openFile(readFileSync(xlsx), "report.xlsx");
  expect(await collect(file.xlsx({ sheet: "Files", columns: true }))).toHaveLength(24);
  const nowhere = join(rig.folder, "absent", "report.xlsx");
  expect(await headgate(rig, "migrate", "report", id, "--xlsx", nowhere)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("HG-MIGR-005"),
  });

  const again = await migrate("--verify");
  expect(again.code).toBe(0);
  expect(again.stdout).toContain("24 files, ");
  expect(again.stdout).toContain("; 24 were delivered before");
  expect(again.stdout).toMatch(/^verified: 672 readings of 2 targets in 24 months compared, stored as the files say;/m);
});

it("names by target and month the readings that the service lacks, with the likely reason", async () => {
  const [unit, gone, other] = [await rig.variable("unit"), await rig.variable("gone"), await rig.variable("other")];
  putMonths([unit, gone, other], 2, (at) => at / 4);
  expect((await migrate()).code).toBe(0);
  const from = (variable: number, rows: readonly (readonly [string, number])[]) =>
    rig.put(
      `in/${variable}.csv`,
      `variable_id,date,value\n${rows.map(([date, value]) => `${variable},${date},${value}\n`).join("")}`,
    );
  // Another sender writes over the history.
  from(
    unit,
    Array.from({ length: 28 }, (_, day) => [
      `2025-01-${String(day + 1).padStart(2, "0")}T00:00:00Z`,
      (100 + day) * 250,
    ]),
  );
  from(other, [["2025-02-03T12:00:00Z", 5]]);
  const gateway = await rig.open({});
  await expect.poll(() => gateway.isIdle(), { timeout: 60_000 }).toBe(true);
  await rig.removePoints(gone, "2025-02-11T00:00:00Z", "2025-02-14T00:00:00Z");

  const { code, stdout } = await migrate("--verify", "--json");
  expect(code).toBe(1);
  expect(JSON.parse(stdout).verified.differences).toEqual([
    expect.objectContaining({
      target: `variableId=${unit}`,
      from: "2025-01-01T00:00:00.000Z",
      to: "2025-02-01T00:00:00.000Z",
      reason: expect.stringContaining("1000 times ours"),
    }),
    expect.objectContaining({ target: `variableId=${gone}`, reason: "3 readings are missing" }),
    expect.objectContaining({
      target: `variableId=${other}`,
      reason: expect.stringContaining("holds 1 readings more"),
    }),
  ]);
});

it("resumes after it was killed, and nothing arrives twice", async () => {
  const variables = [await rig.variable("a", true), await rig.variable("b", true)];
  putMonths(variables, 12);
  for (const round of [1, 2]) {
    const child = spawn(
      process.execPath,
      [main, "migrate", "history/**/*.csv", "-c", rig.config, "-m", "standard", ...AMONG_OTHERS],
      { cwd: rig.folder, stdio: "ignore" },
    );
    children.push(child);
    await expect
      .poll(() => rig.stored(variables[0] ?? 0).then((all) => Object.keys(all).length), { timeout: 60_000 })
      .toBeGreaterThan(round * 28);
    child.kill("SIGKILL");
    await new Promise((done) => child.once("exit", done));
  }
  const last = await migrate("--verify", "--json");
  expect(JSON.parse(last.stdout)).toMatchObject({
    points: { mapped: 672, accepted: 672 },
    verified: { differences: [] },
  });
  expect(await rig.versions(variables[1] ?? 0)).toBe(12 * 28);
});
