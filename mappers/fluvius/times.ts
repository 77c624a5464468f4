/** Start and end of the interval of a row. */
import { RowError, type TextCells, type TimeTools } from "headgate/mapper";
import { inColumn } from "../_formats/columns.ts";
import type { ColumnName, Columns } from "./columns.ts";

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;

/**
 * A start that occurs once, or both instants of one that occurs twice. `isFirst`: the end is written as a time that is
 * not after the start (02:45 to 02:00), as only an interval that ends with the first pass can.
 */
export type Start =
  | { readonly at: number }
  | { readonly text: string; readonly earlier: number; readonly later: number; readonly isFirst: boolean };

export class Times {
  readonly #time: TimeTools;
  readonly #zone: string;
  readonly #columns: Columns;
  #day = "";
  #minutes = 0;

  constructor(time: TimeTools, zone: string, columns: Columns) {
    this.#time = time;
    this.#zone = zone;
    this.#columns = columns;
  }

  /** Throws a `RowError`. */
  startOf(cells: TextCells): Start {
    const { text, format } = this.#wall(cells, "fromDate", "fromTime");
    return inColumn(this.#columns.name("fromDate"), text, () => {
      if (!this.#hasRepeatedHour(this.#columns.text(cells, "fromDate")))
        return { at: this.#time.local(text, format, this.#zone).epochMilliseconds };
      const earlier = this.#time.local(text, format, this.#zone, "earlier").epochMilliseconds;
      const later = this.#time.local(text, format, this.#zone, "later").epochMilliseconds;
      return earlier === later
        ? { at: earlier }
        : { text, earlier, later, isFirst: (this.#minutesBetween(cells) ?? 1) <= 0 };
    });
  }

  /**
   * End of the interval that begins at `start`. Within the repeated hour the end in the file may be in either pass
   * (02:45 to 02:00), so the length of the interval counts. Throws a `RowError`.
   */
  endOf(cells: TextCells, start: number): number {
    const { text, format } = this.#wall(cells, "untilDate", "untilTime");
    return inColumn(this.#columns.name("untilDate"), text, () => {
      const date = this.#columns.text(cells, "fromDate");
      const untilDate = this.#columns.text(cells, "untilDate");
      if (!this.#hasRepeatedHour(date) || untilDate !== date)
        return this.#time.local(text, format, this.#zone).epochMilliseconds;
      const minutes =
        minutesOf(this.#columns.text(cells, "untilTime")) - minutesOf(this.#columns.text(cells, "fromTime"));
      const plain = this.#time.local(text, format, this.#zone, "earlier").epochMilliseconds;
      // The length identifies quarter-hours and hours; a longer interval ends outside of the repeated hour.
      if (plain - start > 2 * 60 * MINUTE_MS) return plain;
      return start + (minutes > 0 ? minutes : minutes + 60) * MINUTE_MS;
    });
  }

  /**
   * Minutes of the interval by its texts; undefined for days, and for days on which the clock changes. `isTwice`: it
   * begins in the repeated hour. Throws a `RowError` for one that ends before it begins.
   */
  lengthOf(cells: TextCells, isTwice: boolean): number | undefined {
    const minutes = this.#minutesBetween(cells);
    if (minutes === undefined) return undefined;
    if (minutes > 0 || (isTwice && minutes > -60))
      return this.#lengthOf(this.#columns.text(cells, "fromDate")) === DAY_MINUTES ? minutes : undefined;
    const [from, until] = [this.#columns.text(cells, "fromTime"), this.#columns.text(cells, "untilTime")];
    throw new RowError(`the interval ends at ${until}, and not after it begins, at ${from}`, {
      column: this.#columns.name("untilTime"),
      text: until,
    });
  }

  /** Minutes of the clock from start to end; undefined where one of both is not there, or has no time of day. */
  #minutesBetween(cells: TextCells): number | undefined {
    const [date, from] = [this.#columns.text(cells, "fromDate"), this.#columns.text(cells, "fromTime")];
    const [untilDate, until] = [this.#columns.text(cells, "untilDate"), this.#columns.text(cells, "untilTime")];
    if (from === "" || until === "" || untilDate === "") return undefined;
    const dayMs = (day: string) => this.#time.dayStart(day, dayFormatOf(day), "UTC").epochMilliseconds;
    const daysMs = untilDate === date ? 0 : dayMs(untilDate) - dayMs(date);
    return daysMs / MINUTE_MS + minutesOf(until) - minutesOf(from);
  }

  #wall(cells: TextCells, date: ColumnName, time: ColumnName): { text: string; format: string } {
    const day = this.#columns.text(cells, date);
    const clock = this.#columns.text(cells, time);
    const dayFormat = dayFormatOf(day);
    if (clock === "") return { text: day, format: dayFormat };
    return { text: `${day} ${clock}`, format: `${dayFormat} ${clock.length > 5 ? "HH:mm:ss" : "HH:mm"}` };
  }

  #hasRepeatedHour(day: string): boolean {
    return this.#lengthOf(day) > DAY_MINUTES;
  }

  /** Minutes of the day; rows often share theirs. */
  #lengthOf(day: string): number {
    if (day !== this.#day) {
      this.#minutes = this.#time.dayLength(day, dayFormatOf(day), this.#zone);
      this.#day = day;
    }
    return this.#minutes;
  }
}

/** Decided by the position of the four digits of the year: 20-10-2021 begins like a year, but does not. */
function dayFormatOf(day: string): string {
  if (/^\d{4}-/.test(day)) return "yyyy-MM-dd";
  return day.includes("/") ? "dd/MM/yyyy" : "dd-MM-yyyy";
}

function minutesOf(text: string): number {
  const match = /^(\d\d):(\d\d)/.exec(text);
  if (match === null) throw new RowError(`"${text}" is not a time of day`, { text });
  return Number(match[1]) * 60 + Number(match[2]);
}
