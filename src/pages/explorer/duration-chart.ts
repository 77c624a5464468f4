/** Load duration curves as a plot, at a position, and as a table. */
import { useMemo } from "preact/hooks";
import uPlot, { type AlignedData } from "uplot";
import { axisOf, type Drawing, Plot } from "../kit/browser/plot.ts";
import { Scroll } from "../kit/browser/scroll.ts";
import { type Element, html } from "../kit/html.ts";
import type { Track } from "./at-cursor.ts";
import { type Colour, type Cursor, cursorHooks, heightOf, lineOf, unitAxes, unitOf, unitsOf } from "./chart.ts";
import type { Unit } from "./hub.ts";
import type { Loaded } from "./loaded.ts";
import { numberWords, VALUE_DIGITS } from "./numbers.ts";
import { isGapAfter, type Series } from "./series.ts";
import { TEXTS } from "./texts.ts";

/** Shares of a table, in percent. */
const SHARES = [0, 1, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 90, 95, 99, 100] as const;

/** Positions of the cursor in a percent. */
const EACH_PERCENT = 10;
const PERCENT = 100;

export function useCurves({ series, others }: Loaded): readonly Curve[] {
  return useMemo(() => [...series, ...others].map(curveOf), [series, others]);
}

interface DurationProps {
  readonly curves: readonly Curve[];
  readonly units: ReadonlyMap<number, Unit>;
  readonly words: string;
  readonly cursor: Cursor;
}

export function DurationChart({ curves, units, words, cursor }: DurationProps): Element {
  const begin = (colour: Colour, pixels: number) => draw({ curves, units, words, cursor }, colour, pixels);
  return html`<${Plot} ...${{ height: heightOf, words, inputs: [curves, units, cursor] }} draw=${begin} />`;
}

function draw({ curves, units, cursor }: DurationProps, colour: Colour, pixels: number): Drawing {
  const series = curves.map((one) => one.series);
  const axis = axisOf(colour);
  const paths = uPlot.paths.linear?.();
  const lines = series.map((one) => ({
    ...lineOf(one, { series, units, colour }),
    points: { show: false },
    ...(paths === undefined ? {} : { paths }),
  }));
  const shares = Array.from({ length: 2 * pixels + 1 }, (_, at) => (at / pixels / 2) * PERCENT);
  const columns = curves.map((curve) => shares.map((share) => valueOfShare(curve, share / PERCENT)));
  const moves = cursorHooks(
    cursor,
    (plot, left) => plot.posToVal(left, "x"),
    (plot, x) => ({ left: plot.valToPos(x, "x"), top: plot.over.clientHeight / 2 }),
  );
  const options: Drawing["options"] = {
    series: [{}, ...lines],
    legend: { show: false },
    scales: { x: { time: false, range: [0, PERCENT] } },
    axes: [
      { ...axis, label: TEXTS.duration.axis, values: (_, ticks) => ticks.map((one) => `${one} %`) },
      ...unitAxes(axis, unitsOf(series, units)),
    ],
    cursor: { drag: { x: false, y: false, setScale: false } },
    hooks: moves,
  };
  return { options, data: [shares, ...columns] as AlignedData };
}

export function useDurationTrack(curves: readonly Curve[]): Track {
  return useMemo(() => {
    const share = (at: number) => at / EACH_PERCENT;
    const isEmpty = curves.every(({ values }) => values.length === 0);
    return {
      count: isEmpty ? 0 : PERCENT * EACH_PERCENT + 1,
      first: 0,
      xAt: share,
      placeOf: (x) => Math.max(0, Math.min(PERCENT * EACH_PERCENT, Math.round(x * EACH_PERCENT))),
      titleAt: (at) => TEXTS.duration.at(numberWords(share(at), 1)),
      readingsAt: (at) =>
        curves.map((curve) => ({ series: curve.series, value: valueOfShare(curve, share(at) / PERCENT) })),
    };
  }, [curves]);
}

export function DurationTable({ curves, units }: Pick<DurationProps, "curves" | "units">): Element {
  const heads = curves.map(({ series }) => {
    const { variable, isOther = false } = series;
    const name = isOther ? TEXTS.cursor.compared(variable.name) : variable.name;
    return html`<th scope="col" class="number"><bdi>${name}</bdi> ${unitOf(units, series)}</th>`;
  });
  const body = SHARES.map((share) => {
    const cells = curves.map((curve) => numberWords(valueOfShare(curve, share / PERCENT), VALUE_DIGITS));
    return html`<tr key=${share}><th scope="row">${`${share} %`}</th>
      ${cells.map((text) => html`<td class="number">${text}</td>`)}</tr>`;
  });
  return html`<p class="hint">${TEXTS.duration.hint}</p><${Scroll}>
    <table class="values"><caption class="hidden">${TEXTS.duration.table}</caption>
    <thead><tr><th scope="col">${TEXTS.duration.share}</th>${heads}</tr></thead>
    <tbody>${body}</tbody></table></${Scroll}>`;
}

// A load duration curve: for which share of the time the values were so high or higher.

/** Values from the highest down; none is missing. */
interface Curve {
  readonly series: Series;
  readonly values: Float64Array;
  /** Shares of the time until the end of each value, 0 to 1; the last is 1. */
  readonly ends: Float64Array;
}

/** A value counts for as long as it holds: one of an hour as much as four of a quarter. */
export function curveOf(series: Series): Curve {
  const places = [...series.times.keys()].filter((at) => !Number.isNaN(series.values[at]));
  places.sort((one, other) => (series.values[other] ?? 0) - (series.values[one] ?? 0));
  const values = Float64Array.from(places, (at) => series.values[at] ?? 0);
  const ends = Float64Array.from(places, (at) => secondsOf(series, at));
  let total = 0;
  for (const [at, seconds] of ends.entries()) {
    total += seconds;
    ends[at] = total;
  }
  for (const at of ends.keys()) ends[at] = total === 0 ? (at + 1) / ends.length : (ends[at] ?? 0) / total;
  return { series, values, ends };
}

function secondsOf({ times, length, ...more }: Series, at: number): number {
  const [time = 0, next, before] = [times[at], times[at + 1], times[at - 1]];
  if (!isGapAfter({ ...more, times, length }, at)) return (next ?? time) - time;
  return length > 0 || before === undefined ? length : time - before;
}

/** The value that holds at a share of the time, 0 to 1; null where there are none. */
export function valueOfShare({ values, ends }: Curve, share: number): number | null {
  if (values.length === 0) return null;
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 1) > share) high = middle;
    else low = middle + 1;
  }
  return values[low] ?? null;
}
