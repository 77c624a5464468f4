/** Writes segments (`layout.ts`), of one run or of several, one after another, in the thread of the caller. */
import { hash } from "node:crypto";
import { closeSync, ftruncateSync, openSync, write } from "node:fs";
import { promisify } from "node:util";
import { resultOf } from "#core/promises.ts";
import type { BatchSlice } from "../model.ts";
import {
  aboutLines,
  aboutOf,
  endText,
  footerText,
  type MappedContents,
  ROWS_PART,
  runOf,
  type SegmentRun,
} from "./layout.ts";
import { discardPart, publishSegment } from "./publish.ts";
import { create, RowIndexPart, rowIndexLine, writeAll } from "./row-index-part.ts";

/** Valid until the next body is made: its memory is used again. */
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
  /** Called after the last batch, with the contents of all of them. */
  publish(mapped: MappedContents): Promise<void>;
  /** Called when mapping failed: nothing stays. */
  discard(): Promise<void>;
}

/** Counts batches: their places and digests. */
export class SliceCounter {
  #offset: number;
  #count = 0;

  /** `offset`: of the first batch. */
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

/** Bytes in memory before they are written. */
const HELD_MAX = 512 * 1024;

/** The memory of the last writer is used again: new pages would cost more than the copy. */
const spare: Buffer[] = [];
const SPARE_MAX = 2;

export class SegmentWriter {
  readonly #path: string;
  readonly #bytesMax: number;
  readonly #begin: number;
  #file: number | undefined;
  #held: Buffer | null = null;
  #heldLength = 0;
  /** Bytes of the file before those that are held. */
  #written: number;
  /** Whether the file may have more bytes than the segment. */
  #isLonger = false;
  readonly #footers = new Map<string, number>();
  /** A write that runs while the next bytes are made. */
  #aside: Promise<void> | null = null;

  /** `begin`: bytes of inputs that the file has already; without any, the file is made or overwritten. */
  constructor(path: string, { begin = 0, bytesMax = Number.POSITIVE_INFINITY } = {}) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#begin = begin;
    this.#written = begin;
  }

  /**
   * For the batches of one run, until it is published or discarded; then comes the next run. Throws when the segment
   * grows beyond its limit.
   */
  sinkOf(run: SegmentRun): BatchSink {
    const begin = this.#end;
    const counter = new SliceCounter(begin);
    const rows = new RowIndexPart(`${this.#path}${ROWS_PART}`);
    return {
      // The end of the name is the one that the spool sweeps after a crash.
      spillPath: `${this.#path}.spill.part`,
      append: async (body, sheetName) => {
        const slice = counter.next(body);
        if (this.#heldLength > 0 && !this.#fits(body.bytes)) await this.#flushAside();
        this.#putBytes(body.bytes);
        rows.add(`${rowIndexLine(slice, body, sheetName)}\n`);
        return slice;
      },
      publish: async (mapped) => {
        await this.#aside;
        const about = this.#end === begin ? null : aboutOf(mapped);
        if (about === null) return;
        const batches = this.#end;
        this.#put("\n");
        rows.end((bytes) => this.#putBytes(bytes));
        const aboutAt = this.#end;
        for (const text of aboutLines(about)) this.#put(text);
        const footerAt = this.#end;
        this.#put(footerText(run, { batches, rows: aboutAt - batches - 1, about: footerAt - aboutAt }));
        this.#footers.set(run.runId, footerAt);
      },
      discard: async () => {
        // The fault that led here may be that of the write.
        await this.#aside?.catch(() => undefined);
        this.#aside = null;
        rows.discard();
        this.#isLonger = true;
        this.#returnTo(begin);
      },
    };
  }

  /** Writes the end of the segment, which is not synced then. False when no run has batches in it. */
  end(): boolean {
    try {
      if (this.#footers.size === 0) return false;
      this.#put(endText(this.#footers));
      this.#flush();
      if (this.#isLonger && this.#file !== undefined) ftruncateSync(this.#file, this.#written);
      return true;
    } finally {
      this.close();
    }
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
    keepSpare(this.#held);
    this.#held = null;
  }

  /** Where in the file the next byte is. */
  get #end(): number {
    return this.#written + this.#heldLength;
  }

  #put(text: string): void {
    this.#putBytes(Buffer.from(text, "utf8"));
  }

  #putBytes(bytes: Buffer): void {
    if (this.#end + bytes.length > this.#bytesMax) throw new Error("too many readings for a segment of several runs");
    if (!this.#fits(bytes)) this.#flush();
    if (bytes.length > HELD_MAX) {
      this.#writeAll(bytes);
      return;
    }
    this.#held ??= spare.pop() ?? Buffer.allocUnsafeSlow(HELD_MAX);
    bytes.copy(this.#held, this.#heldLength);
    this.#heldLength += bytes.length;
  }

  #returnTo(end: number): void {
    this.#written = Math.min(this.#written, end);
    this.#heldLength = end - this.#written;
  }

  #fits({ length }: Buffer): boolean {
    return this.#heldLength + length <= HELD_MAX;
  }

  /** Writes the held bytes while the caller continues. Rejects with the fault of the write before. */
  async #flushAside(): Promise<void> {
    await this.#aside;
    const held = this.#held;
    const length = this.#heldLength;
    if (held === null) return;
    const at = this.#written;
    this.#held = null;
    this.#heldLength = 0;
    this.#written += length;
    this.#aside = writeAside(this.#opened(), held.subarray(0, length), at).finally(() => keepSpare(held));
    // The next call that awaits it receives the fault.
    this.#aside.catch(() => undefined);
  }

  #flush(): void {
    if (this.#held !== null) this.#writeAll(this.#held.subarray(0, this.#heldLength));
    this.#heldLength = 0;
  }

  #writeAll(bytes: Buffer): void {
    this.#written += writeAll(this.#opened(), bytes, this.#written);
  }

  #opened(): number {
    this.#file ??= this.#begin === 0 ? create(this.#path) : openSync(this.#path, "r+");
    return this.#file;
  }
}

function keepSpare(held: Buffer | null): void {
  if (held !== null && spare.length < SPARE_MAX) spare.push(held);
}

const writeSome = promisify(write);

/** In one of Node's threads for the disk. */
async function writeAside(file: number, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await writeSome(file, bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}

/** A segment of one run that its writer publishes: written as `<path>.part`. Without batches there is no segment. */
export function createSegment(path: string): BatchSink {
  const part = `${path}.part`;
  const sink = createSegmentPart(part);
  let isEmpty = true;
  return {
    ...sink,
    async append(body, sheetName) {
      isEmpty = false;
      return await sink.append(body, sheetName);
    },
    async publish(mapped) {
      await sink.publish(mapped);
      if (isEmpty) return;
      const [published] = await publishSegment({ part, paths: [path], isShared: false });
      resultOf(published);
    },
  };
}

/** A segment of one run that another process publishes. Its name begins with the id of the run. */
export function createSegmentPart(part: string): BatchSink {
  const writer = new SegmentWriter(part);
  const sink = writer.sinkOf({ runId: runOf(part), input: null });
  return {
    ...sink,
    async publish(mapped) {
      await sink.publish(mapped);
      writer.end();
    },
    async discard() {
      await sink.discard();
      writer.close();
      discardPart(part);
    },
  };
}
