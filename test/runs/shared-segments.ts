/** Segments of several runs with readings, as they are written of a list of small files. */
import type { BatchSlice, PushElement, TargetFacts } from "#gateway/model.ts";
import { spoolPlaces } from "#gateway/spool/paths.ts";
import { laySegment, sealedRows } from "../spool/segment-layout.ts";

export interface SharedFile {
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
export function writeShared(spool: string, files: readonly SharedFile[]): ReadonlyMap<string, WrittenRun> {
  const runs = files.map(({ runId, input, batches }) => {
    const index = (slices: readonly BatchSlice[]) => {
      let row = 2;
      return sealedRows(
        slices.map(({ sequence, offset, length }, at) => {
          const rows = Array.from({ length: pointsOf(batches[at] ?? []) }, () => row++);
          return { sequence, offset, length, rows };
        }),
      );
    };
    const dates = batches
      .flat()
      .flatMap(({ data }) => data.map(({ date }) => date))
      .toSorted();
    const targets = batches.flat().map(factsOf);
    return {
      runId,
      input: Buffer.from(input),
      batches: batches.map((elements) => Buffer.from(JSON.stringify(elements))),
      rows: index,
      about: { from: dates[0] ?? "", to: dates.at(-1) ?? "", targets },
    };
  });
  const laid = laySegment({ segmentPath: spoolPlaces(spool).segment }, runs);
  return new Map(
    files.map(({ runId, batches }, at) => {
      const slices = laid.get(runId)?.slices ?? [];
      const counted = slices.map((slice, nth) => ({ ...slice, points: pointsOf(batches[nth] ?? []) }));
      return [runId, { slices: counted, facts: runs[at]?.about.targets ?? [] }];
    }),
  );
}

function pointsOf(elements: readonly PushElement[]): number {
  return elements.reduce((sum, { data }) => sum + data.length, 0);
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
