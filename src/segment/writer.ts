/**
 * Where batches go: into a segment (`<path>`, with the row index `<path>.rows` beside it), or into memory for `headgate map`; those of small files
 * go into one file together (`pack-writer.ts`). A segment has its name only when it is complete and synced.
 */
import { hash, randomUUID } from "node:crypto";
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { BatchSlice } from "../model.ts";
import { syncDirectory, syncFile } from "../support/durable.ts";
import { systemCode } from "../support/errors.ts";
import { type MappedContents, ROWS } from "./layout.ts";

/** Valid until the next one is made: its memory is used again. */
export interface BatchBody {
  readonly bytes: Buffer;
  readonly points: number;
  /** Line or row of each reading, in the order of the body; 0 when unknown. */
  readonly rows: Uint32Array;
  /** Index of the sheet of each reading, or null when there are no sheets. */
  readonly sheets: Uint32Array | null;
}

export interface BatchSink {
  /** Where readings may be kept meanwhile, in a file that loses its name at once. */
  readonly spillPath: string;
  /** Takes one batch, in order. Its memory is used again when the promise is fulfilled. */
  append(body: BatchBody, sheetName: (index: number) => string | undefined): Promise<BatchSlice>;
  /** All batches are in; this is what they hold. */
  publish(mapped: MappedContents): Promise<void>;
  /** Mapping failed: nothing stays. */
  discard(): Promise<void>;
}

/** One line of a row index: which rows the readings of a batch came from, in the order of its body. 0 is unknown. */
export interface RowIndexLine {
  readonly sequence: string;
  /** Bytes of the batch. */
  readonly length: number;
  readonly rows: readonly number[];
  /** Name of the sheet of each reading by position in `sheets`; absent for files without sheets. */
  readonly sheetOf?: readonly number[];
  readonly sheets?: Readonly<Record<number, string>>;
}

const ROWS_PART = `${ROWS}.part`;

/** Tells where each batch lies, and its digest. */
export class SliceCounter {
  #offset: number;
  #count = 0;

  /** Where the first begins. */
  constructor(offset = 0) {
    this.#offset = offset;
  }

  next(body: BatchBody): BatchSlice {
    this.#count += 1;
    const slice = {
      sequence: String(this.#count),
      offset: this.#offset,
      length: body.bytes.length,
      points: body.points,
      digest: hash("sha256", body.bytes),
    };
    this.#offset += body.bytes.length;
    return slice;
  }
}

/** Written as `<path>.part` and `<path>.rows.part` until it is complete. No batches: no files. */
export function createSegment(path: string): BatchSink {
  const part = `${path}.part`;
  const sink = createSegmentPart(part);
  return {
    ...sink,
    async publish(mapped) {
      await sink.publish(mapped);
      await publishSegment(part, path);
    },
  };
}

/**
 * A segment that somebody else publishes: `<part>`, and the row index `<part>.rows.part` beside it. Written without a detour over the
 * event loop, since the process of a mapper has nothing else to do.
 */
export function createSegmentPart(part: string): BatchSink {
  const counter = new SliceCounter();
  let segment: number | undefined;
  let rows: number | undefined;

  function close(): void {
    for (const file of [segment, rows]) if (file !== undefined) closeSync(file);
    segment = undefined;
    rows = undefined;
  }

  return {
    // The end of the name is the one that the spool sweeps after a crash.
    spillPath: `${part}.spill.part`,
    async append(body, sheetName) {
      segment ??= create(part);
      rows ??= create(`${part}${ROWS_PART}`);
      const slice = counter.next(body);
      writeAll(segment, body.bytes);
      writeAll(rows, Buffer.from(`${rowIndexLine(slice, body, sheetName)}\n`));
      return slice;
    },
    async publish() {
      close();
    },
    async discard() {
      close();
      await discardPart(part);
    },
  };
}

function create(path: string): number {
  try {
    return openSync(path, "w");
  } catch (thrown) {
    if (systemCode(thrown) !== "ENOENT") throw thrown;
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, "w");
  }
}

/** Syncs a part with its rows beside it and gives it its name, the rows first. Without a part there were no batches, and there is no segment. */
export async function publishSegment(part: string, path: string): Promise<void> {
  const rowsPart = `${part}${ROWS_PART}`;
  try {
    await Promise.all([syncFile(part), syncFile(rowsPart)]);
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return;
    throw thrown;
  }
  await rename(rowsPart, `${path}${ROWS}`);
  await rename(part, path);
  await syncDirectory(dirname(path));
}

/** Removes what somebody left who could not discard it. */
export async function discardPart(part: string): Promise<void> {
  await rm(part, { force: true });
  await rm(`${part}${ROWS_PART}`, { force: true });
}

/** Keeps nothing: only the slices are told, for a summary. */
export function createCountingSink(): BatchSink {
  const counter = new SliceCounter();
  return {
    spillPath: temporaryPath(),
    append: (body) => Promise.resolve(counter.next(body)),
    publish: () => Promise.resolve(),
    discard: () => Promise.resolve(),
  };
}

/** Keeps the bodies, for a dry run. */
export function createMemorySink(): BatchSink & { readonly bodies: readonly Buffer[] } {
  const counter = new SliceCounter();
  const bodies: Buffer[] = [];
  return {
    bodies,
    spillPath: temporaryPath(),
    append(body) {
      bodies.push(Buffer.from(body.bytes));
      return Promise.resolve(counter.next(body));
    },
    publish: () => Promise.resolve(),
    discard: () => Promise.resolve(void bodies.splice(0)),
  };
}

function temporaryPath(): string {
  return join(tmpdir(), `headgate-${randomUUID()}.spill`);
}

function writeAll(file: number, bytes: Buffer): void {
  for (let written = 0; written < bytes.length; )
    written += writeSync(file, bytes, written, bytes.length - written);
}

/** JSON of a `RowIndexLine`. */
export function rowIndexLine(
  { sequence, length }: BatchSlice,
  { rows, sheets }: BatchBody,
  sheetName: (index: number) => string | undefined,
): string {
  const start = `{"sequence":${JSON.stringify(sequence)},"length":${length},"rows":[${rows.join(",")}]`;
  if (sheets === null) return `${start}}`;
  const names = Object.fromEntries([...new Set(sheets)].map((sheet) => [sheet, sheetName(sheet) ?? ""]));
  return `${start},"sheetOf":[${sheets.join(",")}],"sheets":${JSON.stringify(names)}}`;
}
