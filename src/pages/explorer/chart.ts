/** The plot: one axis for each unit, a band from least to most, and no line over a gap. */
import uPlot, { type AlignedData, type Axis, type Series as Line } from "uplot";
import { aggregateUnit } from "#wire/referentials/aggregates.ts";
import { axisOf, type Drawing, Plot, TICKS, tick } from "../kit/browser/plot.ts";
import { type Element, html } from "../kit/html.ts";
import type { Unit } from "./hub.ts";
import { isGapAfter, placeAt, type Series, valueAt } from "./series.ts";
import { TEXTS } from "./texts.ts";

/** First, least and most in their order, last. */
const EACH = 4;
/** Seconds between the end of a value and the gap after it. */
const GAP_AFTER = 1;

/** Colours of the stylesheet, which repeat. */
export const COLOURS = 8;
const BAND_OPACITY = "33";
const DASH = [6, 4];
/** A click that moved farther was a drag. */
const CLICK_PIXELS = 3;
/** Of uPlot.join. */
const NULL_EXPANDS = 2;
const AXIS_PIXELS = 64;
const HEIGHTS = { narrow: 280, wide: 400 };

interface ChartProps {
  readonly series: readonly Series[];
  readonly units: ReadonlyMap<number, Unit>;
  /** IANA. */
  readonly zone: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly words: string;
  onZoom(fromMs: number, toMs: number): void;
  /** A click on a value of one of the series; absent: nothing is chosen. */
  onPick?: ((series: Series, at: number) => void) | undefined;
  readonly cursor?: Cursor | undefined;
}

export function Chart(props: ChartProps): Element {
  const { series, units, zone, fromMs, toMs, words, onZoom, onPick, cursor } = props;
  const inputs = [series, units, zone, fromMs, toMs, onZoom, onPick, cursor];
  const begin = (colour: Colour, pixels: number) => draw(props, colour, pixels);
  return html`<${Plot} ...${{ height: heightOf, words, inputs }} draw=${begin} />`;
}

export type Colour = (name: string) => string;

export function heightOf(width: number): number {
  return width < 600 ? HEIGHTS.narrow : HEIGHTS.wide;
}

interface LineParts extends Pick<ChartProps, "series" | "units"> {
  readonly colour: Colour;
}

/** Colour, axis and dashes of one of the series. */
export function lineOf(one: Series, { series, units, colour }: LineParts): Line {
  const { variable, isOther = false } = one;
  const ids = [...new Set(series.map((other) => other.variable.id))];
  const stroke = colour(`series-${ids.indexOf(variable.id) % COLOURS}`);
  const scale = scaleOf(units, one);
  return { label: variable.name, stroke, width: 1.5, scale, ...(isOther ? { dash: DASH } : {}) };
}

/** Names of the axes, each once. */
export function unitsOf(series: readonly Series[], units: ReadonlyMap<number, Unit>): readonly string[] {
  return [...new Set(series.map((one) => scaleOf(units, one)))];
}

export function unitAxes(axis: Axis, symbols: readonly string[]): readonly Axis[] {
  return symbols.map((scale, at): Axis => {
    const side = at === 0 ? 3 : 1;
    const grid = { ...axis.grid, show: at === 0 };
    return { ...axis, scale, side, grid, label: scale, size: AXIS_PIXELS, values: (_, ticks) => ticks.map(tick) };
  });
}

function linesOf({ series, units }: ChartProps, colour: Colour) {
  const lines: Line[] = [{}];
  const bands: uPlot.Band[] = [];
  for (const one of series) {
    const paths = one.isStep ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
    const line = { ...lineOf(one, { series, units, colour }), ...(paths === undefined ? {} : { paths }) };
    lines.push({ ...line, points: one.isStep ? { show: false } : { size: 5 } });
    if (one.band === null) continue;
    const first = lines.length;
    for (const _ of ["most", "least"]) lines.push({ ...line, width: 0, points: { show: false } });
    bands.push({ series: [first, first + 1], fill: `${line.stroke}${BAND_OPACITY}` });
  }
  return { lines, bands };
}

