/**
 * Reports of the quality of a year of quarter-hours of many variables, beside a bare read of the same points, and what
 * other callers of the hub notice meanwhile.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { startChild } from "./child.ts";
import { type BenchHub, startBenchHub } from "./hub-client.ts";
import { BEGIN_MS, dateOf, prefill, STEP_MS, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

const VARIABLES = Number(process.env["HEADGATE_BENCH_VARIABLES"] ?? 1_000);
/** Missing points of each gap. */
const GAPS = [1, 4, 96];
const PING_MS = 20;
const PERIOD = { From: dateOf(0), To: dateOf(STEPS_A_YEAR) };

export async function benchQuality(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    const path = join(folder, "hub.sqlite");
    await prefill(path, VARIABLES, STEPS_A_YEAR);
    punch(path);
    const bare = await startChild<{ seconds: number }>(join(import.meta.dirname, "quality-bare.ts"), [path]);
    await bare.stop();
    const hub = await startBenchHub({ kind: "sqlite", path });
    await reports(hub, bare.answer.seconds);
    print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB`);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Declares the steps, and removes some points of each variable. */
function punch(path: string): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA synchronous = OFF; BEGIN");
  database.exec("UPDATE variable SET granularity = 15, granularity_time_base = 2");
  const remove = database.prepare("DELETE FROM point WHERE variable_id = ? AND at_ms >= ? AND at_ms < ?");
  for (let id = 1; id <= VARIABLES; id += 1)
    for (const [index, length] of GAPS.entries()) {
      const fromMs = BEGIN_MS + ((id * 7_919 + index * 11_003) % (STEPS_A_YEAR - length)) * STEP_MS;
      remove.run(id, fromMs, fromMs + length * STEP_MS);
    }
  database.exec("COMMIT");
  database.close();
}

async function reports(hub: BenchHub, bareSeconds: number): Promise<void> {
  print(`quality: ${VARIABLES} variables with ${STEPS_A_YEAR} points each, less some gaps`);
  print(row("", "seconds", "of bare", "MB", "ping ms", "99 %", "most"));
  print(row("bare read of dates and values", bareSeconds.toFixed(1)));
  print(row("nothing", "", "", "", ...pingCells(await pings(hub, () => sleep(2_000)))));
  const asked: readonly (readonly [string, string, object])[] = [
    ["losses", "/dataLossDetection", PERIOD],
    ["losses by month", "/dataLossDetection", { ...PERIOD, Granularity: "Month" }],
    ["quality", "/dataQuality", PERIOD],
  ];
  for (const [name, path, query] of asked) {
    let bytes = 0;
    const began = performance.now();
    const times = await pings(hub, async () => {
      bytes = (await hub.call("POST", path, query)).length;
    });
    const seconds = (performance.now() - began) / 1_000;
    const ratio = (seconds / bareSeconds).toFixed(2);
    print(row(name, seconds.toFixed(1), ratio, (bytes / 1e6).toFixed(1), ...pingCells(times)));
  }
}

/** Milliseconds of small requests while something else goes on. */
async function pings(hub: BenchHub, work: () => Promise<void>): Promise<readonly number[]> {
  const times: number[] = [];
  let isOver = false;
  const pinger = (async () => {
    while (!isOver) {
      const began = performance.now();
      await hub.call("GET", "/health");
      times.push(performance.now() - began);
      await sleep(PING_MS);
    }
  })();
  await work();
  isOver = true;
  await pinger;
  return times;
}

function pingCells(times: readonly number[]): readonly string[] {
  return [quantile(times, 0.5), quantile(times, 0.99), Math.max(...times)].map((ms) => ms.toFixed(1));
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
