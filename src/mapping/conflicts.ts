/**
 * Readings of one target, date and version with different values. Every mapper has the setting `conflicts` for them,
 * beside its own settings; the mapper chooses its default.
 */
import { z } from "zod";
import type { ReadingConflict } from "./contract.ts";
import { writeIso } from "./iso-text.ts";
import type { ReadingIndex } from "./reading-index.ts";
import type { Rejections } from "./rejections.ts";
import type { SortedReading } from "./spill.ts";

export const CONFLICTS_SETTING = "conflicts";

export const conflictRule = z
  .enum(["last", "refuse", "first"])
  .describe(
    "Rows of one target, date and version with different values: the `last` or the `first` counts, or " +
      "the rows are refused.",
  );

export type ConflictRule = z.output<typeof conflictRule>;

/** Default of a mapper that sets none: the service itself overwrites. */
export const CONFLICT_RULE_DEFAULT: ConflictRule = "last";

/** Limit on the conflicts that are kept in full; all are counted. */
const CONFLICTS_KEPT_MAX = 20;

const HINT =
  "Which of them counts is not known; or a part of the date or of the target is not read, such as a channel. Only " +
  "where later rows correct earlier ones, `conflicts: last` in the trigger's metadata leaves out the earlier ones, " +
  "and `first` the later ones.";
/** For targets of which all times of a day come again. */
const DAY_HINT =
  "All times of a day come again: a part of the date is not read, such as a day that stands only above its block of " +
  "rows or in another column. The settings of the date have to name it. `conflicts: last` would keep one day and " +
  "lose the others.";
const DAY_MS = 25 * 3_600_000;
const DATES_MIN = 4;

/** The dates of one target with rows that were refused. */
interface Clash {
  readonly first: number;
  latest: number;
  dates: number;
  /** Places of the rows that are kept in full among the rejections. */
  readonly kept: number[];
}

/** The conflicts of one file. */
export class Conflicts {
  readonly rule: ConflictRule;
  readonly kept: ReadingConflict[] = [];
  /** Number of readings that were replaced by a reading with another value. */
  count = 0;
  /** Number of readings that were refused because of a conflict. */
  refused = 0;
  readonly #index: ReadingIndex;
  readonly #rejections: Rejections;
  /** By rank of the target. */
  readonly #clashes = new Map<number, Clash>();

  constructor(rule: ConflictRule, index: ReadingIndex, rejections: Rejections) {
    this.rule = rule;
    this.#index = index;
    this.#rejections = rejections;
  }

  /** Records that `taken` counts instead of `left`. */
  replaced(taken: Readonly<SortedReading>, left: Readonly<SortedReading>): void {
    this.count += 1;
    if (this.kept.length >= CONFLICTS_KEPT_MAX) return;
    const { target, date, version } = this.#keyOf(taken);
    this.kept.push({
      ...{ target, date, ...(version === "" ? {} : { version }) },
      ...{ taken: this.#rowOf(taken), left: this.#rowOf(left) },
    });
  }

  /** Records that neither reading counts. */
  refuse(reading: Readonly<SortedReading>, other: Readonly<SortedReading>): void {
    this.refused += 1;
    const { target, date, version } = this.#keyOf(reading);
    const { row, sheet } = this.#rowOf(other);
    const where = row === undefined ? "another row" : `row ${row}`;
    const place = `${where}${sheet === undefined ? "" : ` of the sheet "${sheet}"`}`;
    const of = version === "" ? "" : ` in the version "${version}"`;
    const { value: _, ...at } = this.#rowOf(reading);
    const kept = this.#rejections.rows.length;
    this.#rejections.addTaken(at, {
      message:
        `the value is ${reading.value}, and ${other.value} in ${place}, for the same target and date: ` +
        `"${target}" at "${date}"${of}`,
      text: String(reading.value),
      hint: HINT,
    });
    this.#noteClash(reading, kept);
  }

  #noteClash({ rank, date }: Readonly<SortedReading>, kept: number): void {
    const clash = this.#clashes.get(rank) ?? { first: date, latest: Number.NaN, dates: 0, kept: [] };
    this.#clashes.set(rank, clash);
    if (date !== clash.latest) clash.dates += 1;
    clash.latest = date;
    if (this.#rejections.rows.length > kept) clash.kept.push(kept);
  }

  /** Names the cause where the conflicts of a target show one. Called when all are known. */
  explain(): void {
    const { rows } = this.#rejections;
    for (const [rank, { first, latest, dates, kept }] of this.#clashes) {
      const others = this.#index.groupAt(rank)?.points ?? 0;
      if (dates < DATES_MIN || latest - first > DAY_MS || others > dates) continue;
      for (const at of kept) {
        const row = rows[at];
        if (row !== undefined) rows[at] = { ...row, hint: DAY_HINT };
      }
    }
  }

  #keyOf({ rank, date, extra }: Readonly<SortedReading>) {
    const target = this.#index.groupAt(rank)?.words ?? "";
    return { target, date: writeIso(date), version: extra.version };
  }

  #rowOf({ row, sheet, value }: Readonly<SortedReading>): ReadingConflict["taken"] {
    const name = this.#index.sheetName(sheet);
    return { ...(row === 0 ? {} : { row }), ...(name === undefined ? {} : { sheet: name }), value };
  }
}
