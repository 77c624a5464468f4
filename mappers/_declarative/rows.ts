/** Converts rows to readings by the settings: decisions for the whole file are bound before the first row. */
import { type Reading, RowError, z } from "headgate/mapper";
import { bindDate, isClockFault } from "./dates.ts";
import { bindDay, type TakeDay } from "./day-rows.ts";
import { attempt } from "./faults.ts";
import { dataTest } from "./row-filter.ts";
import type { Layout, TargetSettings, ValueSettings } from "./settings.ts";
import { type ColumnReading, createRowEmitter, mayShareTargets, type TargetColumn } from "./shared-targets.ts";
import { bindStatus, type Tags } from "./statuses.ts";
import { seriesColumns, targetFields } from "./targets.ts";
import { bindTemplate, type Cells, cellText, type Scope } from "./template.ts";
import { bindQuantity, type Counts, type Quantity, type Tools } from "./values.ts";
import { eachCell, joined, matchingColumns, valueSettings } from "./wide.ts";

/** Takes one row; throws a `RowError` for a row to be refused. */
export interface TakeRow {
  (cells: Cells): void;
  /**
   * Only reports the position of the row's series in a repeated hour; for rows that are left out. Absent where no
   * policy follows the order of rows.
   */
  readonly follow?: (cells: Cells) => void;
  /** For rows of days that reach to their end: see `TakeDay`. */
  readonly extra?: TakeDay["extra"];
}

export function bindRows(tools: Tools, layout: Layout, scope: Scope, counts: Counts): TakeRow {
  const status = bindStatus(layout.status, scope);
  if (layout.day !== undefined) {
    const take = bindDay(tools, layout, scope, counts);
    const takeDay = (cells: Cells) => {
      const tags = status?.(cells);
      if (tags === "drop") counts.dropped += 1;
      else take(cells, tags);
    };
    return layout.day.match === undefined && layout.day.to === undefined
      ? Object.assign(takeDay, { extra: take.extra })
      : takeDay;
  }
  const { dateOf, leavesOut, take } = bindValues(tools, layout, scope, counts);
  // A dropped or refused row still shows the position of its series in the repeated hour, but its date may be invalid.
  const isFollowed = layout.dst === "byOrder";
  const takeRow = (cells: Cells) => {
    const date = isFollowed ? attempt(() => dateOf(cells)) : undefined;
    const tags = status?.(cells);
    if (tags === "drop") {
      counts.dropped += 1;
      return;
    }
    let when: Reading["date"];
    try {
      when = date === undefined ? dateOf(cells) : date();
    } catch (thrown) {
      // Files write rows for the hour that the clock skips, and leave their values out.
      if (isClockFault(thrown) && leavesOut(cells)) return;
      throw thrown;
    }
    take(cells, when, tags);
  };
  if (!isFollowed) return takeRow;
  // A row that is left out may hold no data at all, and then it is ignored.
  return Object.assign(takeRow, { follow: (cells: Cells) => void attempt(() => dateOf(cells)) });
}

/** A test of rows whether their date and a value can be read, which emits nothing. */
export function rowTest(tools: Tools, layout: Layout, scope: Scope): (cells: Cells) => boolean {
  // Rows that are left out say nothing of the order of the others.
  const dst = layout.dst === "byOrder" ? "earlier" : layout.dst;
  return dataTest(tools, (quiet) => bindRows(quiet, { ...layout, dst }, scope, { missing: 0, dropped: 0 }));
}

/** Settings about the number of cells of a row. */
export const widthShape = {
  extraCells: z
    .enum(["reject", "ignore"])
    .default("reject")
    .describe(
      "Filled cells beyond those of the header, or of the first row where there is no header: refuse the row, or " +
        "leave them out.",
    ),
};

export const columnCount = z
  .int()
  .min(1)
  .max(20_000)
  .optional()
  .describe("Without a header: the number of cells that every row has. By default that of the first row.");

/** Allowed differences of a row's length from the header, or from the first row. */
export interface Raggedness {
  readonly mayBeShort: boolean;
  readonly mayBeLong: boolean;
  /** Advice for rows that are too short, where the usual one would not help. */
  readonly shortHint?: string | undefined;
}

