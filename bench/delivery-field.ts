/** Files at the drop of a measured gateway, and the lines that the bench prints. */
import { linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GatewayAnswer } from "./delivery-gateway.ts";
import type { SinkCount } from "./delivery-sink.ts";

export function writeFiles(folder: string, files: number, write: (path: string, index: number) => void): void {
  mkdirSync(folder);
  for (let index = 0; index < files; index += 1)
    write(join(folder, `file-${String(index).padStart(5, "0")}.csv`), index);
}

/** The same files again, whatever became of the names that the gateway had. */
export function linkFiles(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to);
  for (const name of readdirSync(from)) linkSync(join(from, name), join(to, name));
}

export async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "headgate-bench-"));
  try {
    await work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What came to the sink since the last question. */
export async function count(url: string): Promise<SinkCount> {
  return (await (await fetch(`${url}/count`)).json()) as SinkCount;
}

export function answerRow(name: string, seen: GatewayAnswer, sinkCpu: number): string {
  const { wall, untilEnd, cpu, workersCpu, peak, peakTogether } = seen;
  return row(name, Number.isNaN(wall) ? "" : wall, untilEnd, cpu, workersCpu, sinkCpu, peak, peakTogether);
}

export function row(name: string, ...cells: readonly (number | string)[]): string {
  const words = cells.map((cell) => (typeof cell === "string" ? cell : cell.toFixed(cell < 100 ? 2 : 0)));
  return name.padEnd(44) + words.map((word) => word.padStart(11)).join("");
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
