/** A heat map as a plot: hatched where a value is missing, with the legend of its colours. */
import { useMemo } from "preact/hooks";
import uPlot from "uplot";
import { axisOf, type Drawing, Plot, TICKS } from "../kit/browser/plot.ts";
import { type Element, html } from "../kit/html.ts";
import { addToLocal, localOfMs, msOfLocal } from "../kit/zone.ts";
import { type Colour, type Cursor, cursorHooks, heightOf, unitOf } from "./chart.ts";
import type { Loaded } from "./loaded.ts";
import { numberWords, SUMMARY_DIGITS } from "./numbers.ts";
import { placeAt, type Series } from "./series.ts";
import { TEXTS } from "./texts.ts";

const HOURS = 24;
const HOUR_S = 3_600;
const DAY_S = 86_400;
const EVERY_HOURS = 3;
const STOPS = 5;
const SHADES = 64;
const HATCH_PIXELS = 6;
const LEAST_DRAG_PIXELS = 3;
const AXIS_PIXELS = 56;

interface HeatProps {
  readonly loaded: Loaded;
  readonly series: Series;
  readonly words: string;
  readonly cursor: Cursor;
  onZoom(fromMs: number, toMs: number): void;
}

export function HeatChart(props: HeatProps): Element {
  const { loaded, series, words, cursor, onZoom } = props;
  const cells = useMemo(() => cellsOf(series, loaded), [loaded, series]);
  const begin = (colour: Colour) => draw(props, cells, colour);
  return html`<${Plot} ...${{ height: heightOf, words, inputs: [cells, cursor, onZoom] }} draw=${begin} />
    <${HeatLegend} cells=${cells} unit=${unitOf(loaded.units, series)} />`;
}

function HeatLegend({ cells, unit }: { readonly cells: Cells; readonly unit: string }): Element {
  const { least, most } = cells;
  const write = (value: number) =>
    Number.isFinite(value) ? `${numberWords(value, SUMMARY_DIGITS)} ${unit}`.trim() : TEXTS.noValue;
  return html`<div class="heat-legend"><span>${write(least)}</span>
    <span class="heat-colours" role="img" aria-label=${TEXTS.heat.colours(write(least), write(most))}></span>
    <span>${write(most)}</span><span class="heat-missing" aria-hidden="true"></span><span>${TEXTS.heat.missing}</span>
  </div>`;
}

function draw({ loaded, series, cursor, onZoom }: HeatProps, cells: Cells, colour: Colour): Drawing {
  const { zone } = loaded;
  const { firstDay, days } = cells;
  const axis = axisOf(colour);
  const hours = Array.from({ length: HOURS / EVERY_HOURS + 1 }, (_, at) => at * EVERY_HOURS);
  const patchAt = (x: number) => patchOf(series, cells, placeAt(series.times, x, false));
  const moves = cursorHooks(
    cursor,
    (plot, left, top) => {
      const at = placeIn(cells, plot.posToVal(left, "x") / DAY_S, plot.posToVal(top, "y"));
      return at === null ? null : (series.times[at] ?? null);
    },
    (plot, x) => {
      const { day, hour, hours } = patchAt(x);
      return { left: plot.valToPos((day + 0.5) * DAY_S, "x"), top: plot.valToPos(hour + hours / 2, "y") };
    },
  );
  const zoomed = (plot: uPlot) => {
    const { left, width } = plot.select;
    const msAt = (pixel: number) => msOfLocal(localOfWall(plot.posToVal(pixel, "x")), zone);
    if (width > LEAST_DRAG_PIXELS) onZoom(msAt(left), msAt(left + width));
  };
  const options: Drawing["options"] = {
    series: [{}, { scale: "y", paths: () => null, points: { show: false } }],
    legend: { show: false },
    // Days are as wide as each other: their local times are taken for times of UTC.
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "UTC"),
    scales: {
      x: { time: true, range: [firstDay * DAY_S, (firstDay + days) * DAY_S] },
      y: { range: [0, HOURS], dir: -1 },
    },
    axes: [
      { ...axis, values: TICKS, grid: { show: false } },
      {
        ...axis,
        scale: "y",
        size: AXIS_PIXELS,
        grid: { show: false },
        splits: () => hours,
        values: (_, ticks) => ticks.map((one) => `${String(one).padStart(2, "0")}:00`),
      },
    ],
    cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    hooks: {
      ...moves,
      ready: [...(moves.ready ?? []), (plot) => mark(plot, cursor, patchAt)],
      setSelect: [zoomed],
      draw: [(plot) => paint(plot, { series, cells, colour, absence: absences(loaded, zone) })],
    },
  };
  return {
    options,
    data: [
      [firstDay * DAY_S, (firstDay + days) * DAY_S],
      [0, HOURS],
    ],
  };
}

