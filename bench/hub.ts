/**
 * What the hub stores and reads a second, beside the bare insert of the same points: pushed points in three
 * orders of arrival, the time to the answer meanwhile, and reads from a large store. The stores are made in
 * one go before.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { printBytes, pushOrders, VARIABLES, type Work, worksOf } from "./hub-arrival-order.ts";
import { startBenchHub } from "./hub-client.ts";
import { bytesUsed, packPoints, prefill, STEPS_A_YEAR } from "./hub-data.ts";
import { influxBaseline } from "./hub-influx.ts";
import { benchPostgres } from "./hub-postgres.ts";
import { print } from "./hub-print.ts";
import { benchReads } from "./hub-reads.ts";

const count = (name: string, ordinarily: number) => Number(process.env[`HEADGATE_BENCH_${name}`] ?? ordinarily);
/** Points that each order of arrival pushes. */
const PUSHED = count("PUSHED", 1_920_000);
/** Points that are in the store before. */
const STORED = count("STORED", 30_000_000);
/** Points of the store that is read. */
const READ = count("READ", 50_000_000);
const SIZE = count("PUSH_SIZE", 10_000);
/** `sqlite`, `postgres` or both. */
const STORES = (process.env["HEADGATE_BENCH_STORES"] ?? "sqlite,postgres").split(",");

export async function benchHub(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    if (STORES.includes("sqlite")) await onSqlite(folder);
    if (STORES.includes("postgres")) await benchPostgres({ pushed: PUSHED, stored: STORED, read: READ, push: SIZE });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function onSqlite(folder: string): Promise<void> {
  if (STORED > 0) await ingestion(folder);
  if (READ === 0) return;
  const path = join(folder, "large.sqlite");
  const variables = Math.max(1, Math.floor(READ / STEPS_A_YEAR));
  await prefill(path, variables, STEPS_A_YEAR);
  const bare = join(folder, "bare.sqlite");
  copyFileSync(path, bare);
  await packPoints({ kind: "sqlite", path });
  await benchReads({ kind: "sqlite", path }, { kind: "sqlite", path: bare }, variables);
}

async function ingestion(folder: string): Promise<void> {
  const path = join(folder, "filled.sqlite");
  const steps = Math.floor(STORED / VARIABLES);
  await prefill(path, VARIABLES, steps);
  const orders = worksOf(PUSHED, steps);
  print(
    `hub: ${PUSHED} points in each order, ${SIZE} a push, into a store of ` +
      `${VARIABLES * steps} points of ${VARIABLES} variables`,
  );
  const bare = join(folder, "bare.sqlite");
  copyFileSync(path, bare);
  const rates = await bareRates(bare, orders);
  rmSync(bare);
  await packPoints({ kind: "sqlite", path });
  const influx = await influxBaseline(join(folder, "influx"), orders, SIZE);
  const before = bytesUsed(path);
  const hub = await startBenchHub({ kind: "sqlite", path });
  await pushOrders(hub, orders, SIZE, [{ name: "bare insert", rates }, ...influx]);
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB; at most 300 are wanted`);
  await packPoints({ kind: "sqlite", path });
  printBytes(before, bytesUsed(path), orders);
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
