/**
 * Builds push bodies from the index: one identifier kind a batch, at most the configured points and bytes. The same
 * readings give the same bytes.
 */

import { JsonBytes } from "./json-bytes.ts";
import type { BatchLimits, Place } from "./model.ts";
import type { Group, ReadingIndex } from "./reading-index.ts";
import { shorten } from "./rejections.ts";
import type { BatchBody } from "./segment/writer.ts";
import type { ConflictJudge } from "./sorted-readings.ts";
import { lostReadings, type SortedReading } from "./spill.ts";

/** Totals of all batches. */
export interface BatchTotals {
  points: number;
  /** Number of readings that do not count, since their target, date and version occur again. */
  superseded: number;
  /** Earliest and latest date in epoch milliseconds; infinite without readings. */
  from: number;
  to: number;
}

/** A reading that is too large for any batch. */
export class OversizeError extends Error {
  readonly place: Place;

  constructor(target: string, bytes: number, limit: number, place: Place) {
    super(
      `a reading of ${shorten(target)} takes ${bytes} bytes as a batch of its own, more than the limit of ${limit}`,
    );
    this.name = "OversizeError";
    this.place = place;
  }
}

/** Ends the readings of an element; more elements may follow. */
const ELEMENT_END = "]}";
const END = "]";
const POINTS_FIRST = 1024;

/** Limits on the readings and bytes of a builder that is kept for the next file. */
const POINTS_KEPT_MAX = 16 * POINTS_FIRST;
const BYTES_KEPT_MAX = 1024 * 1024;

/** The builder of a small file is reused, see `takeColumns`. */
let kept: BatchBuilder | null = null;

class BatchBuilder {
  #limits: BatchLimits;
  readonly #json = new JsonBytes();
  #open: Group | null = null;
  /** The tags of the open element, see `Extra.element`. */
  #element = "";
  #rows = new Uint32Array(POINTS_FIRST);
  #sheets = new Uint32Array(POINTS_FIRST);
  #hasSheets = false;
  points = 0;
  /** Bytes that the batch would have had with the last reading. */
  tried = 0;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  static taken(limits: BatchLimits): BatchBuilder {
    const builder = kept ?? new BatchBuilder(limits);
    kept = null;
    builder.#limits = limits;
    return builder;
  }

  /** Releases the builder for reuse; the caller must no longer use it. */
  release(): void {
    this.#empty();
    if (this.#rows.length <= POINTS_KEPT_MAX && this.#json.capacity <= BYTES_KEPT_MAX) kept = this;
  }

  /** False when the batch has no space for the reading. */
  add(group: Group, reading: Readonly<SortedReading>): boolean {
    if (this.points >= this.#limits.pointsMax) return false;
    const json = this.#json;
    const before = json.length;
    const { extra, date, value } = reading;
    if (this.#open === group && this.#element === extra.element) json.text(",", 1);
    else this.#begin(group, extra.element);
    json.reading(date, value);
    if (extra.bytes > 0) json.text(extra.json, extra.bytes);
    json.text("}", 1);
    this.tried = json.length + ELEMENT_END.length + END.length;
    if (this.tried > this.#limits.bytesMax) {
      json.length = before;
      return false;
    }
    this.#open = group;
    this.#element = extra.element;
    this.#note(reading.row, reading.sheet);
    return true;
  }

  #begin(group: Group, element: string): void {
    const head = `${this.#open === null ? "[" : `${ELEMENT_END},`}${group.headWith(element)}`;
    this.#json.text(head, Buffer.byteLength(head));
  }

  #note(row: number, sheet: number): void {
    if (this.points === this.#rows.length) {
      this.#rows = twice(this.#rows);
      this.#sheets = twice(this.#sheets);
    }
    this.#rows[this.points] = row;
    this.#sheets[this.points] = sheet;
    if (sheet !== 0) this.#hasSheets = true;
    this.points += 1;
  }

  take(): BatchBody {
    const json = this.#json;
    json.text(ELEMENT_END, ELEMENT_END.length);
    json.text(END, END.length);
    const body = {
      bytes: json.written,
      points: this.points,
      rows: this.#rows.subarray(0, this.points),
      sheets: this.#hasSheets ? this.#sheets.subarray(0, this.points) : null,
    };
    this.#empty();
    return body;
  }

  #empty(): void {
    this.#json.length = 0;
    this.#open = null;
    this.#hasSheets = false;
    this.points = 0;
  }
}

function twice(column: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const longer = new Uint32Array(2 * column.length);
  longer.set(column);
  return longer;
}

export function noTotals(): BatchTotals {
  return { points: 0, superseded: 0, from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY };
}

/** The batches of all readings, in order. Fills `totals` and the points of each group. Throws an `OversizeError`. */
export function* batchBodies(
  index: ReadingIndex,
  limits: BatchLimits,
  totals: BatchTotals,
  judge: ConflictJudge,
): Generator<BatchBody> {
  const builder = BatchBuilder.taken(limits);
  try {
    yield* bodiesBy(builder, index, limits, totals, judge);
  } finally {
    builder.release();
  }
}

function* bodiesBy(
  builder: BatchBuilder,
  index: ReadingIndex,
  limits: BatchLimits,
  totals: BatchTotals,
  judge: ConflictJudge,
): Generator<BatchBody> {
  const readings = index.settled(judge);
  let group: Group | undefined;
  while (readings.next()) {
    if (group?.rank !== readings.rank) {
      const next = groupOf(index, readings.rank);
      if (group?.kind !== next.kind && builder.points > 0) yield builder.take();
      group = next;
    }
    if (!builder.add(group, readings)) {
      if (builder.points > 0) yield builder.take();
      if (!builder.add(group, readings)) throw oversize(index, group, readings, builder.tried, limits);
    }
    // The readings of a group come in the order of their dates.
    if (group.points === 0) group.from = readings.date;
    group.to = readings.date;
    group.points += 1;
    if (readings.extra.version === "") group.untagged += 1;
    totals.points += 1;
    if (readings.date < totals.from) totals.from = readings.date;
    if (readings.date > totals.to) totals.to = readings.date;
  }
  if (builder.points > 0) yield builder.take();
  totals.superseded = readings.superseded;
}

function groupOf(index: ReadingIndex, rank: number): Group {
  const group = index.groupAt(rank);
  if (group === undefined) throw lostReadings("the spilled readings name a target that is not known");
  return group;
}

function oversize(
  index: ReadingIndex,
  group: Group,
  { row, sheet }: Readonly<SortedReading>,
  bytes: number,
  { bytesMax }: BatchLimits,
): OversizeError {
  const place = { row: row === 0 ? undefined : row, sheet: index.sheetName(sheet) };
  return new OversizeError(group.words, bytes, bytesMax, place);
}