/** A frame around the cell at the cursor. */
function mark(plot: uPlot, cursor: Cursor, patchAt: (x: number) => Patch): void {
  const frame = document.createElement("div");
  frame.className = "heat-cell";
  plot.over.append(frame);
  const show = (x: number) => {
    // The plot is gone, and with it its frame.
    if (!frame.isConnected) return end();
    const { day, hour, hours } = patchAt(x);
    const [left, right] = [plot.valToPos(day * DAY_S, "x"), plot.valToPos((day + 1) * DAY_S, "x")];
    const [top, bottom] = [plot.valToPos(hour, "y"), plot.valToPos(hour + hours, "y")];
    Object.assign(frame.style, {
      left: `${left}px`,
      top: `${top}px`,
      width: `${Math.max(1, right - left)}px`,
      height: `${bottom - top}px`,
    });
  };
  const end = cursor.listen(show);
  if (cursor.x !== null) show(cursor.x);
}

interface Paint {
  readonly series: Series;
  readonly cells: Cells;
  readonly colour: Colour;
  readonly absence: ReturnType<typeof absences>;
}

function paint({ ctx, valToPos }: uPlot, { series, cells, colour, absence }: Paint): void {
  const { firstDay, days, places, counts, least, most } = cells;
  const shades = shadesOf(colour);
  const hatch = hatchOf(ctx, colour("muted"));
  const fill = (day: number, hour: number, hours: number, style: string | CanvasPattern) => {
    const [left, right] = [valToPos(day * DAY_S, "x", true), valToPos((day + 1) * DAY_S, "x", true)].map(Math.round);
    const [top, bottom] = [valToPos(hour, "y", true), valToPos(hour + hours, "y", true)].map(Math.round);
    ctx.fillStyle = style;
    ctx.fillRect(left ?? 0, top ?? 0, Math.max(1, (right ?? 0) - (left ?? 0)), (bottom ?? 0) - (top ?? 0));
  };
  ctx.save();
  for (let cell = 0; cell < days * HOURS; cell += 1) {
    const [day, hour] = [firstDay + Math.floor(cell / HOURS), cell % HOURS];
    const count = counts[cell] ?? 0;
    if (count === 0 && hatch !== null && absence(day, hour) === "missing") fill(day, hour, 1, hatch);
    for (let part = 0; part < count; part += 1) {
      const value = series.values[(places[cell] ?? 0) + part] ?? 0;
      const share = most > least ? (value - least) / (most - least) : 0.5;
      fill(day, hour + part / count, 1 / count, shades[Math.round(share * (SHADES - 1))] ?? "");
    }
  }
  ctx.restore();
}

/** From the least value to the most. */
function shadesOf(colour: Colour): readonly string[] {
  const stops = Array.from({ length: STOPS }, (_, at) => partsOf(colour(`heat-${at}`)));
  return Array.from({ length: SHADES }, (_, shade) => {
    const at = (shade / (SHADES - 1)) * (STOPS - 1);
    const first = Math.min(STOPS - 2, Math.floor(at));
    const mixed = [0, 1, 2].map((part) => {
      const [from = 0, to = 0] = [stops[first]?.[part], stops[first + 1]?.[part]];
      return Math.round(from + (to - from) * (at - first));
    });
    return `rgb(${mixed.join(" ")})`;
  });
}

/** Of `#rrggbb`. */
function partsOf(colour: string): readonly number[] {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));
}

function hatchOf(ctx: CanvasRenderingContext2D, stroke: string): CanvasPattern | null {
  const tile = document.createElement("canvas");
  tile.width = tile.height = HATCH_PIXELS;
  const own = tile.getContext("2d");
  if (own === null) return null;
  own.strokeStyle = stroke;
  own.beginPath();
  own.moveTo(0, HATCH_PIXELS);
  own.lineTo(HATCH_PIXELS, 0);
  own.stroke();
  return ctx.createPattern(tile, "repeat");
}

