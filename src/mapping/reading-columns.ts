/** Readings in memory, in columns of numbers, since objects would take several times the memory. */

/** Initial rows of the columns; they double as they fill. */
const ROWS_FIRST = 1024;
/** Limit on the rows of columns that are kept for the next file. */
const ROWS_KEPT_MAX = 8 * ROWS_FIRST;

/** Columns of small files are reused: new ones for each file would load the garbage collector. */
let kept: ReadingColumns | null = null;

export function takeColumns(): ReadingColumns {
  const taken = kept ?? new ReadingColumns();
  kept = null;
  return taken;
}

/** Releases columns for reuse; the caller must no longer use them. */
export function releaseColumns(columns: ReadingColumns): void {
  columns.clear();
  if (columns.dates.length <= ROWS_KEPT_MAX) kept = columns;
}

export class ReadingColumns {
  /** Number of the group, see `Group.id`. */
  groups = new Uint32Array(ROWS_FIRST);
  /** Epoch milliseconds. */
  dates = new Float64Array(ROWS_FIRST);
  values = new Float64Array(ROWS_FIRST);
  /** Index of version and tags; 0 is neither. */
  extras = new Uint32Array(ROWS_FIRST);
  /** Line or row in the file; 0 when unknown. */
  rows = new Uint32Array(ROWS_FIRST);
  /** Index of the sheet; 0 when there is none. */
  sheets = new Uint32Array(ROWS_FIRST);
  count = 0;

  add(group: number, date: number, value: number, extra: number, row: number, sheet: number): void {
    const at = this.count;
    if (at === this.dates.length) this.#grow();
    this.groups[at] = group;
    this.dates[at] = date;
    this.values[at] = value;
    this.extras[at] = extra;
    this.rows[at] = row;
    this.sheets[at] = sheet;
    this.count = at + 1;
  }

  clear(): void {
    this.count = 0;
  }

  #grow(): void {
    this.groups = longer(this.groups, new Uint32Array(this.groups.length * 2));
    this.dates = longer(this.dates, new Float64Array(this.dates.length * 2));
    this.values = longer(this.values, new Float64Array(this.values.length * 2));
    this.extras = longer(this.extras, new Uint32Array(this.extras.length * 2));
    this.rows = longer(this.rows, new Uint32Array(this.rows.length * 2));
    this.sheets = longer(this.sheets, new Uint32Array(this.sheets.length * 2));
  }

  /**
   * Positions by group, then date; readings of one group and date stay in the order of their rows. `ranked` gives the
   * numbers of the groups in the desired order.
   */
  order(ranked: Iterable<number>, groupCount: number): Uint32Array {
    const { groups, count } = this;
    const ends = new Uint32Array(groupCount);
    for (let at = 0; at < count; at += 1) ends[groups[at] ?? 0] = (ends[groups[at] ?? 0] ?? 0) + 1;
    const starts: number[] = [];
    let start = 0;
    for (const group of ranked) {
      const size = ends[group] ?? 0;
      if (size > 0) starts.push(start);
      ends[group] = start;
      start += size;
    }
    const order = new Uint32Array(count);
    for (let at = 0; at < count; at += 1) {
      const group = groups[at] ?? 0;
      const place = ends[group] ?? 0;
      order[place] = at;
      ends[group] = place + 1;
    }
    for (const [nth, from] of starts.entries()) this.#sortByDate(order.subarray(from, starts[nth + 1] ?? count));
    return order;
  }

  /** Most files hold the readings of a target by date already, forwards or backwards. */
  #sortByDate(order: Uint32Array): void {
    const { dates } = this;
    const dateAt = (nth: number) => dates[order[nth] ?? 0] ?? 0;
    let rising = true;
    let falling = true;
    for (let nth = 1; nth < order.length && (rising || falling); nth += 1) {
      if (dateAt(nth) < dateAt(nth - 1)) rising = false;
      if (dateAt(nth) >= dateAt(nth - 1)) falling = false;
    }
    if (rising) return;
    if (falling) order.reverse();
    else order.sort((a, b) => (dates[a] ?? 0) - (dates[b] ?? 0) || a - b);
  }
}

function longer<Column extends Uint32Array | Float64Array>(from: Column, to: Column): Column {
  to.set(from);
  return to;
}
