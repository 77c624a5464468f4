/** Readings by group and date: from memory, merged from several runs, and with repeated ones settled. */
import { type Extra, NO_EXTRA } from "./extras.ts";
import type { OddDates } from "./plausible.ts";
import type { ReadingColumns } from "./reading-columns.ts";
import type { SortedReading, SortedReadings } from "./spill.ts";

/** The readings of columns in a given order. */
export class ColumnReadings implements SortedReadings {
  rank = 0;
  date = 0;
  value = 0;
  row = 0;
  sheet = 0;
  extra = NO_EXTRA;
  readonly #columns: ReadingColumns;
  readonly #order: Uint32Array;
  readonly #rankOf: (group: number) => number;
  readonly #extraAt: (index: number) => Extra;
  #nth = 0;

  constructor(
    columns: ReadingColumns,
    order: Uint32Array,
    rankOf: (group: number) => number,
    extraAt: (index: number) => Extra,
  ) {
    this.#columns = columns;
    this.#order = order;
    this.#rankOf = rankOf;
    this.#extraAt = extraAt;
  }

  next(): boolean {
    const at = this.#order[this.#nth];
    if (at === undefined) return false;
    this.#nth += 1;
    const columns = this.#columns;
    this.rank = this.#rankOf(columns.groups[at] ?? 0);
    this.date = columns.dates[at] ?? 0;
    this.value = columns.values[at] ?? 0;
    this.row = columns.rows[at] ?? 0;
    this.sheet = columns.sheets[at] ?? 0;
    const extra = columns.extras[at] ?? 0;
    this.extra = extra === 0 ? NO_EXTRA : this.#extraAt(extra);
    return true;
  }
}

function copyReading(from: Readonly<SortedReading>, to: SortedReading): void {
  to.rank = from.rank;
  to.date = from.date;
  to.value = from.value;
  to.row = from.row;
  to.sheet = from.sheet;
  to.extra = from.extra;
}

/** Several runs as one. Of equal group and date the earlier run goes first, since it holds the earlier rows. */
export class MergedReadings implements SortedReadings {
  rank = 0;
  date = 0;
  value = 0;
  row = 0;
  sheet = 0;
  extra = NO_EXTRA;
  readonly #runs: readonly SortedReadings[];
  /** A binary heap of positions in `runs`: the entry at `n` comes before those at `2n + 1` and `2n + 2`. */
  readonly #heap: number[] = [];
  /** Rank and date at which the run after the first begins: most runs follow each other without overlapping. */
  #rankEnd = 0;
  #dateEnd = 0;

