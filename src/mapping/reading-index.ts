/**
 * The readings of one file, from the mapper's `emit` to the batches: collected in memory, sorted and spilled to disk
 * whenever the memory limit is reached, and returned by target and date. The result depends on the readings alone, not
 * on the times of the spills.
 */
import type { PushTarget } from "#wire/push.ts";
import { type IdentifierKind, targetWords } from "#wire/target.ts";
import { Extras } from "./extras.ts";
import { OddDates, type OddSteps, STEP_MS_MAX } from "./plausible.ts";
import { ReadingColumns, releaseColumns, takeColumns } from "./reading-columns.ts";
import type { Rejections } from "./rejections.ts";
import {
  ColumnReadings,
  type ConflictJudge,
  KeptReadings,
  MergedReadings,
  SettledReadings,
} from "./sorted-readings.ts";
import { type MovedRows, type SpilledRun, SpillFile } from "./spill.ts";

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
