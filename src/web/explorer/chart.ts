/** The plot: one axis for each unit, a band from least to most, and no line over a gap. */
import uPlot, { type AlignedData, type Axis, type Series as Line } from "uplot";
import { axisOf, type Drawing, Plot, TICKS, tick } from "../kit/browser/plot.ts";
import { type Element, html } from "../kit/html.ts";
import type { Unit } from "./hub.ts";
import { type Series, valueAt } from "./series.ts";
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
}

export function Chart(props: ChartProps): Element {
  const { series, units, zone, fromMs, toMs, words, onZoom, onPick } = props;
  const inputs = [series, units, zone, fromMs, toMs, onZoom, onPick];
  const height = (width: number) => (width < 600 ? HEIGHTS.narrow : HEIGHTS.wide);
  const begin = (colour: Colour, pixels: number) => draw(props, colour, pixels);
  return html`<${Plot} ...${{ height, words, inputs }} draw=${begin} />`;
}

type Colour = (name: string) => string;

function draw(props: ChartProps, colour: Colour, pixels: number): Drawing {
  const { series, units, zone, fromMs, toMs, onZoom, onPick } = props;
  const symbols = [...new Set(series.map(({ unitId }) => symbolOf(units, unitId)))];
  const lines: Line[] = [{}];
  const bands: uPlot.Band[] = [];
  const places = new Map<number, number>();
  series.forEach(({ variable, unitId, isStep, band, isOther = false }) => {
    const at = places.get(variable.id) ?? places.size;
    places.set(variable.id, at);
    const stroke = colour(`series-${at % COLOURS}`);
    const scale = symbolOf(units, unitId);
    const paths = isStep ? uPlot.paths.stepped?.({ align: 1 }) : uPlot.paths.linear?.();
    const shape = { scale, ...(isOther ? { dash: DASH } : {}), ...(paths === undefined ? {} : { paths }) };
    lines.push({ label: variable.name, stroke, width: 1.5, points: isStep ? { show: false } : { size: 5 }, ...shape });
    if (band === null) return;
    const first = lines.length;
    for (const _ of ["most", "least"]) lines.push({ width: 0, points: { show: false }, ...shape });
    bands.push({ series: [first, first + 1], fill: stroke + BAND_OPACITY });
  });
  const axis = axisOf(colour);
  const options: Drawing["options"] = {
    series: lines,
    bands,
    legend: { show: false },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), zone),
    scales: { x: { time: true, range: [fromMs / 1_000, toMs / 1_000] } },
    axes: [
      { ...axis, values: TICKS },
      ...symbols.map((scale, at): Axis => {
        const side = at === 0 ? 3 : 1;
        const grid = { ...axis.grid, show: at === 0 };
        return { ...axis, scale, side, grid, label: scale, size: AXIS_PIXELS, values: (_, ticks) => ticks.map(tick) };
      }),
    ],
    cursor: { drag: { x: true, y: false, setScale: false } },
    hooks: {
      ready:
        onPick === undefined
          ? []
          : [(plot) => listen(plot, (left, top) => pick(plot, series, units, { left, top }, onPick))],
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
    const at = placeAt(one, time);
    const value = valueAt(one, at);
    if (value === null) continue;
    const pixels = Math.abs(plot.valToPos(value, symbolOf(units, one.unitId)) - top);
    if (nearest === null || pixels < nearest.pixels) nearest = { one, at, pixels };
  }
  if (nearest !== null) onPick(nearest.one, nearest.at);
}

/** A step holds from its time on; of other values the nearest. */
function placeAt({ times, isStep }: Series, time: number): number {
  let [low, high] = [0, times.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((times[middle] ?? 0) <= time) low = middle;
    else high = middle - 1;
  }
  const [before, after] = [times[low] ?? 0, times[low + 1] ?? Number.POSITIVE_INFINITY];
  return !isStep && after - time < time - before ? low + 1 : low;
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

export function periodWords(from: string, to: string): string {
  return `${from.replace("T", " ")} – ${to.replace("T", " ")}`;
}

export const HINT = TEXTS.dragHint;
