/**
 * How long one account waits while another loads the hub, beside its wait alone: for each of six kinds of load, the
 * small thing of the same kind.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { print, row } from "./hub-print.ts";
import { medianOf } from "./median.ts";
import { startWallsHub, type WallsHub } from "./walls-hub.ts";
import { LOADS, type Load } from "./walls-loads.ts";

const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 30);
/** Words of the names of loads; all by default. */
const PARTS = process.env["HEADGATE_BENCH_PARTS"]?.split(",") ?? [""];
/** At most so many times the wait alone, and so many milliseconds more. */
const WANTED = { times: 2, more: 100 };
/** Between two, so that they meet the load at different moments. */
const PAUSE_MS = 100;

export async function benchWalls(): Promise<void> {
  print(`walls: milliseconds that an account waits, medians of ${ROUNDS}, alone and beside the load of another`);
  print(`at most ${WANTED.times} × alone + ${WANTED.more} ms are wanted`);
  print(row("load", "alone", "beside", "most", "wanted", ""));
  for (const load of LOADS) if (PARTS.some((part) => load.name.includes(part))) await measure(load);
}

async function measure(load: Load): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const options = typeof load.options === "function" ? await load.options() : (load.options ?? {});
  const hub = await startWallsHub(folder, options);
  const stop = new AbortController();
  try {
    await load.prepare(hub);
    await load.act(hub, 0);
    const alone = await waits(load, hub, 1);
    await load.begin(hub, stop.signal);
    const beside = await waits(load, hub, 1 + ROUNDS);
    const median = medianOf(beside);
    const wanted = WANTED.times * medianOf(alone) + WANTED.more;
    const numbers = [medianOf(alone), median, Math.max(...beside), wanted].map((ms) => ms.toFixed(0));
    print(row(load.name, ...numbers, median <= wanted ? "holds" : "too long"));
  } finally {
    stop.abort();
    await hub.stop();
    await load.end?.();
    rmSync(folder, { recursive: true });
  }
}

async function waits(load: Load, hub: WallsHub, first: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let nth = 0; nth < ROUNDS; nth += 1) {
    const began = performance.now();
    await load.act(hub, first + nth);
    times.push(performance.now() - began);
    await sleep(PAUSE_MS);
  }
  return times;
}
