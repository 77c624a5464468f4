/**
 * What mapping costs beside its baselines: csv-parse alone (the ceiling) and a plain script (the thing to
 * beat). Each piece runs in a process of its own; repetitions are interleaved, and the best of each counts,
 * since other work on the machine only adds.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { writeDailyCsv, writeHalfHours, writeStandardCsv, writeStandardWorkbook, ZONE } from "./mapping-data.ts";
import type { WorkAnswer } from "./mapping-work.ts";

const ROWS = Number(process.env["HEADGATE_BENCH_ROWS"] ?? 1_000_000);
const ROUNDS = Number(process.env["HEADGATE_BENCH_ROUNDS"] ?? 3);
const WORKBOOK_ROWS = ROWS / 5;

interface Piece {
  readonly name: string;
  readonly work: "parse" | "plain" | "plain-sync" | "split" | "pool" | "summary";
  readonly inputs: readonly string[];
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly mapper?: string;
}

export async function benchMapping(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  const at = (name: string) => join(folder, name);
  try {
    writeStandardCsv(at("utc.csv"), { rows: ROWS });
    writeStandardCsv(at("local.csv"), { rows: ROWS, dates: "local" });
    writeDailyCsv(at("daily.csv"), ROWS);
    writeHalfHours(at("half-hours.csv"), ROWS);
    print(`mapping: ${ROWS} rows of 100 series, ${megabytes(at("utc.csv"))} MB; best of ${ROUNDS} rounds, seconds`);
    const local = { timeZone: ZONE, dst: "byOrder" };
    const utc = { work: "pool", inputs: [at("utc.csv")] } as const;
    const table = await runRounds(folder, [
      { name: "csv-parse alone", work: "parse", inputs: utc.inputs },
      { name: "split at commas", work: "split", inputs: utc.inputs },
      { name: "plain script, streaming", work: "plain", inputs: utc.inputs },
      { name: "plain script, all at once", work: "plain-sync", inputs: utc.inputs },
      { name: "standard, one worker", ...utc },
      { name: "standard, local time", work: "pool", inputs: [at("local.csv")], settings: local },
      { name: "standard, a reading a day", work: "pool", inputs: [at("daily.csv")] },
      {
        ...{ name: "half-hourly, with statuses", work: "pool", inputs: [at("half-hours.csv")] },
        ...{ mapper: "half-hourly", settings: { timeZone: "UTC" } },
      },
      { name: "standard, two workers", work: "pool", inputs: [at("utc.csv"), at("utc.csv")] },
    ]);
    printRatios(table);
    await large(folder, at("large.csv"));
    await workbook(folder, at("book.xlsx"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function runRounds(folder: string, pieces: readonly Piece[]): Promise<ReadonlyMap<string, WorkAnswer>> {
  const best = new Map<string, WorkAnswer>();
  for (let round = 0; round < ROUNDS; round += 1)
    for (const piece of pieces) {
      const answer = await runPiece(folder, piece);
      const before = best.get(piece.name) ?? answer;
      best.set(piece.name, {
        points: answer.points,
        cpu: Math.min(before.cpu, answer.cpu),
        wall: Math.min(before.wall, answer.wall),
        ownPeak: Math.max(before.ownPeak, answer.ownPeak),
        workersPeak: Math.max(before.workersPeak, answer.workersPeak),
      });
    }
  print(row("", "wall", "CPU", "rows/s", "peak MB", "workers MB"));
  for (const [name, answer] of best) print(answerRow(name, answer));
  return best;
}

function printRatios(table: ReadonlyMap<string, WorkAnswer>): void {
  const of = (name: string) => table.get(name) ?? { cpu: Number.NaN, wall: Number.NaN };
  const plain = of("plain script, streaming");
  const once = of("plain script, all at once");
  const one = of("standard, one worker");
  const faster = { cpu: Math.min(plain.cpu, once.cpu), wall: Math.min(plain.wall, once.wall) };
  print(
    `standard beside the faster plain script: ${ratio(faster.wall, one.wall)} times the rows ` +
      `a second (by CPU ${ratio(faster.cpu, one.cpu)}); at least 1 is wanted`,
  );
  const two = of("standard, two workers");
  print(
    `two workers beside one: ${ratio(2 * one.wall, two.wall)} times the rows a second, ` +
      `${ratio(two.cpu, 2 * one.cpu)} times the CPU a row; at least 1.5 is wanted, which takes ` +
      "two idle cores",
  );
  const local = of("standard, local time");
  print(
    `local time beside UTC: ${ratio(local.cpu, one.cpu)} times the CPU (wall ` +
      `${ratio(local.wall, one.wall)}); at most 1.25 is wanted`,
  );
  print(
    `csv-parse is ${ratio(of("csv-parse alone").cpu, one.cpu)} of the CPU; rows split at ` +
      `commas, without quotes: ${ratio(of("split at commas").cpu, one.cpu)}`,
  );
}

/** Ten times the rows, a tenth of them corrections of rows that came millions of rows before. */
async function large(folder: string, path: string): Promise<void> {
  print("");
  print(row("memory", "wall", "CPU", "rows/s", "peak MB", "workers MB"));
  const peaks: number[] = [];
  for (const rows of [ROWS, 10 * ROWS]) {
    writeStandardCsv(path, { rows, repeats: true });
    const work = await runPiece(folder, { name: "", work: "pool", inputs: [path, path] });
    print(answerRow(`two workers, ${rows} rows each`, work));
    peaks.push(work.workersPeak);
    const summary = await runPiece(folder, { name: "", work: "summary", inputs: [path] });
    print(answerRow(`map --summary, ${rows} rows`, summary));
  }
  print(
    `ten times the rows: ${ratio(peaks[1] ?? 0, peaks[0] ?? 0)} times the memory of two ` +
      "workers; at most 1.2 and 300 MB are wanted",
  );
}

async function workbook(folder: string, path: string): Promise<void> {
  await writeStandardWorkbook(path, WORKBOOK_ROWS);
  const settings = { timeZone: "UTC" };
  const answer = await runPiece(folder, { name: "", work: "pool", inputs: [path], settings });
  print(answerRow(`workbook of ${WORKBOOK_ROWS} rows`, answer));
  print("at most 400 MB are wanted");
}

async function runPiece(
  folder: string,
  { work, inputs, settings = {}, mapper = "standard" }: Piece,
): Promise<WorkAnswer> {
  const args = [work, inputs.join(","), join(folder, "out"), JSON.stringify(settings), mapper];
  const child = spawn(process.execPath, [join(import.meta.dirname, "mapping-work.ts"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const answer = await text(child.stdout);
  const [code] = (await exited) as [number | null];
  if (code !== 0) throw new Error(`${work} ended with ${code}`);
  return JSON.parse(answer) as WorkAnswer;
}

function answerRow(name: string, { wall, cpu, points, ownPeak, workersPeak }: WorkAnswer): string {
  const memory = [ownPeak.toFixed(0), workersPeak === 0 ? "" : workersPeak.toFixed(0)];
  return row(name, wall.toFixed(2), cpu.toFixed(2), (points / wall).toFixed(0), ...memory);
}

function row(name: string, ...cells: readonly string[]): string {
  return name.padEnd(34) + cells.map((cell) => cell.padStart(11)).join("");
}

function ratio(one: number, other: number): string {
  return (one / other).toFixed(2);
}

function megabytes(path: string): string {
  return (statSync(path).size / 1e6).toFixed(0);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
