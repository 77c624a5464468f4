/**
 * A large file in two ranges, cut at a line end: the first is mapped here, and the later one ahead in another thread,
 * which takes the head of the file first, so that it knows its header and the order of its targets. What the other
 * thread made counts only if the sequence would have given the same; otherwise the later range is mapped here too.
 */
import { closeSync, openSync, readSync, rmSync } from "node:fs";
import type { Instants } from "../instants.ts";
import { Cut, type NextPlace } from "../readers/cut.ts";
import type { RangeReadings, ReadingIndex } from "../reading-index.ts";
import type { Rejections } from "../rejections.ts";
import type { SeriesOrders } from "../series-order.ts";
import { SpillFile } from "../spill.ts";

/** Bytes of a file below which another thread gains nothing, since it takes a while to begin. */
const FILE_BYTES_MIN = 256 * 1024 * 1024;
/** Share of the first range, which begins earlier. */
const FIRST_SHARE = 0.54;
/** Bytes of the head, up to the end of a line: some ten thousand rows, among which most targets are. */
const HEAD_BYTES = 1024 * 1024;
const HEAD_SHARE_MAX = 0.1;
/** Bytes within which a line has to end. */
const LINE_BYTES = 64 * 1024;
const LF = 10;

/** Positions of a file, both at line ends, between which another thread leaves out the rows. */
export interface FileRange {
  readonly headEnd: number;
  readonly from: number;
}

/** A request to another thread. */
export interface RangeAsk extends FileRange {
  /** A file that exists, for readings; the other thread removes its name. */
  readonly spillPath: string;
}

export interface MappedRange extends RangeReadings {
  /** Number of rows that gave a reading. */
  readonly rows: number;
  /** Line at which the range would begin if it followed the head. */
  readonly line: number;
}

/** Another thread that can map a range. */
export interface RangeHelper {
  /** Null for a file that one thread maps. */
  rangeOf(path: string, size: number): FileRange | null;
  /** Null when the thread did not map it. Never rejects. */
  ask(range: RangeAsk): Promise<MappedRange | null>;
  /** Ends the request, which is no longer needed. */
  stop(): void;
}

/** The loop over rows that a mapper is in. */
export interface RowLoop {
  readonly isIndependent: boolean;
}

interface RangeParts {
  readonly index: ReadingIndex;
  readonly rejections: Rejections;
}

/** The state that rows leave for later rows. */
export interface RowState {
  readonly orders: SeriesOrders;
  readonly instants: Instants;
}

/** Receives the loops of a mapper over rows. */
export interface RowWatch {
  begin(loop: RowLoop, state: RowState): void;
  /** Called after each block of rows. */
  check(): void;
  end(): void;
}

/** Where to cut a file of this size; null for one that is to be mapped by one thread. */
export function rangeOf(path: string, size: number, bytesMin = FILE_BYTES_MIN): FileRange | null {
  if (size < bytesMin) return null;
  try {
    const headEnd = lineEndAfter(path, Math.min(HEAD_BYTES, size * HEAD_SHARE_MAX));
    const from = lineEndAfter(path, size * FIRST_SHARE);
    return headEnd === null || from === null || headEnd > from ? null : { headEnd, from };
  } catch {
    // The mapper meets the fault, and it is reported there.
    return null;
  }
}

function lineEndAfter(path: string, place: number): number | null {
  const at = Math.floor(place);
  const file = openSync(path, "r");
  try {
    const bytes = Buffer.allocUnsafe(LINE_BYTES);
    const found = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, at)).indexOf(LF);
    return found === -1 ? null : at + found + 1;
  } finally {
    closeSync(file);
  }
}

/** The first range: asks another thread for the later one, and takes what it made. */
export class FirstRange implements RowWatch {
  readonly cut: Cut;
  readonly #parts: RangeParts;
  readonly #helper: RangeHelper;
  readonly #range: FileRange;
  readonly #spillPath: string;
  #loop: RowLoop | undefined;
  #state: RowState | undefined;
  #spill: SpillFile | undefined;
  #asked: Promise<MappedRange | null> | undefined;

