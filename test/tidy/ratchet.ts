/** Compares the measures of today with the highest counts that are permitted, and lowers these: `npm run ratchet`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Counts, countsOf, MEASURES, ROOT } from "./measures.ts";

const PATH = "test/tidy/ratchet.json";

export type Ratchet = Readonly<Record<string, Counts>>;

export interface Change {
  readonly file: string;
  readonly permitted: number;
  readonly count: number;
}

export function readRatchet(): Ratchet {
  return JSON.parse(readFileSync(join(ROOT, PATH), "utf8")) as Ratchet;
}

/** A file without an entry may have what files that are gone were permitted: so that files can be moved and split. */
export function compare(permitted: Counts, counts: Counts): { readonly grown: Change[]; readonly shrunk: Change[] } {
  const files = [...new Set([...Object.keys(permitted), ...Object.keys(counts)])].sort();
  const changes = files
    .map((file) => ({ file, permitted: permitted[file] ?? 0, count: counts[file] ?? 0 }))
    .filter((one) => one.count !== one.permitted);
  const shrunk = changes.filter((one) => one.count < one.permitted);
  const grown = changes.filter((one) => one.count > one.permitted);
  const freed = sum(shrunk.filter((one) => one.count === 0).map((one) => one.permitted));
  const moved = grown.filter((one) => one.permitted === 0);
  const isMoved = sum(moved.map((one) => one.count)) <= freed;
  return { grown: isMoved ? grown.filter((one) => one.permitted > 0) : grown, shrunk };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function update(): void {
  const ratchet = readRatchet();
  const measured = MEASURES.map((measure) => [measure.name, countsOf(measure)] as const);
  const grown = measured.flatMap(([name, counts]) =>
    compare(ratchet[name] ?? {}, counts).grown.map((one) => `${name}: ${one.file} ${one.permitted} → ${one.count}`),
  );
  if (grown.length > 0) throw new Error(`mend these first:\n${grown.join("\n")}`);
  writeFileSync(join(ROOT, PATH), `${JSON.stringify(Object.fromEntries(measured), null, 2)}\n`);
}

if (import.meta.main) update();
