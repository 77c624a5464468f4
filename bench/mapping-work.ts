/**
 * One measured piece of the bench of mapping, in a process of its own: `mapping-work.ts WORK INPUT OUTPUT
 * [SETTINGS [MAPPER]]`.
 */

import { once } from "node:events";
import { createReadStream, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parse } from "csv-parse";
import { parse as parseSync } from "csv-parse/sync";
import { silentLog } from "#core/log.ts";
import { onlyOne } from "#core/promises.ts";
import { loadMapper } from "#mapping/load-mapper.ts";
import { mapFile } from "#mapping/map-file.ts";
import { workersOptions } from "#mapping/options.ts";
import { createCountingSink } from "#mapping/segment/memory-sinks.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { createMappingPool } from "#mapping/workers/pool.ts";
import { measure, peakMegabytes } from "./child.ts";
import { writeHalfHours } from "./mapping-data.ts";

export interface WorkAnswer {
  /** Seconds; CPU of this process and of the workers. */
  readonly cpu: number;
  readonly wall: number;
  readonly points: number;
  /** Peak resident memory in megabytes: of this process, and of all workers together. */
  readonly ownPeak: number;
  readonly workersPeak: number;
}

/** The defaults of `push.batch`. */
const LIMITS = { pointsMax: 5000, bytesMax: 4_000_000 };
const [work = "", input = "", output = "", settings = "{}", mapperName = "standard"] = process.argv.slice(2);

/** csv-parse alone, its rows as arrays that nobody keeps. */
async function parseAlone(): Promise<number> {
  let rows = 0;
  const parser = createReadStream(input).pipe(parse());
  parser.on("data", () => {
    rows += 1;
  });
  await once(parser, "end");
  return rows - 1;
}

/**
 * What a reader could give at best that knows neither quotes nor line ends of other systems: a ceiling, and
 * no way to read files.
 */
async function splitAtCommas(): Promise<number> {
  let rows = 0;
  let left = "";
  for await (const chunk of createReadStream(input, { encoding: "utf8", highWaterMark: 64 * 1024 })) {
    const lines = (left + chunk).split("\n");
    left = lines.pop() ?? "";
    for (const line of lines) if (line.split(",").length === 4) rows += 1;
  }
  return rows - 1;
}

/** As `headgate map --summary` does. */
async function summary(): Promise<number> {
  const entry = await createCatalogue([]).find("standard");
  if (entry === null) throw new Error("there is no mapper standard");
  const result = await mapFile({
    inputPath: input,
    fileName: "in.csv",
    filePath: "in.csv",
    mapper: await loadMapper(entry.modulePath, entry.identity.digest),
    settings: {},
    rows: "strict",
    limits: { pointsMax: Number.MAX_SAFE_INTEGER, bytesMax: 16_000_000 },
    sink: createCountingSink(),
    signal: new AbortController().signal,
  });
  if (result.status === "failed") throw new Error(result.reason.message);
  return result.points;
}

interface PlainElement {
  readonly sourceSerialNumber: string;
  readonly mappingConfig: string;
  readonly data: { date: string; value: number }[];
}

/** What somebody writes who needs it once: all in memory, nothing checked. */
async function plainScript(): Promise<number> {
  const groups = new Map<string, PlainElement>();
  let rows = 0;
  const take = (row: Record<string, string>) => {
    const { source_serial_number = "", mapping_config = "", date = "", value } = row;
    const key = `${source_serial_number}|${mapping_config}`;
    let group = groups.get(key);
    if (group === undefined) {
      group = { sourceSerialNumber: source_serial_number, mappingConfig: mapping_config, data: [] };
      groups.set(key, group);
    }
    group.data.push({ date: new Date(date).toISOString(), value: Number(value) });
    rows += 1;
  };
  if (work === "plain-sync") {
    for (const row of parseSync<Record<string, string>>(readFileSync(input), { columns: true })) take(row);
  } else {
    const parser = createReadStream(input).pipe(parse({ columns: true }));
    parser.on("data", take);
    await once(parser, "end");
  }
  writeFileSync(output, JSON.stringify([...groups.values()]));
  return rows;
}

/** The real thing: files through the pool into segments. */
async function throughPool(): Promise<{ run(): Promise<number>; close(): Promise<void> }> {
  const inputs = input.split(",");
  const entry = await createCatalogue([]).find(mapperName);
  if (entry === null) throw new Error(`there is no mapper ${mapperName}`);
  const options = workersOptions.parse({ count: inputs.length, timeLimit: "1h" });
  const pool = createMappingPool(options, [], silentLog);
  const binding = {
    mapper: entry.identity,
    settings: JSON.parse(settings) as Record<string, unknown>,
    rows: "strict" as const,
    limits: LIMITS,
  };
  const map = async (path: string, nth: number) => {
    const fileName = basename(path);
    const job = { runId: `bench-${nth}`, inputPath: path, fileName, filePath: fileName, binding };
    const result = await onlyOne(
      pool.map([{ ...job, segmentPath: `${output}-${nth}.segment` }], new AbortController().signal),
    );
    if (result.status === "failed") throw new Error(result.reason.message);
    return result.points;
  };
  const warm = join(dirname(output), "warm.csv");
  if (mapperName === "half-hourly") writeHalfHours(warm, 48);
  else writeFileSync(warm, "date,variable_id,value\n2026-01-01T00:00:00Z,1,1\n");
  await Promise.all(inputs.map((_, nth) => map(warm, nth)));
  return {
    run: async () => (await Promise.all(inputs.map(map))).reduce((sum, points) => sum + points, 0),
    close: () => pool.close(),
  };
}

/** Seconds of CPU time and megabytes of peak memory of the processes that this one started; Linux tells them. */
function workersUsage(): { cpu: number; peak: number } {
  const usage = { cpu: 0, peak: 0 };
  if (process.platform !== "linux") return usage;
  for (const thread of readdirSync("/proc/self/task"))
    for (const child of readFileSync(`/proc/self/task/${thread}/children`, "utf8").split(" ")) {
      if (child.trim() === "") continue;
      const stat = readFileSync(`/proc/${child}/stat`, "utf8");
      const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 14).map(Number);
      usage.cpu += (user + system) / 100;
      const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child}/status`, "utf8"));
      usage.peak += Number(peak?.[1] ?? 0) / 1000;
    }
  return usage;
}

const pooled = work === "pool" ? await throughPool() : null;
const alone = { parse: parseAlone, split: splitAtCommas, summary }[work] ?? plainScript;
const run = pooled?.run ?? alone;
let points = 0;
const before = workersUsage();
const used = await measure(async () => {
  points = await run();
});
const after = workersUsage();
await pooled?.close();
const answer: WorkAnswer = {
  cpu: used.cpu + after.cpu - before.cpu,
  wall: used.wall,
  points,
  ownPeak: peakMegabytes(),
  workersPeak: after.peak,
};
process.stdout.write(`${JSON.stringify(answer)}\n`);