  constructor(parts: RangeParts, helper: RangeHelper, range: FileRange, spillPath: string) {
    this.cut = new Cut(range.from, range.from, (line) => this.#reached(line));
    this.#parts = parts;
    this.#helper = helper;
    this.#range = range;
    this.#spillPath = spillPath;
  }

  begin(loop: RowLoop, state: RowState): void {
    this.#loop = loop;
    this.#state = state;
  }

  check(): void {
    if (this.#asked !== undefined || this.#loop?.isIndependent !== true) return;
    try {
      this.#spill = new SpillFile(this.#spillPath, "lend");
      this.#asked = this.#helper.ask({ ...this.#range, spillPath: this.#spillPath });
    } catch {
      // Without space on disk the file is mapped here, which reports the fault where it matters.
      this.#asked = Promise.resolve(null);
    }
  }

  end(): void {
    this.#loop = undefined;
  }

  async #reached(line: number): Promise<NextPlace> {
    const { from } = this.#range;
    const { index, rejections } = this.#parts;
    const spill = this.#spill;
    const isFit = this.#loop?.isIndependent === true && this.#state?.orders.isHolding === false;
    if (!isFit || this.#state?.instants.hasLocal === true || spill === undefined) {
      this.#helper.stop();
      return from;
    }
    const later = (await this.#asked) ?? null;
    if (later === null || !index.join(later, spill, line - later.line)) return from;
    rejections.takenElsewhere(later.rows);
    return null;
  }

  close(): void {
    if (this.#asked === undefined) return;
    this.#helper.stop();
    this.#spill?.close();
    rmSync(this.#spillPath, { force: true });
  }
}

/** Thrown where the rows of a range are not such that another thread may map them. */
export class UnfitRange extends Error {}

/** The head of a file and a later range of it, in the other thread. */
export class LaterRange implements RowWatch {
  readonly cut: Cut;
  readonly #parts: RangeParts;
  readonly #from: number;
  #loop: RowLoop | undefined;
  #state: RowState | undefined;
  #isFit = true;
  #rowsOfHead = 0;
  #line: number | undefined;

  constructor(parts: RangeParts, { headEnd, from }: FileRange) {
    this.cut = new Cut(headEnd, null, (line) => this.#reached(line));
    this.#parts = parts;
    this.#from = from;
  }

  begin(loop: RowLoop, state: RowState): void {
    this.#loop = loop;
    this.#state = state;
  }

  /** Called where the mapper says something that the other thread has to say. */
  readonly refuse = (): void => {
    this.#isFit = false;
  };

  check(): void {
    const { orders, instants } = this.#state ?? {};
    const isAlone = orders?.hasOpenStart !== true && instants?.hasLocal !== true;
    if (!this.#isFit || !isAlone || this.#parts.rejections.count > 0) throw new UnfitRange();
  }

  end(): void {
    this.#loop = undefined;
  }

  async #reached(line: number): Promise<NextPlace> {
    if (this.#loop?.isIndependent !== true || this.#line !== undefined) throw new UnfitRange();
    this.check();
    if (this.#state?.orders.isHolding !== false) throw new UnfitRange();
    this.#state.orders.forget();
    this.#parts.index.forget();
    this.#rowsOfHead = this.#parts.rejections.takenRows;
    this.#line = line;
    return this.#from;
  }

  /** Called when the mapper has ended. */
  result(): MappedRange {
    const { index, rejections } = this.#parts;
    this.check();
    // Other reads of the file ended with the head.
    if (this.#line === undefined || this.cut.wasPassed || index.hasOddDates) throw new UnfitRange();
    return { ...index.handOver(), rows: rejections.takenRows - this.#rowsOfHead, line: this.#line };
  }
}
