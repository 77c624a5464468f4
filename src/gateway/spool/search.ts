/**
 * Finds the row that a stored reading came from. The spool keeps the segment of a run at rest with its row index and
 * its target index, so that a search opens few segments.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { systemCode, wordsOf } from "#core/errors.ts";
import type { RowIndexLine } from "#mapping/segment/layout.ts";
import { openKept } from "./kept-files.ts";
import { KEPT_ENDS } from "./paths.ts";
import { bodiesWith } from "./placed-readings.ts";
import { isDamage, isWhole, rowsOf } from "./row-index.ts";
import { type FilePart, keptSegmentFiles, segmentFiles } from "./segment-files.ts";
import { isAbout, type ReadingQuery } from "./target-index.ts";

export interface FoundReading {
  readonly runId: string;
  /** Of the batch as it was mapped; a split batch has children. */
  readonly sequence: string;
  /** Among the readings of that batch, from 0. */
  readonly position: number;
  readonly value: number;
  readonly version: string | null;
  /** Line or row; null when it is not known. */
  readonly row: number | null;
  readonly sheet: string | null;
}

interface Element extends Readonly<Record<string, unknown>> {
  readonly data: readonly { readonly date: string; readonly value: number; readonly version?: string }[];
}

/** Receives what is damaged of a run, in words. */
export type OnDamage = (words: string) => void;

/** Readings of a target at a date, of the newest run first. Memory holds one batch. */
export async function* findReadings(
  spool: string,
  query: ReadingQuery,
  onDamage: OnDamage = () => undefined,
): AsyncGenerator<FoundReading> {
  for (const { runId, path, isKept } of (await places(spool)).toSorted((a, b) => (a.runId < b.runId ? 1 : -1))) {
    const { segment, rows, about } = isKept ? keptSegmentFiles(path) : segmentFiles(path);
    if (about === null || segment === null || rows === null) continue;
    try {
      if (await isAbout(about, query)) yield* readingsOf(runId, segment, rows, query, onDamage);
    } catch (thrown) {
      if (isDamage(thrown)) onDamage(`the segment of run ${runId} is damaged: ${wordsOf(thrown)}`);
      // Pruned in the meantime.
      else if (systemCode(thrown) !== "ENOENT") throw thrown;
    }
  }
}

interface Place {
  readonly runId: string;
  /** Of the segment; for a kept segment without the end of its name. */
  readonly path: string;
  readonly isKept: boolean;
}

/** Runs with a target index. A run that comes to rest meanwhile may be in both places; the kept one counts. */
async function places(spool: string): Promise<readonly Place[]> {
  const found = new Map<string, Place>();
  const { segment, about } = KEPT_ENDS;
  for (const [folder, isKept] of [
    ["segments", false],
    ["kept", true],
  ] as const)
    for (const name of await readdir(join(spool, folder))) {
      if (!name.endsWith(about.plain) && !name.endsWith(segment.plain)) continue;
      const runId = name.split(".")[0] ?? name;
      found.set(runId, { runId, path: join(spool, folder, isKept ? runId : `${runId}${segment.plain}`), isKept });
    }
  return [...found.values()];
}

async function* readingsOf(
  runId: string,
  segment: string,
  rows: FilePart,
  query: ReadingQuery,
  onDamage: OnDamage,
): AsyncGenerator<FoundReading> {
  if (await isWhole(rows)) {
    for await (const [line, body] of bodiesWith(rows, segment))
      yield* inBatch(runId, line, JSON.parse(body.toString("utf8")) as readonly Element[], query);
    return;
  }
  onDamage(`the row index of run ${runId} is damaged: readings of the run may be missing, and have no rows`);
  for await (const line of rowsOf(rows)) {
    const elements = await elementsAt(segment, line);
    if (elements !== null) yield* inBatch(runId, { ...line, rows: [], sheets: {} }, elements, query);
  }
}

/** Bytes of a batch in a damaged index that is read. */
const BODY_MAX = 64 * 1024 * 1024;

/** Null when there is no batch at the place. */
async function elementsAt(segment: string, { offset, length }: RowIndexLine): Promise<readonly Element[] | null> {
  if (!(offset >= 0 && length > 0 && length <= BODY_MAX)) return null;
  const body = Buffer.concat(await openKept(segment, { offset, length }).toArray());
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return Array.isArray(value) ? (value as readonly Element[]) : null;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
    return null;
  }
}

function* inBatch(
  runId: string,
  { sequence, rows, sheetOf, sheets }: RowIndexLine,
  elements: readonly Element[],
  { fields, atMs }: ReadingQuery,
): Generator<FoundReading> {
  let position = -1;
  for (const element of elements) {
    const isMeant = Object.entries(fields).every(([name, value]) => element[name] === value);
    for (const { date, value, version } of element.data) {
      position += 1;
      if (!isMeant || Date.parse(date) !== atMs) continue;
      const row = rows[position] ?? 0;
      const sheet = sheets?.[String(sheetOf?.[position])] ?? "";
      yield {
        runId,
        sequence,
        position,
        value,
        version: version ?? null,
        row: row === 0 ? null : row,
        sheet: sheet === "" ? null : sheet,
      };
    }
  }
}
