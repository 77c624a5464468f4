/**
 * Readings of a group of operations between the queue and the tables: columns of numbers, so that a quarter
 * of a million of them takes a few megabytes and no garbage collection.
 */
import type { VariableFacts } from "./records.ts";

/** Rare facts of a reading. Tags are JSON objects, ready to store. */
export interface Labels {
  readonly version: string | null;
  readonly tags: string | null;
  readonly batchTags: string | null;
}

/** The writer of points numbers stamps by the index of readings, and origins by the index of their operations. */
export interface FirstNumbers {
  /** VersionTimestamp of the first reading, microseconds. */
  readonly firstUs: number;
  /** Number of the origin of the first operation. */
  readonly firstOrigin: number;
}

export class ReadingColumns {
  readonly capacity: number;
  length = 0;
  /** The distinct variables of the readings. */
  readonly variables: VariableFacts[] = [];
  /** Positions in `variables`. */
  readonly variable: Uint32Array;
  /** Positions in the group of operations. */
  readonly operation: Uint32Array;
  /** Milliseconds since 1970 in UTC. */
  readonly atMs: Float64Array;
  readonly value: Float64Array;
  /** Positions in `labels`, from 1; 0: no labels. A list of them would be copied each time that it grows. */
  private readonly label: Uint32Array;
  private readonly labels: Labels[] = [];
  private readonly positions = new Map<number, number>();

  constructor(capacity: number) {
    this.capacity = capacity;
    this.variable = new Uint32Array(capacity);
    this.operation = new Uint32Array(capacity);
    this.atMs = new Float64Array(capacity);
    this.value = new Float64Array(capacity);
    this.label = new Uint32Array(capacity);
  }

  get isFull(): boolean {
    return this.length === this.capacity;
  }

  /** Position of a variable, for `add`; it is valid until `clear`. */
  positionOf(variable: VariableFacts): number {
    const known = this.positions.get(variable.id);
    if (known !== undefined) return known;
    const position = this.variables.push(variable) - 1;
    this.positions.set(variable.id, position);
    return position;
  }

  /** A negative zero becomes 0, since no answer shows its sign. Throws a `RangeError` when the columns are full. */
  add(operation: number, position: number, atMs: number, value: number, labels: Labels | null): void {
    const index = this.length;
    if (index === this.capacity) throw new RangeError("the columns of readings are full");
    this.length = index + 1;
    this.operation[index] = operation;
    this.variable[index] = position;
    this.atMs[index] = atMs;
    this.value[index] = value + 0;
    this.label[index] = labels === null ? 0 : this.labels.push(labels);
  }

  /** Null: none of them. */
  labelsOf(index: number): Labels | null {
    const position = this.label[index] ?? 0;
    return position === 0 ? null : (this.labels[position - 1] ?? null);
  }

  /** Removes the latest readings, so that `length` are left. */
  truncate(length: number): void {
    const removed = this.label.subarray(length, this.length).find((position) => position > 0);
    if (removed !== undefined) this.labels.length = removed - 1;
    this.length = length;
  }

  clear(): void {
    this.length = 0;
    this.labels.length = 0;
    this.variables.length = 0;
    this.positions.clear();
  }

  /**
   * Indices in the order of variable id, date and arrival: the order of the table, in which writing is
   * fastest.
   */
  order(): Uint32Array {
    const { length, variable, atMs } = this;
    // The readings of a variable mostly arrive in order of date: they are distributed by counting, and sorted
    // only where necessary.
    const ends = this.beginsByVariable();
    const starts = ends.slice();
    const order = new Uint32Array(length);
    const sorted = new Uint8Array(ends.length).fill(1);
    for (let index = 0; index < length; index += 1) {
      const position = variable[index] ?? 0;
      const place = ends[position] ?? 0;
      order[place] = index;
      ends[position] = place + 1;
      if (place > (starts[position] ?? 0) && (atMs[order[place - 1] ?? 0] ?? 0) > (atMs[index] ?? 0))
        sorted[position] = 0;
    }
    for (const [position, isSorted] of sorted.entries())
      if (isSorted === 0)
        order.subarray(starts[position], ends[position]).sort((a, b) => (atMs[a] ?? 0) - (atMs[b] ?? 0) || a - b);
    return order;
  }

  /** Index of the first reading of each variable, in the order of variable ids. */
  private beginsByVariable(): Uint32Array {
    const counts = new Uint32Array(this.variables.length);
    for (let index = 0; index < this.length; index += 1) {
      const position = this.variable[index] ?? 0;
      counts[position] = (counts[position] ?? 0) + 1;
    }
    const begins = new Uint32Array(counts.length);
    let next = 0;
    const idOf = (position: number) => this.variables[position]?.id ?? 0;
    for (const position of [...counts.keys()].sort((a, b) => idOf(a) - idOf(b))) {
      begins[position] = next;
      next += counts[position] ?? 0;
    }
    return begins;
  }
}
