/** Push bodies from the index: one identifier kind a batch, at most so many points and bytes. The same readings give the same bytes. */
import type { BatchLimits, Place } from "../model.ts";
import type { IdentifierKind } from "../wire/index.ts";
import { writeIso } from "./iso-text.ts";
import type { Group, ReadingIndex } from "./reading-index.ts";
import { shorten } from "./rejections.ts";

export interface BatchBody {
  readonly bytes: Buffer;
  readonly points: number;
  /** Line or row of each reading, in the order of the body; 0 when unknown. */
  readonly rows: readonly number[];
  /** Index of the sheet of each reading, or null when there are no sheets. */
  readonly sheets: readonly number[] | null;
}

/** One reading that no batch can hold. */
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

/** `[` and `]` around the elements. */
const FRAME_BYTES = 2;
/** `]}` after an element's readings. */
const TAIL = "]}";

interface ReadingJson {
  readonly element: string;
  /** Bytes of the start of the element. */
  readonly headBytes: number;
  readonly json: string;
  /** Bytes of `json`. */
  readonly bytes: number;
  readonly row: number;
  readonly sheet: number;
}

class BatchBuilder {
  readonly #limits: BatchLimits;
  #parts: string[] = [];
  #bytes = FRAME_BYTES;
  #open: Group | null = null;
  /** The field that the open element has beside its target, see `Extra.element`. */
  #element = "";
  #rows: number[] = [];
  #sheets: number[] | null = null;

  constructor(limits: BatchLimits) {
    this.#limits = limits;
  }

  get points(): number {
    return this.#rows.length;
  }

  /** False when the batch has no room for it. */
  add(group: Group, reading: ReadingJson): boolean {
    const { element, headBytes, json, bytes, row, sheet } = reading;
    const sameElement = this.#open === group && this.#element === element;
    const separator = sameElement || this.#open !== null ? 1 : 0;
    const added = bytes + separator + (sameElement ? 0 : headBytes + TAIL.length);
    if (this.#rows.length >= this.#limits.pointsMax || this.#bytes + added > this.#limits.bytesMax)
      return false;
    if (sameElement) this.#parts.push(",", json);
    else {
      this.#parts.push(this.#open === null ? "[" : `${TAIL},`, group.headWith(element), json);
      this.#open = group;
      this.#element = element;
    }
    this.#bytes += added;
    this.#rows.push(row);
    if (sheet !== 0) this.#sheets ??= new Array(this.#rows.length - 1).fill(0);
    this.#sheets?.push(sheet);
    return true;
  }

  take(): BatchBody {
    this.#parts.push(`${TAIL}]`);
    const body = {
      bytes: Buffer.from(this.#parts.join("")),
      points: this.#rows.length,
      rows: this.#rows,
      sheets: this.#sheets,
    };
    this.#parts = [];
    this.#bytes = FRAME_BYTES;
    this.#open = null;
    this.#rows = [];
    this.#sheets = null;
    return body;
  }
}

/** The batches of a finished index, one after another. Throws an `OversizeError`. */
export function* batchBodies(index: ReadingIndex, limits: BatchLimits): Generator<BatchBody> {
  const byKind = new Map<IdentifierKind, ReturnType<ReadingIndex["groups"]>>();
  for (const entry of index.groups()) {
    const same = byKind.get(entry.group.kind);
    if (same === undefined) byKind.set(entry.group.kind, [entry]);
    else same.push(entry);
  }
  for (const entries of byKind.values()) {
    const builder = new BatchBuilder(limits);
    for (const { group, order } of entries) yield* groupBodies(index, group, order, builder, limits);
    if (builder.points > 0) yield builder.take();
  }
}

function* groupBodies(
  index: ReadingIndex,
  group: Group,
  order: Uint32Array | null,
  builder: BatchBuilder,
  limits: BatchLimits,
): Generator<BatchBody> {
  const groupBytes = Buffer.byteLength(group.head);
  const count = order?.length ?? group.dates.length;
  for (let nth = 0; nth < count; nth += 1) {
    const at = order?.[nth] ?? nth;
    const extra = index.extraAt(group.extras[at] ?? 0);
    const plain = `{"date":"${writeIso(group.dates[at] ?? 0)}","value":${numberJson(group.values[at] ?? 0)}`;
    const json = `${plain}${extra.json}}`;
    const bytes = plain.length + extra.bytes + 1;
    const row = group.rows[at] ?? 0;
    const sheet = group.sheets[at] ?? 0;
    const headBytes = groupBytes + extra.elementBytes;
    const reading = { element: extra.element, headBytes, json, bytes, row, sheet };
    if (builder.add(group, reading)) continue;
    if (builder.points > 0) yield builder.take();
    if (!builder.add(group, reading)) {
      const place = { row: row === 0 ? undefined : row, sheet: index.sheetName(sheet) };
      throw new OversizeError(
        group.words,
        bytes + headBytes + TAIL.length + FRAME_BYTES,
        limits.bytesMax,
        place,
      );
    }
  }
}

function numberJson(value: number): string {
  return Object.is(value, -0) ? "0" : String(value);
}
