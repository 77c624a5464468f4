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
  "Which of them counts is not known. If the file corrects itself by later rows, set `conflicts: " +
  "last` in the trigger's metadata; `first` keeps the earlier row.";

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
    this.#rejections.addTaken(at, {
      message:
        `the value is ${reading.value}, and ${other.value} in ${place}, for the same target and date: ` +
        `"${target}" at "${date}"${of}`,
      text: String(reading.value),
      hint: HINT,
    });
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