function draw(props: ChartProps, colour: Colour, pixels: number): Drawing {
  const { series, units, zone, fromMs, toMs, onZoom, onPick, cursor } = props;
  const { lines, bands } = linesOf(props, colour);
  const axis = axisOf(colour);
  const moves = cursorHooks(
    cursor,
    (plot, left) => plot.posToVal(left, "x"),
    (plot, x) => ({ left: plot.valToPos(x, "x"), top: plot.over.clientHeight / 2 }),
  );
  const picks = (plot: uPlot) => {
    if (onPick !== undefined) listen(plot, (left, top) => pick(plot, series, units, { left, top }, onPick));
  };
  const options: Drawing["options"] = {
    series: lines,
    bands,
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), zone),
    scales: { x: { time: true, range: [fromMs / 1_000, toMs / 1_000] } },
    axes: [{ ...axis, values: TICKS }, ...unitAxes(axis, unitsOf(series, units))],
    cursor: { drag: { x: true, y: false, setScale: false } },
    hooks: {
      ...moves,
      ready: [...(moves.ready ?? []), picks],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width > 3) onZoom(plot.posToVal(left, "x") * 1_000, plot.posToVal(left + width, "x") * 1_000);
        },
      ],
    },
  };
  return { options, data: joined(series, { fromMs, toMs, pixels }) };
}

function listen(plot: uPlot, act: (left: number, top: number) => void): void {
  let begin = Number.NaN;
  plot.over.addEventListener("mousedown", (event) => {
    begin = event.clientX;
  });
  plot.over.addEventListener("mouseup", (event) => {
    const { left, top } = plot.over.getBoundingClientRect();
    if (Math.abs(event.clientX - begin) <= CLICK_PIXELS) act(event.clientX - left, event.clientY - top);
  });
}

interface Spot {
  readonly left: number;
  readonly top: number;
}

/** The value that is the nearest to the click. */
function pick(
  plot: uPlot,
  series: readonly Series[],
  units: ReadonlyMap<number, Unit>,
  { left, top }: Spot,
  onPick: (series: Series, at: number) => void,
): void {
  const time = plot.posToVal(left, "x");
  let nearest: { readonly one: Series; readonly at: number; readonly pixels: number } | null = null;
  for (const one of series) {
    if (one.isOther === true || one.times.length === 0) continue;
    const at = placeAt(one.times, time, one.isStep);
    const value = valueAt(one, at);
    if (value === null) continue;
    const pixels = Math.abs(plot.valToPos(value, scaleOf(units, one)) - top);
    if (nearest === null || pixels < nearest.pixels) nearest = { one, at, pixels };
  }
  if (nearest !== null) onPick(nearest.one, nearest.at);
}

/** All columns on one axis of time; a gap is a value that is null. */
function joined(series: readonly Series[], span: Span): AlignedData {
  const tables = series.map((one) => columnsOf(one, span));
  // A gap reaches to the next value of its own column, also over the times of others.
  const modes = tables.map((columns) => columns.map(() => NULL_EXPANDS));
  return uPlot.join(tables as unknown as AlignedData[], modes);
}

export function symbolOf(units: ReadonlyMap<number, Unit>, id: number): string {
  return units.get(id)?.symbol ?? "";
}

/** The unit of the values that are shown: counts have none, and a variance its square. */
export function unitOf(units: ReadonlyMap<number, Unit>, { aggregate, unitId }: Series): string {
  return aggregateUnit(aggregate, symbolOf(units, unitId));
}

/** Name of the axis, which needs one. */
function scaleOf(units: ReadonlyMap<number, Unit>, series: Series): string {
  return unitOf(units, series) || TEXTS.cursor.aggregates.COUNT;
}

export function periodWords(from: string, to: string): string {
  return `${from.replace("T", " ")} – ${to.replace("T", " ")}`;
}

export const HINT = TEXTS.dragHint;

// The columns that a plot draws: at most four values for each column of pixels, the least and most among them.

type Column = (number | null | undefined)[];

interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  /** Columns of pixels. */
  readonly pixels: number;
}

/** Times in seconds, values, and most and least where the series has a band; null is a gap. */
export function columnsOf(series: Series, span: Span): Column[] {
  return series.times.length > EACH * span.pixels ? thinned(series, span) : exact(series);
}

/** A step holds for its length, and ends before a gap; the last one ends, too. */
function exact(series: Series): Column[] {
  const { times, isStep, length } = series;
  const given = givenOf(series);
  const columns: Column[] = [[], ...given.map((): Column => [])];
  const add = (time: number, held: (column: Float64Array) => number | null) => {
    columns[0]?.push(time);
    for (const [index, column] of given.entries()) columns[index + 1]?.push(held(column));
  };
  times.forEach((time, at) => {
    const held = (column: Float64Array) => orNull(column[at]);
    add(time, held);
    if (!isGapAfter(series, at)) return;
    if (isStep && length > 0) add(time + length, held);
    if (at < times.length - 1) add(time + length + GAP_AFTER, () => null);
  });
  return columns;
}

