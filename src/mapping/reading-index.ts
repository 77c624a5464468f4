/**
 * The readings of one file, from the mapper's `emit` to the batches: collected in memory, sorted and spilled to disk
 * whenever the memory limit is reached, and returned by target and date. The result depends on the readings alone, not
 * on the times of the spills.
 */
import type { PushTarget } from "#wire/push.ts";
import { type IdentifierKind, targetWords } from "#wire/target.ts";
import { type Extra, Extras, NO_EXTRA } from "./extras.ts";
import { OddDates, type OddSteps, STEP_MS_MAX } from "./plausible.ts";
import { ReadingColumns, releaseColumns, takeColumns } from "./reading-columns.ts";
import type { Rejections } from "./rejections.ts";
import { type MovedRows, type SortedReading, type SortedReadings, type SpilledRun, SpillFile } from "./spill.ts";

/** About 5 MB in columns, and as much again while they are sorted. */
const ROWS_IN_MEMORY_MAX = 131_072;
/** Limit on versions and tags in memory, in bytes. */
const EXTRAS_BYTES_MAX = 8_000_000;
const DATA = '"data":[';

/** Ranks order the groups: by the kind of identifier, then by first row. */
const GROUPS_MAX = 2 ** 28;

/** One target. */
export class Group {
  /** Counted from 0, in the order of first rows. */
  readonly id: number;
  readonly rank: number;
  readonly kind: IdentifierKind;
  /** JSON of the target, which takes little memory. */
  readonly #json: string;
  unit: string | undefined;
  /**
   * Readings to push, their earliest and latest date, and the number without a version. Known when all batches are
   * made.
   */
  points = 0;
  from = 0;
  to = 0;
  untagged = 0;
  /** Readings so far, their first and latest date in the order of rows, and the row of the first; see `OddDates`. */
  rows = 0;
  first = Number.NaN;
  latest = Number.NaN;
  firstRow = 0;
  firstSheet = 0;
  /** Readings with dates before the floor, which count nowhere else. */
  early = 0;
  odd: OddSteps | undefined;

  constructor(id: number, kindOrder: number, kind: IdentifierKind, json: string) {
    this.id = id;
    this.rank = kindOrder * GROUPS_MAX + id;
    this.kind = kind;
    this.#json = json;
  }

  get json(): string {
    return this.#json;
  }

  get target(): PushTarget {
    return JSON.parse(this.#json) as PushTarget;
  }

  /** The target as text, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  get words(): string {
    return targetWords(this.target);
  }

  /**
   * Start of the element's JSON: `{"sourceSerialNumber":"M-1","mappingConfig":"kWh","data":[`; `element` see `Extra`.
   */
  headWith(element: string): string {
    return `${this.#json.slice(0, -1)},${element}${DATA}`;
  }
}

/** The readings of a later range of the file, in the spill file that was lent to its thread. */
export interface RangeReadings {
  /** In the order of their ids. */
  readonly groups: readonly {
    readonly json: string;
    readonly kind: IdentifierKind;
    readonly unit: string | undefined;
    /** As in `Group`. */
    readonly dates: Pick<Group, "rows" | "first" | "latest" | "firstRow">;
  }[];
  readonly runs: readonly SpilledRun[];
  readonly readings: number;
}

type Tags = Readonly<Record<string, string>>;

export class ReadingIndex {
  readonly #spillPath: string;
  readonly #rowsMax: number;
  readonly #groups: Group[] = [];
  readonly #groupsByJson = new Map<string, Group>();
  readonly #kinds: IdentifierKind[] = [];
  readonly #extras = new Extras();
  readonly #sheets: string[] = [""];
  /**
   * Null when closed: code that a mapper left running may still emit, and the columns may belong to another file then.
   */
  #columns: ReadingColumns | null = takeColumns();
  #spill: SpillFile | undefined;
  #later: { readonly file: SpillFile; readonly moved: MovedRows } | undefined;
  #fault: unknown;
  /** Number of readings so far. */
  readings = 0;
  readonly #dates: OddDates;
  /** How often the indexes of versions and tags became invalid. */
  clearedExtras = 0;

