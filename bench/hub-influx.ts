/** InfluxDB 1, where it is installed (Debian's package `influxdb`): the same pushes, as lines over HTTP. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Pool } from "undici";
import { freePort } from "./free-port.ts";
import { type Baseline, CONCURRENCY, earlierPoint, type Work } from "./hub-arrival-order.ts";
import { BEGIN_MS, type Order, pieces, type Rectangle, STEP_MS, valueAt } from "./hub-data.ts";
import { print } from "./hub-print.ts";

const ATTEMPTS = 300;
const ATTEMPT_MS = 100;
const WRITE = "/write?db=bench&precision=s";

/** Its rates in an empty database; no baseline where it is not installed. */
export async function influxBaseline(
  folder: string,
  works: readonly Work[],
  size: number,
): Promise<readonly Baseline[]> {
  mkdirSync(folder);
  const [port, other] = [await freePort(), await freePort()];
  writeFileSync(join(folder, "influxdb.conf"), settings(folder, port, other));
  const server = spawn("influxd", ["-config", join(folder, "influxdb.conf")], { stdio: "ignore" });
  const exited = once(server, "exit").catch(() => null);
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONCURRENCY });
  try {
    if (!(await Promise.race([isReady(pool), exited.then(() => false)]))) {
      print("influxd is not installed, or did not start");
      return [];
    }
    await request(pool, "/query?q=CREATE%20DATABASE%20bench");
    for (const { all } of works.slice(0, 1)) await request(pool, WRITE, linesOf(earlierPoint(all)));
    const rates: number[] = [];
    for (const { order, all } of works) rates.push(await rateOf(pool, order, all, size));
    return [{ name: "InfluxDB", rates }];
  } finally {
    await pool.close();
    server.kill();
    await exited;
    rmSync(folder, { recursive: true });
  }
}

function settings(folder: string, port: number, other: number): string {
  return `reporting-disabled = true
bind-address = "127.0.0.1:${other}"
[meta]
  dir = "${folder}/meta"
[data]
  dir = "${folder}/data"
  wal-dir = "${folder}/wal"
  query-log-enabled = false
[http]
  bind-address = "127.0.0.1:${port}"
  log-enabled = false
  max-body-size = 0
[monitor]
  store-enabled = false
[logging]
  level = "error"
`;
}

async function isReady(pool: Pool): Promise<boolean> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    try {
      await request(pool, "/query?q=SHOW%20DATABASES");
      return true;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, ATTEMPT_MS));
    }
  }
  return false;
}

async function request(pool: Pool, path: string, body: Buffer | string = ""): Promise<void> {
  const answer = await pool.request({ method: "POST", path, body });
  const content = await answer.body.text();
  if (answer.statusCode >= 300) throw new Error(`InfluxDB: ${answer.statusCode} ${content.slice(0, 500)}`);
}

/** Points a second; the lines are made before. */
async function rateOf(pool: Pool, order: Order, all: Rectangle, size: number): Promise<number> {
  const bodies = [...pieces(order, all, size)].map(linesOf);
  const began = performance.now();
  const client = async (): Promise<void> => {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) await request(pool, WRITE, body);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  return (all.variables * all.steps) / ((performance.now() - began) / 1_000);
}

function linesOf({ firstVariable, variables, firstStep, steps }: Rectangle): Buffer {
  let lines = "";
  for (let variable = firstVariable; variable < firstVariable + variables; variable += 1)
    for (let step = firstStep; step < firstStep + steps; step += 1)
      lines += `energy,meter=METER-${100_000 + variable} value=${valueAt(variable, step)} ${secondsOf(step)}\n`;
  return Buffer.from(lines);
}

function secondsOf(step: number): number {
  return (BEGIN_MS + step * STEP_MS) / 1_000;
}