/** Refuses rows that were cut off or whose cells are shifted; leaves out empty ones. */
export function checkedWidth(take: TakeRow, { columns }: Scope, ragged: Raggedness): TakeRow {
  const { unheaded } = columns;
  let { width } = columns;
  const isFirst = unheaded !== undefined && width === undefined;
  const source = isFirst ? "the first row has" : unheaded === undefined ? "the header has" : "`columnCount` says";
  const shortHint = ragged.shortHint ?? CUT_HINT;
  const refuse = (cells: Cells, fault: RowError): never => {
    take.follow?.(cells);
    throw fault;
  };
  /** The first row of a file without a header shows how many cells the others have. */
  const begin = (cells: Cells, needed: number): number => {
    if (cells.length >= needed || ragged.mayBeShort) return Math.max(cells.length, needed);
    return refuse(
      cells,
      new RowError(`the row has ${countOf(cells)}, and the settings name column ${needed}`, { hint: shortHint }),
    );
  };
  let dueOf: ((cells: Cells) => number) | undefined;
  const checked = (cells: Cells) => {
    if (width === undefined && unheaded !== undefined && !cells.every(isEmpty)) {
      if (take.extra !== undefined) dueOf = dueByDay(cells, take.extra);
      width = begin(cells, unheaded.needed);
      // The columns of rows of days reach to the end of each.
      if (take.extra === undefined) unheaded.setWidth(width);
    }
    if (width !== undefined && cells.length !== width) {
      if (cells.every(isEmpty)) return;
      const due = dueOf?.(cells) ?? width;
      const isLong = !ragged.mayBeLong && cells.slice(due).some((cell) => !isEmpty(cell));
      if (isLong || (cells.length < due && !ragged.mayBeShort)) {
        const hint = isLong ? (isFirst ? `${LONG_HINT} ${FIRST_HINT}` : LONG_HINT) : shortHint;
        refuse(cells, new RowError(`the row has ${countOf(cells)} where ${source} ${width}`, { hint }));
      }
      if (dueOf !== undefined && cells.length > due) {
        take(cells.slice(0, due));
        return;
      }
    } else if (isEmpty(cells[0]) && cells.every(isEmpty)) return;
    take(cells);
  };
  return take.follow === undefined ? checked : Object.assign(checked, { follow: take.follow });
}

/**
 * The cells that a row of a day has to have. On a day of another length it may be longer or shorter by that, or as long
 * as all others. Where the day of the first row is such a day, the first ordinary day shows which of both that row is.
 */
function dueByDay(first: Cells, extra: TakeDay["extra"]): (cells: Cells) => number {
  let ordinary = [...new Set([first.length, first.length - extra(first)])];
  return (cells) => {
    const { length } = cells;
    const difference = extra(cells);
    const fits = ordinary.filter((width) => length === width || length === width + difference);
    if (difference === 0 && fits.length > 0) ordinary = fits;
    return fits.length > 0 ? length : Math.max(...ordinary, ...ordinary.map((width) => width + difference));
  };
}

const LONG_HINT =
  "A cell that holds the delimiter has to be quoted; if the further cells mean nothing, set `extraCells: ignore`.";
const FIRST_HINT = "Where the first row is too short, `columnCount` says how many cells a row has.";
const CUT_HINT =
  "Was the file cut off here? Then let it be sent again. Lines after the data are left out by `endAt` (from there to " +
  "the end) or `skipRows`; `ragged: allow` also lets rows pass that were cut.";

function countOf({ length }: Cells): string {
  return `${length} ${length === 1 ? "cell" : "cells"}`;
}

function isEmpty(cell: Cells[number] | undefined): boolean {
  return cell === undefined || cell === null || cell === "" || (typeof cell === "string" && cell.trim() === "");
}

interface BoundColumn extends TargetColumn {
  readonly quantity: Quantity;
  /** Columns that make up the target. */
  readonly series: readonly number[];
}

interface BoundValues {
  /** Called once a row, in order. */
  readonly dateOf: (cells: Cells) => Reading["date"];
  /** Counts the values of a row as missing where all are; otherwise false. Throws for cells that are no values. */
  readonly leavesOut: (cells: Cells) => boolean;
  readonly take: (cells: Cells, when: Reading["date"], tags: Tags | undefined) => void;
}

