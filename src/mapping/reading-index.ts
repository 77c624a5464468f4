/**
 * The readings of one file, grouped by target: what the batches are written from.
 * Kept in memory in columns; a later version spills groups to disk behind the same three calls (`add`, `finish`, `groups`).
 */
import { type IdentifierKind, type PushTarget, targetWords } from "../wire/index.ts";

/** Version and tags of a reading and its element's tags, kept once for all readings that share them. */
interface Extra {
  readonly version: string;
  /** Fields of the reading's JSON after `value`: `,"version":"v1","tags":{…}`. */
  readonly json: string;
  /** Bytes of `json`. */
  readonly bytes: number;
  /** Field of the element's JSON before `data`: `"tags":{…},`. Readings with another one go into another element. */
  readonly element: string;
  readonly elementBytes: number;
}

const NO_EXTRA: Extra = { version: "", json: "", bytes: 0, element: "", elementBytes: 0 };
const DATA = '"data":[';

/** The readings of one target, in columns of equal length. */
export class Group {
  readonly kind: IdentifierKind;
  /** In words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly words: string;
  /** Start of the element's JSON: `{"sourceSerialNumber":"M-1","mappingConfig":"kWh","data":[`. */
  readonly head: string;
  unit: string | undefined;
  /** Epoch milliseconds. */
  readonly dates: number[] = [];
  readonly values: number[] = [];
  /** Index of version and tags; 0 is neither. */
  readonly extras: number[] = [];
  /** Line or row in the file; 0 when unknown. */
  readonly rows: number[] = [];
  /** Index of the sheet; 0 when there is none. */
  readonly sheets: number[] = [];
  #ordered = true;
  #last = Number.NEGATIVE_INFINITY;

  constructor(kind: IdentifierKind, target: PushTarget) {
    this.kind = kind;
    this.words = targetWords(target);
    this.head = `${JSON.stringify(target).slice(0, -1)},${DATA}`;
  }

  /** `head` with a field of the element, see `Extra.element`. */
  headWith(element: string): string {
    return element === "" ? this.head : `${this.head.slice(0, -DATA.length)}${element}${DATA}`;
  }

  add(date: number, value: number, extra: number, row: number, sheet: number): void {
    if (date <= this.#last) this.#ordered = false;
    this.#last = date;
    this.dates.push(date);
    this.values.push(value);
    this.extras.push(extra);
    this.rows.push(row);
    this.sheets.push(sheet);
  }

  /** Positions of the readings to push, by date; of one date and version the latest row. Null: all, in the order they have. */
  order(extraAt: (index: number) => Extra): Uint32Array | null {
    if (this.#ordered) return null;
    const { dates, extras } = this;
    const order = Uint32Array.from(dates, (_, index) => index);
    order.sort((a, b) => (dates[a] ?? 0) - (dates[b] ?? 0) || a - b);
    let kept = 0;
    for (let from = 0; from < order.length; ) {
      let to = from + 1;
      while (to < order.length && dates[order[to] ?? 0] === dates[order[from] ?? 0]) to += 1;
      const latest = new Map<string, number>();
      for (let at = from; at < to; at += 1) {
        const index = order[at] ?? 0;
        const { version } = extraAt(extras[index] ?? 0);
        // Set anew, so that versions of one date keep the order of their latest rows.
        latest.delete(version);
        latest.set(version, index);
      }
      for (const index of latest.values()) order[kept++] = index;
      from = to;
    }
    return order.subarray(0, kept);
  }
}

type Tags = Readonly<Record<string, string>>;

export class ReadingIndex {
  readonly #groups = new Map<string, Group>();
  readonly #extras: Extra[] = [NO_EXTRA];
  readonly #extraIndexes = new Map<string, number>();
  readonly #sheets: string[] = [""];
  #orders: Map<Group, Uint32Array | null> | undefined;
  /** Readings whose target, date and version came again later. Known after `finish`. */
  superseded = 0;
  /** Readings to push. Known after `finish`. */
  points = 0;

  /** The group of a target; `key` is equal for equal targets. */
  group(key: string, kind: IdentifierKind, target: () => PushTarget): Group {
    let group = this.#groups.get(key);
    if (group === undefined) {
      group = new Group(kind, target());
      this.#groups.set(key, group);
    }
    return group;
  }

  /** Keeps version and tags once; the result goes with each reading that has them. */
  extra(version: string | undefined, tags: Tags | undefined, batchTags: Tags | undefined): number {
    if (version === undefined && tags === undefined && batchTags === undefined) return 0;
    const json =
      (version === undefined ? "" : `,"version":${JSON.stringify(version)}`) +
      (tags === undefined ? "" : `,"tags":${JSON.stringify(tags)}`);
    const element = batchTags === undefined ? "" : `"tags":${JSON.stringify(batchTags)},`;
    const key = `${json}\n${element}`;
    let index = this.#extraIndexes.get(key);
    if (index === undefined) {
      index = this.#extras.length;
      this.#extras.push({
        version: version ?? "",
        json,
        bytes: Buffer.byteLength(json),
        element,
        elementBytes: Buffer.byteLength(element),
      });
      this.#extraIndexes.set(key, index);
    }
    return index;
  }

  sheet(name: string | undefined): number {
    if (name === undefined) return 0;
    const known = this.#sheets.indexOf(name);
    return known === -1 ? this.#sheets.push(name) - 1 : known;
  }

  sheetName(index: number): string | undefined {
    return index === 0 ? undefined : this.#sheets[index];
  }

  extraAt = (index: number): Extra => this.#extras[index] ?? NO_EXTRA;

  /** Settles which readings are pushed. Once, when all are in. */
  finish(): void {
    this.#orders = new Map();
    for (const group of this.#groups.values()) {
      const order = group.order(this.extraAt);
      this.#orders.set(group, order);
      const kept = order?.length ?? group.dates.length;
      this.points += kept;
      this.superseded += group.dates.length - kept;
    }
  }

  /** Groups in the order of their first rows, with the positions to push (null: all). */
  groups(): { group: Group; order: Uint32Array | null }[] {
    return [...this.#groups.values()].map((group) => ({ group, order: this.#orders?.get(group) ?? null }));
  }

  /** Earliest and latest date of what is pushed, in epoch milliseconds; null without readings. */
  period(): { from: number; to: number } | null {
    let from = Number.POSITIVE_INFINITY;
    let to = Number.NEGATIVE_INFINITY;
    for (const { group, order } of this.groups()) {
      const last = order?.length ?? group.dates.length;
      if (last === 0) continue;
      from = Math.min(from, group.dates[order?.[0] ?? 0] ?? from);
      to = Math.max(to, group.dates[order?.[last - 1] ?? last - 1] ?? to);
    }
    return from <= to ? { from, to } : null;
  }
}
