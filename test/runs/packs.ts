/** Runs that share one file in the spool, as small files do that were taken in together; written by hand. */
import { hash } from "node:crypto";
import { linkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packEndText, trailerText } from "../../src/mapping/segment-layout.ts";
import type { BatchSlice, PushElement, TargetFacts } from "../../src/model.ts";

export interface PackedFile {
  readonly runId: string;
  readonly input: string;
  /** Elements of each batch. */
  readonly batches: readonly (readonly PushElement[])[];
}

export interface WrittenRun {
  readonly slices: readonly BatchSlice[];
  readonly facts: readonly TargetFacts[];
}

/** In `segments` of a spool. Rows are counted from 2. */
export function writePack(spool: string, files: readonly PackedFile[]): ReadonlyMap<string, WrittenRun> {
  let text = files.map(({ input }) => input).join("");
  const footers = new Map<string, number>();
  const written = new Map<string, WrittenRun>();
  let inputAt = 0;
  for (const { runId, input, batches } of files) {
    let row = 2;
    let rows = "";
    const slices = batches.map((elements, at) => {
      const bytes = Buffer.from(JSON.stringify(elements));
      const points = elements.reduce((sum, { data }) => sum + data.length, 0);
      const sequence = String(at + 1);
      const slice = { sequence, offset: Buffer.byteLength(text), length: bytes.length, points };
      text += bytes.toString();
      rows += `${JSON.stringify({ sequence, length: bytes.length, rows: Array.from({ length: points }, () => row++) })}\n`;
      return { ...slice, digest: hash("sha256", bytes) };
    });
    const facts = batches.flat().map(factsOf);
    const dates = batches
      .flat()
      .flatMap(({ data }) => data.map(({ date }) => date))
      .toSorted();
    const about = { from: dates[0] ?? "", to: dates.at(-1) ?? "", targets: facts };
    const length = Buffer.byteLength(input);
    const of = { runId, input: { offset: inputAt, length } };
    const trailer = trailerText(Buffer.byteLength(text), rows, about, of);
    inputAt += length;
    footers.set(runId, trailer.footerAt);
    text += trailer.text;
    written.set(runId, { slices, facts });
  }
  const [first, ...others] = files.map(({ runId }) => join(spool, "segments", `${runId}.segment`));
  writeFileSync(first ?? "", `${text}${packEndText(footers)}`);
  for (const other of others) linkSync(first ?? "", other);
  return written;
}

function factsOf({ data, tags: _tags, version: _version, ...target }: PushElement): TargetFacts {
  const times = data.map(({ date }) => Date.parse(date));
  const [fromMs, toMs] = [Math.min(...times), Math.max(...times)];
  return {
    target: target as TargetFacts["target"],
    points: data.length,
    fromMs,
    toMs,
    untagged: data.length,
  };
}

/** Elements of so many readings, by the hour, of different values for different names. */
export function elementOf(serial: string, count: number, first = 0): PushElement {
  const data = Array.from({ length: count }, (_, at) => ({
    date: new Date(Date.UTC(2026, 2, 1) + (first + at) * 3_600_000).toISOString(),
    value: first + at + 0.25,
  }));
  return { sourceSerialNumber: serial, mappingConfig: "kWh", data };
}