  /** `spillPath` is used when there are more than `rowsMax` readings. */
  constructor(spillPath: string, rowsMax = ROWS_IN_MEMORY_MAX, spill?: SpillFile | undefined, dates = new OddDates()) {
    this.#spillPath = spillPath;
    this.#dates = dates;
    this.#rowsMax = rowsMax;
    this.#spill = spill;
  }

  /** The group of a target, which is given as JSON with its fields in the order of the contract. */
  group(json: string, kind: IdentifierKind): Group {
    let group = this.#groupsByJson.get(json);
    if (group === undefined) {
      if (!this.#kinds.includes(kind)) this.#kinds.push(kind);
      group = new Group(this.#groups.length, this.#kinds.indexOf(kind), kind, json);
      this.#groups.push(group);
      this.#groupsByJson.set(json, group);
    }
    return group;
  }

  groupAt(rank: number): Group | undefined {
    return this.#groups[rank % GROUPS_MAX];
  }

  /** Groups in the order of their first rows. */
  get groups(): readonly Group[] {
    return this.#groups;
  }

  /** Records version and tags for the next reading. */
  extra(version: string | undefined, tags: Tags | undefined, batchTags: Tags | undefined): number {
    return this.#extras.add(version, tags, batchTags);
  }

  sheet(name: string | undefined): number {
    if (name === undefined) return 0;
    const known = this.#sheets.indexOf(name);
    return known === -1 ? this.#sheets.push(name) - 1 : known;
  }

  sheetName(index: number): string | undefined {
    return index === 0 ? undefined : this.#sheets[index];
  }

  /**
   * Throws the disk's error when the readings cannot be spilled; also on each later call, since readings are missing
   * then.
   */
  add(group: Group, date: number, value: number, extra: number, row: number, sheet: number): void {
    if (this.#fault !== undefined) throw this.#fault;
    const columns = this.#columns;
    if (columns === null) return;
    columns.add(group.id, date, value, extra, row, sheet);
    this.readings += 1;
    const step = date - group.latest;
    if (step >= 0 && step <= STEP_MS_MAX) {
      group.latest = date;
      group.rows += 1;
    } else this.#dates.note(group, date, row, sheet);
    if (columns.count >= this.#rowsMax || this.#extras.bytes > EXTRAS_BYTES_MAX) this.#spillColumns(columns);
  }

  /** The disk error that lost readings, which a mapper may have caught. Undefined when none are lost. */
  get fault(): unknown {
    return this.#fault;
  }

  #spillColumns(columns: ReadingColumns): void {
    this.#dates.sample(columns);
    try {
      this.#spill ??= new SpillFile(this.#spillPath);
      this.#spill.write(this.#sorted(columns));
    } catch (thrown) {
      this.#fault = thrown;
      throw thrown;
    }
    columns.clear();
    this.#extras.clear();
    this.clearedExtras += 1;
  }

  /** Drops all readings, but not their targets. */
  forget(): void {
    this.#columns?.clear();
    this.#spill?.runs.splice(0);
    this.readings = 0;
    for (const group of this.#groups) {
      group.rows = 0;
      group.latest = Number.NaN;
    }
  }

  /** Writes all readings to the spill file of another index, of which this one was made. */
  handOver(): RangeReadings {
    if (this.#columns !== null && this.#columns.count > 0) this.#spillColumns(this.#columns);
    const groups = this.#groups.map(({ json, kind, unit, rows, first, latest, firstRow }) => ({
      ...{ json, kind, unit },
      dates: { rows, first, latest, firstRow },
    }));
    return { groups, runs: this.#spill?.runs ?? [], readings: this.readings };
  }

  /**
   * Adds the readings of a later range, after all that are there; `lines` is added to their rows. False when they do
   * not fit, and nothing was added: the units of a target differ, or the targets are in another order there.
   */
  join({ groups, runs, readings }: RangeReadings, file: SpillFile, lines: number): boolean {
    if (groups.some(({ json, unit }) => differs(unit, this.#groupsByJson.get(json)?.unit))) return false;
    const known = this.#groups.length;
    const ids = groups.map(({ json }) => this.#groupsByJson.get(json)?.id ?? known);
    const kinds = [...new Set([...this.#kinds, ...groups.map(({ kind }) => kind)])];
    let added = known;
    const placed = groups.map(({ kind }, nth) => {
      const id = ids[nth] === known ? added++ : (ids[nth] ?? 0);
      return kinds.indexOf(kind) * GROUPS_MAX + id;
    });
    // Each run is sorted by the ranks of its own index.
    const ownKinds = [...new Set(groups.map(({ kind }) => kind))];
    let before = -1;
    for (const kind of ownKinds)
      for (const [nth, rank] of placed.entries()) {
        if (groups[nth]?.kind !== kind) continue;
        if (rank < before) return false;
        before = rank;
      }
    if (!this.#follow(groups)) return false;
    for (const { json, kind, unit, dates } of groups) {
      const group = this.group(json, kind);
      group.unit ??= unit;
      if (dates.rows === 0) continue;
      if (group.rows === 0) group.firstRow = dates.firstRow + lines;
      group.latest = dates.latest;
      group.rows += dates.rows;
    }
    file.runs.push(...runs);
    this.readings += readings;
    this.#later = { file, moved: { rankOf: (rank) => placed[rank % GROUPS_MAX] ?? 0, lines } };
    return true;
  }

  /** Whether the dates of a later range continue those that are here. */
  #follow(groups: RangeReadings["groups"]): boolean {
    return groups.every(({ json, dates }) => {
      const group = this.#groupsByJson.get(json);
      return group === undefined || dates.rows === 0 || this.#dates.isUsual(group, dates.first);
    });
  }

  /** Whether dates were found that do not follow each other as usual. */
  get hasOddDates(): boolean {
    return this.#dates.hasAny;
  }

  /** Refuses rows by their dates, when all are in. Returns the findings of the others. */
  judgeDates(rejections: Rejections): ReturnType<OddDates["judge"]> {
    if (this.#columns !== null) this.#dates.sample(this.#columns);
    return this.#dates.judge(rejections, (sheet) => this.sheetName(sheet));
  }

  #sorted(columns: ReadingColumns): ColumnReadings {
    const groups = this.#groups;
    return new ColumnReadings(
      columns,
      columns.order(this.#rankedGroups(), groups.length),
      (group) => groups[group]?.rank ?? 0,
      (extra) => this.#extras.at(extra),
    );
  }

  *#rankedGroups(): Generator<number> {
    for (const kind of this.#kinds) for (const group of this.#groups) if (group.kind === kind) yield group.id;
  }

  /**
   * The readings to push, by kind, target and date. Called once, when all readings are in and before the index is
   * closed.
   */
  settled(judge: ConflictJudge): SettledReadings {
    const inMemory = this.#sorted(this.#columns ?? new ReadingColumns());
    const count = (this.#spill?.runs.length ?? 0) + (this.#later?.file.runs.length ?? 0);
    const spilled = this.#spill?.open(count) ?? [];
    const later = this.#later?.file.open(count, this.#later.moved) ?? [];
    const all = count === 0 ? inMemory : new MergedReadings([...spilled, inMemory, ...later]);
    return new SettledReadings(this.#dates.leavesOut ? new KeptReadings(all, this.#dates) : all, judge);
  }

  /** Releases the space on disk and in memory. Idempotent. */
  close(): void {
    this.#spill?.close();
    this.#spill = undefined;
    if (this.#columns !== null) releaseColumns(this.#columns);
    this.#columns = null;
  }
}

function differs(unit: string | undefined, other: string | undefined): boolean {
  return unit !== undefined && other !== undefined && unit !== other;
}

// Readings by group and date: from memory, merged from several runs, and with repeated ones settled.

/** The readings of columns in a given order. */
class ColumnReadings implements SortedReadings {
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
class MergedReadings implements SortedReadings {
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
class KeptReadings implements SortedReadings {
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
class SettledReadings implements SortedReadings {
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
