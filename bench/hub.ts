/**
 * What the hub stores and reads a second, beside the bare insert of the same points: pushed points in three orders of arrival, the time to the
 * answer meanwhile, and reads from a large store. The stores are made in one go before.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type BenchHub, startBenchHub } from "./hub-client.ts";
import { bodyOf, type Order, pieces, prefill, type Rectangle, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";
import { benchReads } from "./hub-reads.ts";

const count = (name: string, ordinarily: number) =>
  Number(process.env[`HEADGATE_BENCH_${name}`] ?? ordinarily);
/** Points that each order of arrival pushes. */
const PUSHED = count("PUSHED", 1_920_000);
/** Points that are in the store before. */
const STORED = count("STORED", 30_000_000);
/** Points of the store that is read. */
const READ = count("READ", 50_000_000);
const SIZE = count("PUSH_SIZE", 10_000);
const VARIABLES = 10_000;
const CONCURRENCY = 2;

export async function benchHub(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    if (STORED > 0) await ingestion(folder);
    if (READ > 0) await benchReads(join(folder, "large.sqlite"), READ);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

interface Work {
  readonly order: Order;
  readonly all: Rectangle;
}

/** Each order has dates of its own, so that one store takes all three. */
function works(stored: number): readonly Work[] {
  const variables = Math.min(VARIABLES, PUSHED / 96);
  const steps = Math.ceil(PUSHED / variables / 96) * 96;
  const years = Math.max(1, Math.floor(PUSHED / STEPS_A_YEAR));
  return [
    { order: "day", all: { firstVariable: 1, variables, firstStep: stored, steps } },
    { order: "time", all: { firstVariable: 1, variables, firstStep: stored + steps, steps } },
    {
      order: "variable",
      all: { firstVariable: 1, variables: years, firstStep: stored + 2 * steps, steps: STEPS_A_YEAR },
    },
  ];
}

async function ingestion(folder: string): Promise<void> {
  const path = join(folder, "filled.sqlite");
  const steps = Math.floor(STORED / VARIABLES);
  await prefill(path, VARIABLES, steps);
  const orders = works(steps);
  print(
    `hub: ${PUSHED} points in each order, ${SIZE} a push, into a store of ${VARIABLES * steps} points of ${VARIABLES} variables`,
  );
  const bare = join(folder, "bare.sqlite");
  copyFileSync(path, bare);
  const rates = await bareRates(bare, orders);
  rmSync(bare);
  const hub = await startBenchHub({ kind: "sqlite", path });
  print(row("points/s", "bare insert", "hub", "ratio", "of by-day", "answer ms", "99 %"));
  let byDay = Number.NaN;
  const best = Math.max(...rates);
  for (const [index, { order, all }] of orders.entries()) {
    const { rate, latencies } = await pushAll(hub, order, all);
    if (order === "day") byDay = rate;
    const base = rates[index] ?? Number.NaN;
    print(
      row(
        `by ${order}`,
        base.toFixed(0),
        rate.toFixed(0),
        (rate / base).toFixed(2),
        (rate / byDay).toFixed(2),
        quantile(latencies, 0.5).toFixed(1),
        quantile(latencies, 0.99).toFixed(1),
      ),
    );
    if (order !== "time")
      print(`  beside the bare insert's best: ${(rate / best).toFixed(2)}; at least 0.30 is wanted`);
  }
  print("by time at least 0.50 of the by-day rate, and a median of 20 ms until the answer are wanted");
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB`);
  for (const end of ["", "-wal", "-shm", ".intake", ".intake-wal", ".intake-shm", ".lock"])
    rmSync(path + end, { force: true });
}

async function bareRates(path: string, orders: readonly Work[]): Promise<readonly number[]> {
  const args = [join(import.meta.dirname, "hub-bare.ts"), path, JSON.stringify(orders), String(SIZE)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const answer = await text(child.stdout);
  await exited;
  return JSON.parse(answer) as readonly number[];
}

/** Points a second from the first byte sent to the last outcome. */
async function pushAll(hub: BenchHub, order: Order, all: Rectangle) {
  // Made before, so that making them does not count.
  const bodies = [...pieces(order, all, SIZE)].map(bodyOf);
  const latencies: number[] = [];
  const began = performance.now();
  const client = async (): Promise<void> => {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift())
      latencies.push(await hub.push(body));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  await hub.drained();
  return { rate: (all.variables * all.steps) / ((performance.now() - began) / 1_000), latencies };
}
