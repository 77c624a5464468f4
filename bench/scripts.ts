/**
 * The gateway beside scripts that forget: lines split by hand in JavaScript, csv and requests in Python. Everything
 * counts from the start of the process to the last answer of the service: start, poll, mapping, delivery. The scripts
 * write nothing and send nothing again; the gateway is the real command. In turns, and by the medians.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startChild } from "./child.ts";
import { count, inFolder, linkFiles, print, row, writeFiles } from "./delivery-field.ts";
import { PROGRAM, runGateway, watchProcesses } from "./delivery-gateway.ts";
import type { SinkAnswer } from "./delivery-sink.ts";
import { writeMeterDay, writeSeriesCsv, writeWideCsv } from "./mapping-data.ts";
import { medianOf } from "./median.ts";

const ROWS = Number(process.env["HEADGATE_BENCH_ROWS"] ?? 1_000_000);
const FILES = Number(process.env["HEADGATE_BENCH_FILES"] ?? 2_000);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 3);
/** Of `one`, `four`, `ten`, `small`, `wide` and `start`. */
const PARTS = process.env["HEADGATE_BENCH_PARTS"]?.split(",");
const WIDE_ROWS = 1_395;
const WIDE_SERIES = 1_578;
const LARGER = 10;
const ZONE = { mapper: "standard", metadata: { timeZone: "UTC" } };
const WIDE = {
  mapper: "delimited",
  metadata: {
    timeZone: "UTC",
    date: { column: "date" },
    target: { sourceSerialNumber: "{column}", mappingConfig: "kWh" },
    values: [{ match: "^M-" }],
  },
};

interface Shape {
  readonly name: string;
  readonly files: number;
  /** Times as fast as the script. */
  readonly wanted: number;
  readonly trigger: Readonly<Record<string, unknown>>;
  write(path: string, index: number): void;
  /** Null: the gateway alone, for its memory. */
  readonly script: ((url: string, files: string) => readonly string[]) | null;
}

interface Seen {
  /** Milliseconds from the start of the process to the last answer, and from there to its end. */
  readonly toLast: number;
  readonly afterLast: number;
  readonly cpu: number;
  /** Megabytes of all processes at one time: resident, and with shared pages divided among them. */
  readonly peak: number;
  readonly proportional: number;
}

const hand = (shape: string) => (url: string, files: string) =>
  [process.execPath, join(import.meta.dirname, "script-hand.ts"), shape, url, join(files, "file-00000.csv")] as const;
const python = (url: string, files: string) =>
  ["python3", join(import.meta.dirname, "script_csv.py"), url, files] as const;
/** Of Debian: `python3-requests`. */
const hasRequests = () => spawnSync("python3", ["-c", "import requests"]).status === 0;

export async function benchScripts(): Promise<void> {
  const sink = await startChild<SinkAnswer>(join(import.meta.dirname, "delivery-sink.ts"), []);
  const url = `${sink.answer.url}/uncounted`;
  const long = { trigger: ZONE, wanted: 1 };
  const write = (path: string) => writeSeriesCsv(path, ROWS);
  const shapes: Readonly<Record<string, Shape>> = {
    one: { ...long, name: `1 file of ${ROWS} rows`, files: 1, write, script: hand("long") },
    four: { ...long, name: `4 files of ${ROWS} rows`, files: 4, write, script: null },
    ten: {
      ...long,
      name: `1 file of ${LARGER * ROWS} rows`,
      files: 1,
      write: (path) => writeSeriesCsv(path, LARGER * ROWS),
      script: null,
    },
    small: {
      ...long,
      name: `${FILES} files of 96 rows`,
      files: FILES,
      write: writeMeterDay,
      script: hasRequests() ? python : null,
    },
    wide: {
      name: `1 file of ${WIDE_ROWS} rows in ${WIDE_SERIES} columns`,
      files: 1,
      wanted: 1,
      trigger: WIDE,
      write: (path) => writeWideCsv(path, WIDE_ROWS, WIDE_SERIES),
      script: hand("wide"),
    },
  };
  try {
    print(`scripts that forget: ${ROUNDS} rounds; milliseconds from the start of the process; megabytes`);
    print(row("", "to last", "after last", "CPU s", "peak", "pages once"));
    for (const [name, shape] of Object.entries(shapes)) if (isWanted(name)) await beside(url, shape);
  } finally {
    await sink.stop();
  }
  if (isWanted("start")) await starts();
}