function bindValues(tools: Tools, layout: Layout, scope: Scope, counts: Counts): BoundValues {
  const date = bindDate(tools.time, layout, scope);
  const columns = boundColumns(tools, layout, scope);
  // Rows of one series have targets made of the same cells.
  const series = layout.dst === "byOrder" ? [...new Set(columns.flatMap(({ series }) => series))] : [];
  const [only] = columns;
  const emitRow = mayShareTargets(columns, scope) ? createRowEmitter(tools, scope) : undefined;

  function takeOne(
    { at, quantity }: BoundColumn,
    when: Reading["date"],
    cells: Cells,
    rowTags: Tags | undefined,
    emit: (reading: Reading) => void,
  ): void {
    if (quantity.isKnown?.(cells) === false) {
      counts.dropped += 1;
      return;
    }
    const value = quantity.value(cells, at);
    if (value === undefined) {
      counts.missing += 1;
      return;
    }
    const status = quantity.status?.(cells);
    if (status === "drop") {
      counts.dropped += 1;
      return;
    }
    emit({
      target: quantity.target(cells),
      date: when,
      value,
      unit: quantity.unit?.(cells),
      version: quantity.version?.(cells),
      tags: joined(rowTags, status, quantity.tags?.(cells)),
    });
  }

  /** Columns with good readings are compared, even when other columns are faulty. */
  function takeCompared(
    when: Reading["date"],
    cells: Cells,
    rowTags: Tags | undefined,
    emitAll: ReturnType<typeof createRowEmitter>,
  ): void {
    const readings: ColumnReading[] = [];
    const work = [
      ...columns.map((column) => () => {
        takeOne(column, when, cells, rowTags, (reading) => readings.push({ at: column.at, reading }));
      }),
      () => emitAll(cells, readings),
    ];
    eachCell(tools, cells, work, (step) => step());
  }

  return {
    dateOf(cells) {
      let key = "";
      for (const at of series) key += `${cellText(cells[at], "")}\n`;
      return date.read(cells, key);
    },
    leavesOut: (cells) => countMissing(columns, cells, counts),
    take(cells, when, rowTags) {
      if (columns.length === 1 && only !== undefined) takeOne(only, when, cells, rowTags, tools.emit);
      else if (emitRow === undefined)
        eachCell(tools, cells, columns, (column) => takeOne(column, when, cells, rowTags, tools.emit));
      else takeCompared(when, cells, rowTags, emitRow);
    },
  };
}

/** See `BoundValues.leavesOut`. */
function countMissing(columns: readonly BoundColumn[], cells: Cells, counts: Counts): boolean {
  if (!columns.every(({ at, quantity }) => quantity.value(cells, at) === undefined)) return false;
  counts.missing += columns.length;
  return true;
}

function boundColumns(tools: Tools, layout: Layout, scope: Scope): readonly BoundColumn[] {
  return valueColumns(layout, scope).map(({ at, settings, target, inner }) => ({
    at,
    quantity: bindQuantity(tools, layout, settings, target, inner),
    version: settings.version === undefined ? undefined : bindTemplate(settings.version, inner),
    fields: targetFields(target, inner),
    series: seriesColumns(target, inner),
  }));
}

/** A column of values, with the settings that hold for it. */
export interface ValueColumn {
  readonly at: number;
  readonly settings: ValueSettings;
  readonly target: TargetSettings;
  /** With the name of the column, and the groups of the pattern that found it. */
  readonly inner: Scope;
}

export function valueColumns(layout: Layout, scope: Scope): readonly ValueColumn[] {
  const of = (at: number, entry: NonNullable<Layout["values"]>[number], groups: Readonly<Record<string, string>>) => {
    const facts = new Map([...scope.facts, ["column", scope.columns.name(at)], ...Object.entries(groups)]);
    const target = { ...layout.target, ...entry.target };
    return { at, settings: valueSettings(layout, entry), target, inner: { ...scope, facts } };
  };
  if (layout.values === undefined) return [of(scope.columns.find(layout.value ?? 1), {}, {})];
  return layout.values.flatMap((entry) => {
    if (entry.match === undefined) return [of(scope.columns.find(entry.column ?? 1), entry, {})];
    return matchingColumns(entry.match, scope).map(({ at, groups }) => of(at, entry, groups));
  });
}
