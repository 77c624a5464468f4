/** The plot: one axis for each unit, a band from least to most, and no line over a gap. */
import uPlot, { type AlignedData, type Axis, type Series as Line } from "uplot";
import { aggregateUnit } from "#wire/referentials/aggregates.ts";
import { axisOf, type Drawing, Plot, TICKS, tick } from "../kit/browser/plot.ts";
import { type Element, html } from "../kit/html.ts";
import { type Cursor, cursorHooks } from "./cursor.ts";
import type { Unit } from "./hub.ts";
import { placeAt, type Series, valueAt } from "./series.ts";
import { TEXTS } from "./texts.ts";
import { columnsOf, type Span } from "./thinned.ts";

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