function givenOf({ values, band }: Series): readonly Float64Array[] {
  return band === null ? [values] : [values, band.most, band.least];
}

function orNull(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}

/** On a grid that all such series of a plot share, so that they need not be joined. */
function thinned(series: Series, { fromMs, toMs, pixels }: Span): Column[] {
  const { times, values, band } = series;
  const [from, width] = [fromMs / 1_000, (toMs - fromMs) / 1_000 / pixels];
  const columns = [values, ...(band === null ? [] : [band.most, band.least])].map((): Column => {
    return new Array(EACH * pixels).fill(undefined);
  });
  let before = -1;
  for (let begin = 0; begin < times.length; ) {
    const pixel = Math.floor(((times[begin] ?? 0) - from) / width);
    let end = begin + 1;
    while (end < times.length && (times[end] ?? 0) < from + (pixel + 1) * width) end += 1;
    if (pixel >= 0 && pixel < pixels) {
      const gap = before >= 0 && pixel - before > 1 && isGapAfter(series, begin - 1);
      if (gap) for (const column of columns) column.fill(null, EACH * (before + 1), EACH * pixel);
      write(columns, EACH * pixel, shapeOf(values, begin, end));
      if (band !== null) {
        fill(columns[1], EACH * pixel, extreme(band.most, begin, end, Math.max));
        fill(columns[2], EACH * pixel, extreme(band.least, begin, end, Math.min));
      }
      before = pixel;
    }
    begin = end;
  }
  const grid = Array.from({ length: EACH * pixels }, (_, at) => from + (at / EACH) * width);
  return [grid, ...columns];
}

function write([column]: readonly Column[], at: number, shape: readonly (number | null)[]): void {
  for (const [index, value] of shape.entries()) if (column !== undefined) column[at + index] = value;
}

function fill(column: Column | undefined, at: number, value: number | null): void {
  column?.fill(value, at, at + EACH);
}

/** Without a number among them, one gap. */
function shapeOf(values: Float64Array, begin: number, end: number): readonly (number | null)[] {
  let [first, least, most, last] = [-1, -1, -1, -1];
  for (let at = begin; at < end; at += 1) {
    const value = values[at] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    if (first < 0) first = least = most = at;
    if (value < (values[least] ?? 0)) least = at;
    if (value > (values[most] ?? 0)) most = at;
    last = at;
  }
  if (first < 0) return [null];
  return [first, Math.min(least, most), Math.max(least, most), last].map((at) => values[at] ?? null);
}

function extreme(
  values: Float64Array,
  begin: number,
  end: number,
  of: (...values: readonly number[]) => number,
): number | null {
  let found = Number.NaN;
  for (let at = begin; at < end; at += 1) {
    const value = values[at] ?? Number.NaN;
    if (!Number.isNaN(value)) found = Number.isNaN(found) ? value : of(found, value);
  }
  return orNull(found);
}

// The position in a plot at which values are read: one for the plot and for the control below it.

type Listener = (x: number) => void;

export class Cursor {
  readonly #listeners = new Set<Listener>();
  #x: number | null = null;

  /** On the axis of the plot: seconds, or a share in percent. Null until one was chosen. */
  get x(): number | null {
    return this.#x;
  }

  move(x: number): void {
    if (x === this.#x) return;
    this.#x = x;
    for (const listener of this.#listeners) listener(x);
  }

  /** Returns what ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Hooks by which a plot moves the cursor, and shows where it is. `spotOf`: in pixels of the plot. */
export function cursorHooks(
  cursor: Cursor | undefined,
  xAt: (plot: uPlot, left: number, top: number) => number | null,
  spotOf: (plot: uPlot, x: number) => { readonly left: number; readonly top: number },
): uPlot.Hooks.Arrays {
  if (cursor === undefined) return {};
  let end: (() => unknown) | null = null;
  let isOwn = false;
  return {
    ready: [
      (plot) => {
        const show = (x: number) => {
          if (!isOwn) plot.setCursor(spotOf(plot, x), false);
        };
        end = cursor.listen(show);
        if (cursor.x !== null) show(cursor.x);
      },
    ],
    setCursor: [
      (plot) => {
        const { left = -1, top = -1 } = plot.cursor;
        const x = left < 0 ? null : xAt(plot, left, top);
        if (x === null) return;
        isOwn = true;
        cursor.move(x);
        isOwn = false;
      },
    ],
    destroy: [() => end?.()],
  };
}