function isWanted(part: string): boolean {
  return PARTS === undefined || PARTS.includes(part);
}

async function beside(url: string, shape: Shape): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    writeFiles(files, shape.files, shape.write);
    const script: number[] = [];
    const gateway: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      if (shape.script !== null) {
        const seen = await runScript(url, shape.script(url, files));
        script.push(seen.toLast);
        print(seenRow(`${shape.name}, script`, seen));
      }
      const seen = await throughGateway(url, folder, files, shape);
      gateway.push(seen.toLast);
      print(seenRow(`${shape.name}, gateway`, seen));
    }
    if (script.length > 0)
      print(
        `${shape.name}: ${(medianOf(script) / medianOf(gateway)).toFixed(2)} times as fast as the script; ` +
          `at least ${shape.wanted} is wanted`,
      );
  });
}

async function runScript(url: string, words: readonly string[]): Promise<Seen> {
  const origin = new URL(url).origin;
  await count(origin);
  const [program = "", ...args] = words;
  const spawnedMs = Date.now();
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
  const said = text(child.stderr);
  const watched = watchProcesses(child, () => {});
  const [code] = (await once(child, "exit")) as [number | null];
  clearInterval(watched.timer);
  if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${await said}`);
  const { lastMs } = await count(origin);
  return {
    toLast: lastMs - spawnedMs,
    afterLast: Date.now() - lastMs,
    cpu: watched.seen.cpu,
    peak: watched.seen.peakTogether,
    proportional: watched.seen.peakProportional,
  };
}

async function throughGateway(url: string, folder: string, files: string, shape: Shape): Promise<Seen> {
  const round = mkdtempSync(join(folder, "round-"));
  linkFiles(files, join(round, "drop"));
  const origin = new URL(url).origin;
  await count(origin);
  const claims = [{ filterType: "EndsWith", value: ".csv" }];
  const triggers = [{ name: "bench", fileNamePatternMatches: claims, guard: "push", ...shape.trigger }];
  const seen = await runGateway({ folder: round, url, sections: { triggers } });
  if (seen.runs["accepted"] !== shape.files) throw new Error(`not all arrived: ${JSON.stringify(seen)}`);
  const { lastMs } = await count(origin);
  const { spawnedMs, endedMs, cpu, workersCpu, peakTogether: peak, peakProportional: proportional } = seen;
  return { toLast: lastMs - spawnedMs, afterLast: endedMs - lastMs, cpu: cpu + workersCpu, peak, proportional };
}

/** What a newcomer types first, and the start of the daemon, beside a Node that does nothing. */
async function starts(): Promise<void> {
  await inFolder(async (folder) => {
    const files = join(folder, "files");
    writeFiles(files, 1, writeMeterDay);
    const file = join(files, "file-00000.csv");
    const round = mkdtempSync(join(folder, "round-"));
    linkFiles(files, join(round, "drop"));
    const { startedMs, spawnedMs } = await runGateway({ folder: round, url: "http://127.0.0.1:9", stopAfterMs: 500 });
    const config = ["-c", join(round, "state/gateway.yaml")];
    print("");
    print(row("start, milliseconds, median", "wall"));
    const bare = await startOf(["-e", "0"], folder);
    print(row("node alone", bare));
    const commands = {
      "--help": [],
      map: [file, "-m", "standard"],
      trace: ["file-00000.csv", ...config],
      runs: config,
    };
    for (const [command, words] of Object.entries(commands))
      print(row(`headgate ${command}`, await startOf([PROGRAM, command, ...words], folder)));
    print(row("headgate gateway, to its first poll", startedMs - spawnedMs));
  });
}

/** In a folder without mappers: those of a checkout would not be those that the package comes with. */
async function startOf(args: readonly string[], cwd: string): Promise<number> {
  const walls: number[] = [];
  // The first run compiles.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const from = performance.now();
    const child = spawn(process.execPath, args, { cwd, stdio: "ignore" });
    await once(child, "exit");
    if (round > 0) walls.push(performance.now() - from);
  }
  return medianOf(walls);
}

function seenRow(name: string, { toLast, afterLast, cpu, peak, proportional }: Seen): string {
  return row(name, toLast, afterLast, cpu, peak, proportional);
}
