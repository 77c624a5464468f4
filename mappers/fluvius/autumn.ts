/**
 * The repeated hour of autumn. Fluvius writes both passes of an interval one after the other (02:00, 02:00, 02:15,
 * 02:15, …), so the rows of a series are held until it leaves the hour; the number of rows for each time then decides
 * their pass.
 */
import { RowError } from "headgate/mapper";

/** A row at a time that occurs twice. */
interface Held<Row> {
  readonly row: Row;
  /** The text as written. */
  readonly text: string;
  readonly earlier: number;
  readonly later: number;
  /** Whether its end shows that it is of the first pass. */
  readonly isFirst: boolean;
}

interface Series<Row> {
  readonly held: Held<Row>[];
  /** Last instant before the hour; NaN at the start of the file. */
  before: number;
}

/** Limit on the rows held of a series; a quarter-hour file has eight. */
const HELD_MAX = 1000;

export class AutumnHour<Row> {
  readonly #series = new Map<string, Series<Row>>();
  readonly #release: (row: Row, start: number) => void;
  readonly #refuse: (row: Row, fault: RowError) => void;

  constructor(release: (row: Row, start: number) => void, refuse: (row: Row, fault: RowError) => void) {
    this.#release = release;
    this.#refuse = refuse;
  }

  /** A row whose time occurs once: the held rows of its series are settled. */
  pass(name: string, start: number): void {
    const series = this.#seriesOf(name);
    if (series.held.length > 0) this.#settle(series, start);
    series.before = start;
  }

  /** A row whose time occurs twice. Throws a `RowError`. */
  hold(name: string, held: Held<Row>): void {
    const series = this.#seriesOf(name);
    if (series.held.length >= HELD_MAX)
      throw new RowError("too many rows of one series fall into the repeated hour of autumn", {
        text: held.text,
      });
    series.held.push(held);
  }

  finish(): void {
    for (const series of this.#series.values()) this.#settle(series, Number.NaN);
  }

  #seriesOf(name: string): Series<Row> {
    let series = this.#series.get(name);
    if (series === undefined) {
      series = { held: [], before: Number.NaN };
      this.#series.set(name, series);
    }
    return series;
  }

  #settle({ held, before }: Series<Row>, after: number): void {
    const rows = held.splice(0);
    const byTime = Map.groupBy(rows, ({ earlier }) => earlier);
    const pairs = [...byTime.values()].filter((same) => same.length === 2);
    const backwards = isBackwards(rows, before, after) ?? pairs.some(([one, two]) => !one?.isFirst && two?.isFirst);
    for (const { row, text, earlier, later } of rows) {
      const same = byTime.get(earlier) ?? [];
      const nth = same.findIndex((one) => one.row === row);
      const [one, two] = backwards ? same.toReversed() : same;
      if (same.length !== 2) this.#refuse(row, unpaired(text, same.length));
      else if (two?.isFirst === true && one?.isFirst === false) this.#refuse(row, contradicted(text));
      else this.#release(row, (nth === 0) !== backwards ? earlier : later);
    }
  }
}

/** A file that runs backwards has the second pass first. Undefined where no other time shows how it runs. */
function isBackwards<Row>(rows: readonly Held<Row>[], before: number, after: number): boolean | undefined {
  const [first = 0, last = 0] = [rows[0]?.earlier, rows.at(-1)?.earlier];
  if (!Number.isNaN(after)) return after < first;
  if (!Number.isNaN(before)) return before > first;
  return first === last ? undefined : first > last;
}

function contradicted(text: string): RowError {
  return new RowError(
    `of the two rows of "${text}" the order makes the one the second that ends with the first pass of the hour`,
    { text, hint: "Were the rows sorted by another column? Take the file as Fluvius wrote it." },
  );
}

function unpaired(text: string, count: number): RowError {
  return new RowError(
    count === 1
      ? `"${text}" occurs twice because of daylight saving, and the file has one row of it only`
      : `"${text}" occurs twice because of daylight saving, and the file has ${count} rows of it`,
    {
      text,
      hint:
        "The file does not show which pass of the hour a row belongs to; download the file again with " +
        "the whole day.",
    },
  );
}
