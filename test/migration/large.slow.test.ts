/**
 * A history goes into the hub from one command that is killed twice on the way. Small here; `npm run
 * test:long` plays it with 10,000,000 points in 2,000 files (`HEADGATE_HISTORY_FILES`,
 * `HEADGATE_HISTORY_POINTS`).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { GatewayRig } from "../runs/gateway-rig.ts";
import { watchMemory } from "./memory.ts";
import { AMONG_OTHERS } from "./migrate-command.ts";

const FILES = Number(process.env["HEADGATE_HISTORY_FILES"] ?? 60);
const POINTS = Number(process.env["HEADGATE_HISTORY_POINTS"] ?? 6_000);
const VARIABLES = Math.min(40, FILES / 4);
const MEMORY_MAX = 400;
const PAGE = 10_000;
const never = new AbortController().signal;
/** As people start it: with the code that was compiled before, which takes less memory than to compile it again. */
const main = resolve(import.meta.dirname, "../../src/headgate.js");
let rig: GatewayRig;
let child: ChildProcess | null = null;
beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({ push: {} });
});
afterEach(async () => {
  if (child?.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  await rig.close();
});

/** Quarter hours of each variable, one file after the other. */
function putHistory(variables: readonly number[]): void {
  const each = POINTS / FILES;
  mkdirSync(join(rig.folder, "history"));
  for (let file = 0; file < FILES; file += 1) {
    const [variable, part] = [variables[file % VARIABLES] ?? 0, Math.floor(file / VARIABLES)];
    let text = "variable_id,date,value\n";
    for (let row = 0; row < each; row += 1) {
      const at = new Date(Date.UTC(2015, 0, 1) + (part * each + row) * 900_000).toISOString();
      text += `${variable},${at},${((file * 7919 + row * 31) % 100_000) / 100}\n`;
    }
    writeFileSync(join(rig.folder, `history/${variable}-${part}.csv`), text);
  }
}

/** Killed where `fault` says, by SIGKILL; the largest memory of the command and its mappers goes into `peaks`. */
async function migrate(peaks: number[], fault?: string) {
  const args = [
    main,
    "migrate",
    "history/*.csv",
    "-c",
    rig.config,
    "-m",
    "standard",
    "--verify",
    "--json",
    ...AMONG_OTHERS,
  ];
  const env = { ...process.env, ...(fault === undefined ? {} : { HEADGATE_FAULT: fault }) };
  const started = spawn(process.execPath, args, { cwd: rig.folder, env, stdio: ["ignore", "pipe", "pipe"] });
  child = started;
  const memory = watchMemory(started);
  const said = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    started[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
      if (process.env["HEADGATE_HISTORY_FILES"] !== undefined && name === "stderr") process.stdout.write(text);
    });
  await once(started, "close");
  peaks.push(memory.end());
  return { ...said, code: started.exitCode, signal: started.signalCode };
}

async function versions(variableId: number): Promise<number> {
  let count = 0;
  for (let page = 0, rows = PAGE; rows === PAGE; page += 1) {
    const paging = { "Paging.PageNumber": page, "Paging.ItemsPerPage": PAGE };
    const query = { VariableIds: [variableId], TimeZoneId: "UTC", AllVersions: true, ...paging };
    rows = (await rig.client.postData({ ...query, DisplayLevel: "ValueVariableDate" }, never)).length;
    count += rows;
  }
  return count;
}

it(
  "brings a history into the hub by one command that is killed twice, within its memory, and verifies it",
  async () => {
    const variables: number[] = [];
    for (let at = 0; at < VARIABLES; at += 1) variables.push(await rig.variable(`v${at}`, at % 2 === 0));
    putHistory(variables);
    const peaks: number[] = [];
    for (const round of [1, 2]) {
      const killed = await migrate(peaks, `delivery.after-accept#${Math.round(FILES * 0.3)}`);
      expect(killed.signal, `${round}: ${killed.stderr}`).toBe("SIGKILL");
    }
    const last = await migrate(peaks);
    process.stdout.write(
      `largest memory of the command and its mappers together: ${peaks.map(Math.round).join(", ")} MB\n`,
    );
    expect(JSON.parse(last.stdout), last.stderr).toMatchObject({
      how: "done",
      files: { delivered: FILES },
      points: { mapped: POINTS, accepted: POINTS, rejected: 0 },
      verified: { points: POINTS, targets: VARIABLES, superseded: 0, differences: [], unknown: [] },
    });
    expect(last.code).toBe(0);
    // Of a variable with versions, each date has one: nothing came twice.
    expect(await versions(variables[0] ?? 0)).toBe(POINTS / VARIABLES);
    expect(Math.max(...peaks)).toBeLessThan(MEMORY_MAX);
  },
  Number(process.env["HEADGATE_HISTORY_MINUTES"] ?? 2) * 60_000,
);