  constructor(runs: readonly SortedReadings[]) {
    this.#runs = runs;
    runs.forEach((run, at) => {
      if (run.next()) this.#heap.push(at);
    });
    for (let at = Math.floor(this.#heap.length / 2) - 1; at >= 0; at -= 1) this.#sink(at);
    this.#findEnd();
  }

  next(): boolean {
    const first = this.#runs[this.#heap[0] ?? -1];
    if (first === undefined) return false;
    copyReading(first, this);
    if (first.next()) {
      const { rank } = first;
      if (rank < this.#rankEnd || (rank === this.#rankEnd && first.date < this.#dateEnd)) return true;
    } else {
      const last = this.#heap.pop() ?? 0;
      if (this.#heap.length === 0) return true;
      this.#heap[0] = last;
    }
    this.#sink(0);
    this.#findEnd();
    return true;
  }

  #findEnd(): void {
    const [, one, other] = this.#heap;
    const second = other !== undefined && this.#before(other, one ?? 0) ? other : one;
    const run = second === undefined ? undefined : this.#runs[second];
    this.#rankEnd = run?.rank ?? Number.POSITIVE_INFINITY;
    this.#dateEnd = run?.date ?? 0;
  }

  #sink(from: number): void {
    const heap = this.#heap;
    const moved = heap[from] ?? 0;
    let at = from;
    for (let child = 2 * at + 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && this.#before(heap[child + 1] ?? 0, heap[child] ?? 0)) child += 1;
      if (!this.#before(heap[child] ?? 0, moved)) break;
      heap[at] = heap[child] ?? 0;
      at = child;
    }
    heap[at] = moved;
  }

  #before(a: number, b: number): boolean {
    const one = this.#runs[a];
    const other = this.#runs[b];
    if (one === undefined || other === undefined) return false;
    if (one.rank !== other.rank) return one.rank < other.rank;
    return one.date === other.date ? a < b : one.date < other.date;
  }
}

/** The readings that were not refused because of their dates. */
export class KeptReadings implements SortedReadings {
  rank = 0;
  date = 0;
  value = 0;
  row = 0;
  sheet = 0;
  extra = NO_EXTRA;
  readonly #all: SortedReadings;
  readonly #dates: Pick<OddDates, "isLeftOut">;

  constructor(all: SortedReadings, dates: Pick<OddDates, "isLeftOut">) {
    this.#all = all;
    this.#dates = dates;
  }

  next(): boolean {
    while (this.#all.next()) {
      copyReading(this.#all, this);
      if (!this.#dates.isLeftOut(this.rank, this.date, this.row, this.sheet)) return true;
    }
    return false;
  }
}

/** Decides about readings of one group, date and version with different values. */
export interface ConflictJudge {
  readonly rule: "last" | "refuse" | "first";
  replaced(taken: Readonly<SortedReading>, left: Readonly<SortedReading>): void;
  refuse(reading: Readonly<SortedReading>, other: Readonly<SortedReading>): void;
}

/**
 * For each group, date and version only the row that counts: the latest one, or the first if the rule says so, or none
 * if it refuses rows that differ. Versions of one date come in the order of these rows.
 */
export class SettledReadings implements SortedReadings {
  rank = 0;
  date = 0;
  value = 0;
  row = 0;
  sheet = 0;
  extra = NO_EXTRA;
  /** Number of readings that were left out so far. */
  superseded = 0;
  readonly #all: SortedReadings;
  readonly #judge: ConflictJudge;
  #more: boolean;
  /** Further versions of the current date. */
  #waiting: SortedReading[] = [];

  constructor(all: SortedReadings, judge: ConflictJudge) {
    this.#all = all;
    this.#judge = judge;
    this.#more = all.next();
  }

  next(): boolean {
    for (;;) {
      const waiting = this.#waiting.shift();
      if (waiting !== undefined) {
        copyReading(waiting, this);
        return true;
      }
      if (!this.#more) return false;
      copyReading(this.#all, this);
      this.#more = this.#all.next();
      if (!this.#isRepeated()) return true;
      this.#settle();
    }
  }

  #isRepeated(): boolean {
    return this.#more && this.#all.date === this.date && this.#all.rank === this.rank;
  }

  #settle(): void {
    const counting = new Map<string, SortedReading>([[this.extra.version, held(this)]]);
    const refused = new Set<string>();
    do {
      const reading = held(this.#all);
      const { version } = reading.extra;
      const before = counting.get(version);
      if (before === undefined) counting.set(version, reading);
      else this.#compare(before, reading, counting, refused);
      this.#more = this.#all.next();
    } while (this.#isRepeated());
    for (const version of refused) counting.delete(version);
    this.#waiting = [...counting.values()];
  }

  #compare(
    before: SortedReading,
    reading: SortedReading,
    counting: Map<string, SortedReading>,
    refused: Set<string>,
  ): void {
    const { version } = reading.extra;
    const judge = this.#judge;
    const differs = before.value !== reading.value;
    if (judge.rule === "refuse" && (differs || refused.has(version))) {
      if (!refused.has(version)) judge.refuse(before, reading);
      judge.refuse(reading, before);
      refused.add(version);
      return;
    }
    this.superseded += 1;
    if (judge.rule === "first") {
      if (differs) judge.replaced(before, reading);
      return;
    }
    if (differs) judge.replaced(reading, before);
    // Set again, so that versions of one date keep the order of their latest rows.
    counting.delete(version);
    counting.set(version, reading);
  }
}

function held({ rank, date, value, row, sheet, extra }: Readonly<SortedReading>): SortedReading {
  return { rank, date, value, row, sheet, extra };
}
