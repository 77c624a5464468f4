/**
 * From a stored reading back to the row that it came from. The spool keeps, with the input of a run at rest, the batches and the row
 * index as they were mapped, and what they are about, so that a search opens few of them.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Bytes } from "../segment/payloads.ts";
import { systemCode } from "../support/errors.ts";
import { openKept } from "./kept-files.ts";
import { ABOUT, KEPT_ENDS } from "./paths.ts";
import { beginningOf, type FilePart, keptSegmentFiles, linesOf, segmentFiles } from "./segment-files.ts";
import { type AboutQuery, isAbout } from "./target-index.ts";

export type ReadingQuery = AboutQuery;

export interface FoundReading {
  readonly runId: string;
  /** Of the batch as it was mapped; a batch that was split later has children. */
  readonly sequence: string;
  /** Among the readings of that batch, from 0. */
  readonly position: number;
  readonly value: number;
  readonly version: string | null;
  /** Line or row; null when the mapper did not tell. */
  readonly row: number | null;
  readonly sheet: string | null;
}

interface RowLine {
  readonly sequence: string;
  /** Bytes of the batch. */
  readonly length: number;
  /** Where the batch stands, where it does not follow on the one before; see `own-segments.ts`. */
  readonly offset?: number;
  readonly rows: readonly number[];
  readonly sheetOf?: readonly number[];
  readonly sheets?: Readonly<Record<string, string>>;
}

interface Element extends Readonly<Record<string, unknown>> {
  readonly data: readonly { readonly date: string; readonly value: number; readonly version?: string }[];
}

/** Readings of a target at a date, of the newest run first. Memory holds one batch. */
export async function* findReadings(spool: string, query: ReadingQuery): AsyncGenerator<FoundReading> {
  for (const { runId, path, isKept } of (await places(spool)).toSorted((a, b) =>
    a.runId < b.runId ? 1 : -1,
  )) {
    const { segment, rows, about } = isKept ? keptSegmentFiles(path) : segmentFiles(path);
    if (about === null || !(await isAbout(about, query))) continue;
    if (segment !== null && rows !== null) yield* readingsOf(runId, segment, rows, query);
  }
}

interface Place {
  readonly runId: string;
  /** Of the segment; of a kept one without its end. */
  readonly path: string;
  readonly isKept: boolean;
}

/** Runs of which it is told, beside the segment or in it, what they are about. One that comes to rest meanwhile may be in both places; the kept one counts. */
async function places(spool: string): Promise<readonly Place[]> {
  const found = new Map<string, Place>();
  const { plain } = KEPT_ENDS.segment;
  for (const [folder, isKept] of [
    ["segments", false],
    ["kept", true],
  ] as const)
    for (const name of await readdir(join(spool, folder))) {
      if (!name.endsWith(ABOUT) && !name.endsWith(plain)) continue;
      const runId = name.split(".")[0] ?? name;
      found.set(runId, { runId, path: join(spool, folder, isKept ? runId : `${runId}${plain}`), isKept });
    }
  return [...found.values()];
}

async function* readingsOf(
  runId: string,
  segment: string,
  rows: FilePart,
  query: ReadingQuery,
): AsyncGenerator<FoundReading> {
  let bytes: Bytes | undefined;
  try {
    let at = await beginningOf(rows);
    // A line of the index for each batch, in the same order.
    for await (const line of linesOf(rows)) {
      const facts = JSON.parse(line) as RowLine;
      const offset = facts.offset ?? at;
      if (bytes === undefined)
        bytes = new Bytes(openKept(segment, { offset, length: Number.POSITIVE_INFINITY }));
      else await bytes.skip(offset - at);
      at = offset + facts.length;
      yield* inBatch(runId, facts, await bytes.take(facts.length), query);
    }
  } catch (thrown) {
    // Pruned while we looked.
    if (systemCode(thrown) !== "ENOENT") throw thrown;
  } finally {
    bytes?.close();
  }
}

function* inBatch(
  runId: string,
  { sequence, rows, sheetOf, sheets }: RowLine,
  body: Buffer,
  { fields, atMs }: ReadingQuery,
): Generator<FoundReading> {
  const elements = JSON.parse(body.toString("utf8")) as readonly Element[];
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
