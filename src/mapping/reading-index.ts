/**
 * The readings of one file, from the mapper's `emit` to the batches: collected in memory, sorted and spilled to disk each time
 * that they have become many, and given back by target and date. What comes out depends on the readings alone, and not on
 * when they were spilled.
 */
import type { PushTarget } from "../wire/push.ts";
import { type IdentifierKind, targetWords } from "../wire/target.ts";
import { Extras } from "./extras.ts";
import { giveColumns, ReadingColumns, takeColumns } from "./reading-columns.ts";
import { ColumnReadings, type ConflictJudge, MergedReadings, SettledReadings } from "./sorted-readings.ts";
import { SpillFile } from "./spill.ts";

/** About 5 MB in columns, and as much again while they are sorted. */
export const ROWS_IN_MEMORY_MAX = 131_072;
/** Versions and tags in memory, in bytes. */
const EXTRAS_BYTES_MAX = 8_000_000;
const DATA = '"data":[';

/** Ranks put groups in order: by the kind of identifier, then by first row. */
const GROUPS_MAX = 2 ** 28;

/** One target. */
export class Group {
  /** Counted from 0, in the order of first rows. */
  readonly id: number;
  readonly rank: number;
  readonly kind: IdentifierKind;
  /** JSON of the target: little to keep for each of many. */
  readonly #json: string;
  unit: string | undefined;
  /** Readings to push, their earliest and latest date, and how many have no version. Known when all batches are made. */
  points = 0;
  from = 0;
  to = 0;
  untagged = 0;

  constructor(id: number, kindOrder: number, kind: IdentifierKind, json: string) {
    this.id = id;
    this.rank = kindOrder * GROUPS_MAX + id;
    this.kind = kind;
    this.#json = json;
  }

  get target(): PushTarget {
    return JSON.parse(this.#json) as PushTarget;
  }

  /** In words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  get words(): string {
    return targetWords(this.target);
  }

  /** Start of the element's JSON: `{"sourceSerialNumber":"M-1","mappingConfig":"kWh","data":[`; `element` see `Extra`. */
  headWith(element: string): string {
    return `${this.#json.slice(0, -1)},${element}${DATA}`;
  }
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
  /** Null when it is closed: what a mapper left behind may emit still, and the columns are another's then. */
  #columns: ReadingColumns | null = takeColumns();
  #spill: SpillFile | undefined;
  #fault: unknown;
  /** Readings so far. */
  readings = 0;

  /** `spillPath` is taken when there are more than `rowsMax` readings. */
  constructor(spillPath: string, rowsMax = ROWS_IN_MEMORY_MAX) {
    this.#spillPath = spillPath;
    this.#rowsMax = rowsMax;
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

  /** Keeps version and tags; the result goes with the next reading. */
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

  /** Throws what the disk says when the readings cannot be spilled; also each time after that, since one is missing then. */
  add(group: Group, date: number, value: number, extra: number, row: number, sheet: number): void {
    if (this.#fault !== undefined) throw this.#fault;
    const columns = this.#columns;
    if (columns === null) return;
    columns.add(group.id, date, value, extra, row, sheet);
    this.readings += 1;
    if (columns.count >= this.#rowsMax || this.#extras.bytes > EXTRAS_BYTES_MAX) this.#spillColumns(columns);
  }

  /** Why readings are missing: what the disk said, which a mapper may have caught. Undefined when none are. */
  get fault(): unknown {
    return this.#fault;
  }

  #spillColumns(columns: ReadingColumns): void {
    try {
      this.#spill ??= new SpillFile(this.#spillPath);
      this.#spill.write(this.#sorted(columns));
    } catch (thrown) {
      this.#fault = thrown;
      throw thrown;
    }
    columns.clear();
    this.#extras.clear();
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

  /** What is pushed, by kind, target and date. Once, when all readings are in and before it is closed. */
  settled(judge: ConflictJudge): SettledReadings {
    const inMemory = this.#sorted(this.#columns ?? new ReadingColumns());
    const spilled = this.#spill?.open() ?? [];
    const all = spilled.length === 0 ? inMemory : new MergedReadings([...spilled, inMemory]);
    return new SettledReadings(all, judge);
  }

  /** Gives the space on the disk and in memory back. Idempotent. */
  close(): void {
    this.#spill?.close();
    this.#spill = undefined;
    if (this.#columns !== null) giveColumns(this.#columns);
    this.#columns = null;
  }
}