// The cells of a heat map: the days of a period side by side, and in each the hours of its clock.

interface Cells {
  /** Days since 1970 of the first local day. */
  readonly firstDay: number;
  readonly days: number;
  /** By day, then hour: place of the first value of the cell; -1 where it has none. */
  readonly places: Int32Array;
  /** Two where the clock shows the hour twice. */
  readonly counts: Uint8Array;
  readonly least: number;
  readonly most: number;
}

interface Period {
  /** Local times. */
  readonly from: string;
  readonly to: string;
}

/** Seconds of a local time, as if it were one of UTC. */
function wallOf(local: string): number {
  return Date.parse(`${local.length === 10 ? `${local}T00:00` : local}Z`) / 1_000;
}

function localOfWall(wall: number): string {
  return new Date(Math.round(wall * 1_000)).toISOString().slice(0, 16);
}

export function cellsOf({ times, offsets, values }: Series, { from, to }: Period): Cells {
  const firstDay = Math.floor(wallOf(from) / DAY_S);
  const days = Math.max(1, Math.ceil(wallOf(to) / DAY_S) - firstDay);
  const places = new Int32Array(days * HOURS).fill(-1);
  const counts = new Uint8Array(days * HOURS);
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const [at, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    const cell = cellAt((times[at] ?? 0) + 60 * (offsets[at] ?? 0), firstDay);
    if (cell < 0 || cell >= places.length) continue;
    if (counts[cell] === 0) places[cell] = at;
    counts[cell] = (counts[cell] ?? 0) + 1;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return { firstDay, days, places, counts, least, most };
}

function cellAt(wall: number, firstDay: number): number {
  const day = Math.floor(wall / DAY_S);
  return (day - firstDay) * HOURS + Math.floor((wall - day * DAY_S) / HOUR_S);
}

/** A rectangle in days since 1970 and hours of the day. */
interface Patch {
  readonly day: number;
  readonly hour: number;
  readonly hours: number;
}

/** Where the value of a place stands: the second one of an hour that comes twice stands below the first. */
export function patchOf({ times, offsets }: Series, { firstDay, places, counts }: Cells, at: number): Patch {
  const cell = cellAt((times[at] ?? 0) + 60 * (offsets[at] ?? 0), firstDay);
  const count = Math.max(1, counts[cell] ?? 1);
  const part = Math.max(0, at - (places[cell] ?? at));
  return {
    day: firstDay + Math.floor(cell / HOURS),
    hour: (((cell % HOURS) + HOURS) % HOURS) + part / count,
    hours: 1 / count,
  };
}

/** The place of the value at a day and an hour with its fraction; null where there is none. */
export function placeIn({ firstDay, days, places, counts }: Cells, day: number, hour: number): number | null {
  const [column, row] = [Math.floor(day) - firstDay, Math.floor(hour)];
  if (column < 0 || column >= days || row < 0 || row >= HOURS) return null;
  const cell = column * HOURS + row;
  const count = counts[cell] ?? 0;
  return count === 0 ? null : (places[cell] ?? 0) + Math.min(count - 1, Math.floor((hour - row) * count));
}

type Absence = "missing" | "skipped" | "outside";

/** Why a cell has no value: the clock skips its hour, or it is not of the period, or the value is missing. */
export function absences({ from, to }: Period, zone: string): (day: number, hour: number) => Absence {
  const [begin, end] = [wallOf(from), wallOf(to)];
  const known = new Map<number, boolean>();
  const isUsual = (day: number) => {
    const held = known.get(day);
    if (held !== undefined) return held;
    const local = localOfWall(day * DAY_S);
    const usual = msOfLocal(addToLocal(local, 1, "day"), zone) - msOfLocal(local, zone) === DAY_S * 1_000;
    known.set(day, usual);
    return usual;
  };
  return (day, hour) => {
    const wall = day * DAY_S + hour * HOUR_S;
    if (wall + HOUR_S <= begin || wall >= end) return "outside";
    if (isUsual(day)) return "missing";
    const local = localOfWall(wall);
    return localOfMs(msOfLocal(local, zone), zone) === local ? "missing" : "skipped";
  };
}
