/** The plot in the view that was chosen, with the values at a position of it, and the table below. */
import { useMemo } from "preact/hooks";
import { useLater } from "../kit/browser/later.ts";
import { type Element, html } from "../kit/html.ts";
import { Card } from "../kit/parts.ts";
import type { Shown } from "./address.ts";
import { AtCursor, timeTrack, useTimeTrack } from "./at-cursor.ts";
import { Chart, HINT, periodWords } from "./chart.ts";
import { Cursor } from "./cursor.ts";
import { DurationChart, DurationTable, useCurves, useDurationTrack } from "./duration-chart.ts";
import { HeatChart } from "./heat-chart.ts";
import type { Loaded } from "./loaded.ts";
import type { Series } from "./series.ts";
import { Values } from "./tables.ts";
import { TEXTS } from "./texts.ts";

interface FigureProps {
  readonly shown: Shown;
  readonly loaded: Loaded;
  readonly onPick: ((series: Series, at: number) => void) | undefined;
  onZoom(fromMs: number, toMs: number): void;
}

export function Figure(props: FigureProps): Element {
  // A position of another plot says nothing in this one.
  const cursor = useMemo(() => new Cursor(), [props.loaded]);
  const figure = { ...props, cursor };
  if (props.loaded.view === "duration") return html`<${Duration} ...${figure} />`;
  return props.loaded.view === "heat" ? html`<${Heat} ...${figure} />` : html`<${OverTime} ...${figure} />`;
}

interface ViewProps extends FigureProps {
  readonly cursor: Cursor;
}

function OverTime({ loaded, onPick, onZoom, cursor }: ViewProps): Element {
  const { series, others, units, zone, fromMs, toMs } = loaded;
  const drawn = useMemo(() => [...series, ...others], [loaded]);
  const words = TEXTS.plotOf(namesOf(series), periodWords(loaded.from, loaded.to));
  const chart = { series: drawn, units, zone, fromMs, toMs, words, onPick, onZoom, cursor };
  const track = useTimeTrack(loaded);
  return html`<${Chart} ...${chart} /><${AtCursor} ...${{ loaded, track, cursor }} />
    <p class="hint">${HINT} ${onPick === undefined ? TEXTS.point.coarse : TEXTS.point.hint} ${zoneWords(loaded)}</p>`;
}

function Heat({ shown, loaded, onZoom, cursor }: ViewProps): Element | null {
  const series = loaded.series.find(({ variable }) => variable.id === shown.of) ?? loaded.series[0];
  const track = useMemo(() => timeTrack(series === undefined ? [] : [series], false), [series]);
  if (series === undefined) return null;
  const words = TEXTS.heat.plotOf(series.variable.name, periodWords(loaded.from, loaded.to));
  return html`<${HeatChart} ...${{ loaded, series, words, cursor, onZoom }} />
    <${AtCursor} ...${{ loaded, track, cursor }} /><p class="hint">${TEXTS.heat.hint} ${zoneWords(loaded)}</p>`;
}

function Duration({ loaded, cursor }: ViewProps): Element {
  const curves = useCurves(loaded);
  const track = useDurationTrack(curves);
  const words = TEXTS.duration.plotOf(namesOf(loaded.series), periodWords(loaded.from, loaded.to));
  return html`<${DurationChart} ...${{ curves, units: loaded.units, words, cursor }} />
    <${AtCursor} ...${{ loaded, track, cursor }} />`;
}

function zoneWords({ zone }: Loaded): string {
  return `${TEXTS.zone}: ${zone}.`;
}

function namesOf(series: readonly Series[]): string {
  return series.map(({ variable }) => variable.name).join(", ");
}

/** The numbers of the figure, a frame after it. */
export function Table({ loaded, onPick }: Pick<FigureProps, "loaded" | "onPick">): Element {
  const listed = useLater(loaded);
  const table = useMemo(() => {
    if (listed === null) return null;
    return listed.view === "duration"
      ? html`<${Durations} loaded=${listed} />`
      : html`<${Values} loaded=${listed} onPick=${onPick} />`;
  }, [listed, onPick]);
  return Card({ id: "values", title: TEXTS.table, children: table });
}

function Durations({ loaded }: { readonly loaded: Loaded }): Element {
  const curves = useCurves(loaded);
  return html`<${DurationTable} curves=${curves} units=${loaded.units} />`;
}
