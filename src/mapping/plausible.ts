/**
 * Dates that no reading has, and dates that do not fit the other dates of their target: those of clocks that were
 * reset, of swapped days and months, and of ends of days with the date of the wrong day. Each date is compared with
 * those of the rows before and after it, so that the files of all mappers are checked, and no sort hides the fault.
 */
import { z } from "zod";
import { writeIso } from "./iso-text.ts";
import type { ReadingColumns } from "./reading-columns.ts";
import type { Group } from "./reading-index.ts";
import type { Findings, Rejections } from "./rejections.ts";

/**
 * Dates outside this range are faults of clocks and of conversions: a zero in a spreadsheet is 1899, a missing year
 * 9999.
 */
const DATE_MIN_MS = Date.UTC(1901, 0, 1);
const DATE_MAX_MS = Date.UTC(2200, 0, 1);

/** Whether a reading may have this date, in epoch milliseconds. */
export function isPlausible(ms: number): boolean {
  return ms >= DATE_MIN_MS && ms < DATE_MAX_MS;
}

/** The setting that every mapper has, beside its own settings. */
export const DATES_SETTING = "dates";

export const dateRules = z
  .strictObject({
    floor: z.iso
      .date()
      .default("1990-01-01")
      .describe(
        "Rows with earlier dates are refused where their target has later ones too, since clocks that lost their " +
          "time begin there.",
      ),
    outliers: z
      .enum(["refuse", "keep"])
      .default("refuse")
      .describe(
        "Dates far from those of the rows before and after them, by 31 days and by 100 of the usual steps, and ends " +
          "of days that stand a day too early: `refuse` these rows, or `keep` them.",
      ),
  })
  .prefault({})
  .describe("Dates that do not fit the others of their target.");

export type DateRules = z.output<typeof dateRules>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Longer steps, and steps back, are checked. */
export const STEP_MS_MAX = 22 * HOUR_MS;
const JUMP_MS = 31 * DAY_MS;
const MEDIANS = 100;
const ROWS_MIN = 10;
const QUARTER_MS = 15 * 60_000;
/** Limits on what is kept: dates to judge of all targets, those before the floor of one, and steps of one. */
const SUSPECTS_MAX = 200_000;
const EARLY_MAX = 100;
const STEPS_MAX = 255;
/** A target of which most steps are long has so many suspects, no more. */
const JUMPS_FREE = 4;
const MONTHS_MAX = 12;

type DateFinding = Parameters<Findings["add"]>[0];

type SuspectKind = "early" | "outlier" | "day" | "end";

interface Suspect {
  readonly kind: SuspectKind;
  readonly group: Group;
  readonly date: number;
  readonly row: number;
  readonly sheet: number;
  /** Dates of the rows around it; NaN where there is none. */
  readonly before: number;
  readonly after: number;
}

/** The latest unusual steps of one target. Counts of rows say to which row they belong. */
export class OddSteps {
  /** The latest row that followed an unusual step. */
  rows = 0;
  row = 0;
  sheet = 0;
  before = Number.NaN;
  jumps = 0;
  /** Rows that followed each other by a month. */
  months = 0;
  monthRows = 0;
  /** Whether the step before was unusual as well. */
  isRepeated = false;
}

/** The dates of one file. */
export class OddDates {
  readonly #rules: DateRules;
  readonly #floor: number;
  readonly #suspects: Suspect[] = [];
  readonly #odd: Group[] = [];
  readonly #steps = new Map<number, number[]>();
  readonly #leftOut = new Set<string>();
  /** Targets with dates before the floor; and the ranks of those that have later ones too. */
  readonly #early = new Set<Group>();
  readonly #mixed = new Set<number>();
  readonly #findings: DateFinding[] = [];
  #isOver = false;

  constructor(rules: DateRules = dateRules.parse(undefined)) {
    this.#rules = rules;
    this.#floor = Date.parse(rules.floor);
  }

  /** Called for each reading that does not follow the last of its target by at most `STEP_MS_MAX`. */
  note(group: Group, date: number, row: number, sheet: number): void {
    if (date < this.#floor) {
      group.early += 1;
      this.#early.add(group);
      if (group.early <= EARLY_MAX) this.#suspect("early", group, { date, row, sheet, before: Number.NaN }, Number.NaN);
      return;
    }
    const before = group.latest;
    group.latest = date;
    group.rows += 1;
    if (group.rows === 1) {
      group.first = date;
      group.firstRow = row;
      group.firstSheet = sheet;
      return;
    }
    const step = date - before;
    const isMonth = step >= 28 * DAY_MS - HOUR_MS && step <= 31 * DAY_MS + HOUR_MS;
    const isDayBack = step < -STEP_MS_MAX && step >= -25 * HOUR_MS;
    const isJump = Math.abs(step) > JUMP_MS;
    let { odd } = group;
    if (odd === undefined) {
      if (!isMonth && !isDayBack && !isJump) return;
      odd = new OddSteps();
      group.odd = odd;
      this.#odd.push(group);
    }
    const follows = odd.rows === group.rows - 1;
    if (follows) this.#judgeRow(group, odd, { before: odd.before, date: before }, date, isJump);
    if (isJump) this.#jump(group, odd, before, date);
    this.#months(group, odd, { step, isMonth }, { row, sheet });
    if (!isDayBack && !isJump) return;
    odd.isRepeated = follows;
    odd.rows = group.rows;
    odd.before = before;
    odd.row = row;
    odd.sheet = sheet;
  }

