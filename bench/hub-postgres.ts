/**
 * The hub on PostgreSQL, on a server of the bench's own, beside `COPY` and upserts of the same points into copies of
 * the same database.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { printBytes, pushOrders, VARIABLES, type Work, worksOf } from "./hub-arrival-order.ts";
import { startBenchHub } from "./hub-client.ts";
import { packPoints, STEPS_A_YEAR } from "./hub-data.ts";
import {
  addMonths,
  bytesOfPoints,
  connect,
  copyRate,
  databaseOf,
  prefillPostgres,
  SCHEMA,
  upsertRate,
} from "./hub-postgres-data.ts";
import { print } from "./hub-print.ts";
import { benchReads } from "./hub-reads.ts";

export interface Sizes {
  readonly pushed: number;
  readonly stored: number;
  readonly read: number;
  /** Points a push. */
  readonly push: number;
}

export async function benchPostgres(sizes: Sizes): Promise<void> {
  // Not below the bench's folder, which a server with a user of its own cannot enter.
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const child = fork(join(import.meta.dirname, "hub-postgres-server.ts"), [folder]);
  try {
    const server = await urlOf(child);
    const client = await connect(server);
    if (sizes.stored > 0) await ingestion(client, server, sizes);
    if (sizes.read > 0) await reads(client, server, sizes);
    await client.end();
  } finally {
    const exited = once(child, "exit");
    if (child.connected) child.send("stop");
    await exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

async function urlOf(child: ChildProcess): Promise<string> {
  const [message] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(() => {
      throw new Error("PostgreSQL did not start");
    }),
  ]);
  return (message as { url: string }).url;
}

export function storeOf(url: string) {
  return { kind: "postgres", url, schema: SCHEMA } as const;
}

async function ingestion(client: pg.Client, server: string, { pushed, stored, push }: Sizes): Promise<void> {
  const steps = Math.floor(stored / VARIABLES);
  const works = worksOf(pushed, steps);
  await client.query("CREATE DATABASE filled");
  const url = databaseOf(server, "filled");
  await prefillPostgres(url, VARIABLES, steps);
  const filled = await connect(url);
  for (const { all } of works) await addMonths(filled, all);
  // A database that is copied has no connections.
  await filled.end();
  print(
    `\nhub on PostgreSQL: ${pushed} points in each order, ${push} a push, into a store of ` +
      `${VARIABLES * steps} points of ${VARIABLES} variables`,
  );
  const baselines = [
    { name: "COPY", rates: await ratesOf(client, server, works, push, copyRate) },
    { name: "upsert", rates: await ratesOf(client, server, works, push, upsertRate) },
  ];
  await packPoints({ ...storeOf(url), pool: 2, connectTimeout: 10_000 });
  const before = await connect(url).then(bytesAndEnd);
  const hub = await startBenchHub(storeOf(url));
  await pushOrders(hub, works, push, baselines);
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB; at most 300 are wanted`);
  await packPoints({ ...storeOf(url), pool: 2, connectTimeout: 10_000 });
  printBytes(before, await connect(url).then(bytesAndEnd), works);
  await client.query("DROP DATABASE filled WITH (FORCE)");
}

async function bytesAndEnd(client: pg.Client): Promise<number> {
  const bytes = await bytesOfPoints(client);
  await client.end();
  return bytes;
}

async function ratesOf(
  client: pg.Client,
  server: string,
  works: readonly Work[],
  push: number,
  rateOf: typeof copyRate,
): Promise<readonly number[]> {
  await client.query("CREATE DATABASE copied TEMPLATE filled STRATEGY file_copy");
  const copied = await connect(databaseOf(server, "copied"));
  const rates: number[] = [];
  for (const { order, all } of works) rates.push(await rateOf(copied, order, all, push));
  await copied.end();
  await client.query("DROP DATABASE copied WITH (FORCE)");
  // Neither pays for the pages that the other made dirty.
  await client.query("CHECKPOINT");
  return rates;
}

async function reads(client: pg.Client, server: string, { read }: Sizes): Promise<void> {
  const variables = Math.max(1, Math.floor(read / STEPS_A_YEAR));
  await client.query("CREATE DATABASE large");
  const url = databaseOf(server, "large");
  await prefillPostgres(url, variables, STEPS_A_YEAR);
  await client.query("CREATE DATABASE bare TEMPLATE large STRATEGY file_copy");
  await packPoints({ ...storeOf(url), pool: 2, connectTimeout: 10_000 });
  await benchReads(storeOf(url), { kind: "postgres", url: databaseOf(server, "bare") }, variables);
  for (const name of ["large", "bare"]) await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
}