  /** The row before is known from both sides now. */
  #judgeRow(group: Group, odd: OddSteps, at: Pick<Suspect, "before" | "date">, after: number, isJump: boolean): void {
    const { before, date } = at;
    const place = { before, date, row: odd.row, sheet: odd.sheet };
    if (isJump && Math.abs(date - before) > JUMP_MS) {
      // Where most steps are long, none of them is unusual.
      if (odd.jumps <= JUMPS_FREE || 2 * odd.jumps <= group.rows) this.#suspect("outlier", group, place, after);
    } else if (isDayEarly(before, date, after)) this.#suspect("day", group, place, after);
  }

  #jump(group: Group, odd: OddSteps, before: number, date: number): void {
    odd.jumps += 1;
    if (!this.#steps.has(group.id)) this.#steps.set(group.id, []);
    if (group.rows === 2)
      this.#suspect(
        "end",
        group,
        { date: before, row: group.firstRow, sheet: group.firstSheet, before: Number.NaN },
        date,
      );
  }

  #months(
    group: Group,
    odd: OddSteps,
    { step, isMonth }: { readonly step: number; readonly isMonth: boolean },
    at: Pick<Suspect, "row" | "sheet">,
  ): void {
    const follows = odd.monthRows === group.rows - 1;
    if (follows && odd.months === MONTHS_MAX && step < 0 && step > -366 * DAY_MS)
      this.#findings.push({
        kind: "dayAndMonth",
        message: "dates run a month a row through twelve rows and begin again: are day and month swapped?",
        place: { row: at.row },
        attention: true,
      });
    if (!isMonth) return;
    odd.months = follows ? odd.months + 1 : 2;
    odd.monthRows = group.rows;
  }

  #suspect(
    kind: SuspectKind,
    group: Group,
    at: Pick<Suspect, "date" | "row" | "sheet" | "before">,
    after: number,
  ): void {
    if (this.#suspects.length >= SUSPECTS_MAX) this.#isOver = true;
    else this.#suspects.push({ kind, group, ...at, after });
  }

  /** Learns the usual steps of targets with suspects. Called before the columns are sorted or cleared. */
  sample({ groups, dates, count }: ReadingColumns): void {
    if (this.#steps.size === 0) return;
    const latest = new Map<number, number>();
    for (let at = 0; at < count; at += 1) {
      const group = groups[at] ?? 0;
      const steps = this.#steps.get(group);
      const date = dates[at] ?? 0;
      if (steps === undefined || steps.length >= STEPS_MAX || date < this.#floor) continue;
      const step = Math.abs(date - (latest.get(group) ?? date));
      latest.set(group, date);
      if (step > 0) steps.push(step);
    }
  }

  /** Whether other dates than these may be needed to judge: those of another part of the file. */
  get hasAny(): boolean {
    return this.#early.size > 0 || this.#odd.length > 0;
  }

  /** Whether a row of this date may follow the last of the group unseen. */
  isUsual(group: Group, date: number): boolean {
    const step = Math.abs(date - group.latest);
    return group.rows === 0 || (step <= 28 * DAY_MS - HOUR_MS && !(step >= STEP_MS_MAX && step <= 25 * HOUR_MS));
  }

  /**
   * Refuses the rows with dates that do not fit, and returns the findings of the others. Called once, when all readings
   * are in. `sheetName` gives the name of a sheet by its index.
   */
  judge(rejections: Rejections, sheetName: (sheet: number) => string | undefined): readonly DateFinding[] {
    const keeps = this.#rules.outliers === "keep";
    for (const group of this.#odd) this.#judgeLast(group);
    for (const suspect of this.#suspects) {
      const message = this.#faultOf(suspect);
      if (message === undefined) continue;
      const { kind, group, date, row, sheet } = suspect;
      const name = sheetName(sheet);
      const place = { ...(row === 0 ? {} : { row }), ...(name === undefined ? {} : { sheet: name }) };
      if (kind === "end" || (keeps && kind !== "early"))
        this.#findings.push({ kind: "outlier", message: FOUND[kind], place, attention: !keeps });
      else {
        rejections.addTaken(place, { message, text: undefined, hint: HINTS[kind], column: undefined });
        this.#leftOut.add(keyOf(group.rank, date, row, sheet));
      }
    }
    if (this.#isOver) this.#findings.push({ kind: "outlier", message: FOUND.further, attention: true });
    for (const group of this.#early) this.#judgeEarly(group, rejections);
    return this.#findings;
  }

  /** The last row of a target that was preceded by an unusual step. */
  #judgeLast(group: Group): void {
    const { odd } = group;
    if (odd === undefined || odd.rows !== group.rows) return;
    const { before, row, sheet } = odd;
    const back = before - group.latest;
    if (Math.abs(back) > JUMP_MS) this.#suspect("end", group, { date: group.latest, row, sheet, before }, Number.NaN);
    else if (back >= DAY_MS - HOUR_MS && back < DAY_MS && !odd.isRepeated && group.rows > 2)
      this.#findings.push({
        ...{ kind: "midnight", message: FOUND.day, attention: true },
        ...(row === 0 ? {} : { place: { row } }),
      });
  }

  /** Dates before the floor: history where all are, and otherwise refused, of which only the first are known by row. */
  #judgeEarly(group: Group, rejections: Rejections): void {
    const { early, rows } = group;
    const { floor } = this.#rules;
    if (rows === 0) {
      const message = `all dates of a target are before ${floor}: history, or a clock that was reset`;
      this.#findings.push({ kind: "early", message, count: early, attention: true });
      return;
    }
    this.#mixed.add(group.rank);
    if (early <= EARLY_MAX) return;
    const message = `${early - EARLY_MAX} more rows of "${group.words}" have dates before ${floor}`;
    rejections.add({}, { message, text: undefined, hint: HINTS.early, column: undefined });
  }

  /** Why the date does not fit; undefined where it does. */
  #faultOf({ kind, group, date, before, after }: Suspect): string | undefined {
    const shown = `the date ${quoted(date)} of "${group.words}"`;
    if (kind === "early")
      return group.rows === 0
        ? undefined
        : `${shown} is before ${this.#rules.floor}, and this target has later dates, such as ${quoted(group.latest)}`;
    if (kind === "day") return `${shown} is a day before its place between ${aroundWords(before, after)}`;
    const usual = medianOf(this.#steps.get(group.id) ?? []) ?? Math.abs(after - before) / 2;
    const gaps = [before, after].flatMap((other) => (Number.isNaN(other) ? [] : [Math.abs(date - other)]));
    if (group.rows < ROWS_MIN || gaps.some((gap) => gap <= MEDIANS * usual)) return undefined;
    return kind === "end" ? FOUND.end : `${shown} is far from those of ${aroundWords(before, after)}`;
  }

  /** Whether the reading was refused because of its date. */
  isLeftOut(rank: number, date: number, row: number, sheet: number): boolean {
    return (date < this.#floor && this.#mixed.has(rank)) || this.#leftOut.has(keyOf(rank, date, row, sheet));
  }

  get leavesOut(): boolean {
    return this.#leftOut.size > 0 || this.#mixed.size > 0;
  }
}

const FOUND = {
  outlier: "dates are far from those of the rows before and after them",
  day: "dates step back to the start of their day, as ends of days do that have the date of that day",
  end: "the first or the last date of a target is far from its others",
  further: "there are more unusual dates than are compared with those around them",
} as const;

const KEEP = "If the date is right, set `dates: { outliers: keep }` in the trigger's metadata.";
const HINTS = {
  early:
    "Clocks that lost their time begin at such a date: the sender knows when the values were measured. If the dates " +
    "are right, set `dates: { floor: 1970-01-01 }`, or an earlier day, in the trigger's metadata.",
  outlier: `Was the clock of the device set wrong, or are day and month swapped? ${KEEP}`,
  day:
    "Where a file writes the end of a day as 00:00 with the date of that day, the mappers delimited, workbook and " +
    `records need \`midnight: endOfDay\`. ${KEEP}`,
} as const;

/** Whether the date is that of a place between the others, a day earlier; days have 23 to 25 hours. */
function isDayEarly(before: number, date: number, after: number): boolean {
  const half = (after - before) / 2;
  const place = before + half;
  const isWhole = date % QUARTER_MS === 0;
  return isWhole && half > 0 && half <= HOUR_MS && [-HOUR_MS, 0, HOUR_MS].includes(date + DAY_MS - place);
}

/** In quotes, so that rows with the same fault count as one reason. */
function quoted(date: number): string {
  return `"${writeIso(date)}"`;
}

function aroundWords(before: number, after: number): string {
  return `the rows before and after it, ${quoted(before)} and ${quoted(after)}`;
}

function medianOf(steps: readonly number[]): number | undefined {
  return steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)];
}

function keyOf(rank: number, date: number, row: number, sheet: number): string {
  return `${rank} ${date} ${row} ${sheet}`;
}
