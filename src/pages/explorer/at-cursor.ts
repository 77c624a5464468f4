/** The values at a position of a plot: a slider, which the pointer moves, too, and the values there. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { type Element, html } from "../kit/html.ts";
import { dateWords } from "../kit/zone.ts";
import { COLOURS, type Cursor, unitOf } from "./chart.ts";
import { dateText, sameTimes } from "./columns.ts";
import type { Loaded } from "./loaded.ts";
import { numberWords, VALUE_DIGITS } from "./numbers.ts";
import { holdsAt, placeAt, type Series, valueAt } from "./series.ts";
import { TEXTS } from "./texts.ts";

const { cursor: words } = TEXTS;

/** A value of a series at a position. */
export interface Reading {
  readonly series: Series;
  readonly value: number | null;
  /** Of an average. */
  readonly least?: number | null;
  readonly most?: number | null;
}

/** The positions of a plot in their order. */
export interface Track {
  readonly count: number;
  /** Shown before one was chosen. */
  readonly first: number;
  xAt(at: number): number;
  /** The nearest. */
  placeOf(x: number): number;
  titleAt(at: number): string;
  readingsAt(at: number): readonly Reading[];
}

interface AtCursorProps {
  readonly loaded: Loaded;
  readonly track: Track;
  readonly cursor: Cursor;
}

export function AtCursor({ loaded, track, cursor }: AtCursorProps): Element | null {
  const placed = () => (cursor.x === null ? track.first : track.placeOf(cursor.x));
  const [place, setPlace] = useState(placed);
  useEffect(() => {
    setPlace(placed());
    return cursor.listen((x) => setPlace(track.placeOf(x)));
  }, [track, cursor]);
  if (track.count === 0) return null;
  const at = Math.min(place, track.count - 1);
  const readings = track.readingsAt(at);
  const title = track.titleAt(at);
  const move = (event: Event) => {
    const chosen = Number((event.target as HTMLInputElement).value);
    setPlace(chosen);
    cursor.move(track.xAt(chosen));
  };
  const spoken = readings.map((one) => `${nameOf(one.series)} ${readingWords(one, loaded)}`).join("; ");
  return html`<div class="at-cursor">
    <div class="position"><label for="position">${words.label}</label>
      <input id="position" type="range" min="0" max=${track.count - 1} step="1" value=${at} onInput=${move}
        aria-valuetext=${`${title}: ${spoken}`} /></div>
    <p class="moment-at">${title}</p>
    <ul class="readings" aria-label=${words.values}>${readings.map(
      (one, index) => html`<li key=${index}>
        <span class=${`swatch series-${colourOf(one.series, loaded)}${one.series.isOther ? " other" : ""}`}
          aria-hidden="true"></span><bdi>${nameOf(one.series)}</bdi> <b>${readingWords(one, loaded)}</b></li>`,
    )}</ul>
  </div>`;
}

function colourOf({ variable }: Series, { series }: Loaded): number {
  return (
    Math.max(
      0,
      series.findIndex((one) => one.variable.id === variable.id),
    ) % COLOURS
  );
}

function nameOf({ variable, isOther = false }: Series): string {
  return isOther ? words.compared(variable.name) : variable.name;
}

function readingWords({ series, value, least = null, most = null }: Reading, { units }: Loaded): string {
  if (value === null) return TEXTS.noValue;
  const aggregate = series.aggregate === null ? "" : ` ${words.aggregates[series.aggregate]}`;
  const [text, low, high] = [value, least, most].map((one) => numberWords(one, VALUE_DIGITS));
  const unit = unitOf(units, series);
  const shown = `${text ?? ""}${unit === "" ? "" : ` ${unit}`}${aggregate}`;
  return least === null || most === null ? shown : `${shown} ${words.between(low ?? "", high ?? "")}`;
}

/** Each time at which one of the series has a value. */
export function useTimeTrack(loaded: Loaded): Track {
  return useMemo(() => timeTrack([...loaded.series, ...loaded.others], isByDay(loaded)), [loaded]);
}

export function isByDay({ granularity }: Pick<Loaded, "granularity">): boolean {
  return ["Day", "Week", "Month", "Year"].includes(granularity);
}

export function timeTrack(series: readonly Series[], isDay: boolean): Track {
  const { times, offsets } = allTimes(series);
  const title = (at: number) => dateWords(dateText(times[at] ?? 0, offsets[at] ?? 0), isDay);
  return {
    count: times.length,
    first: times.length - 1,
    xAt: (at) => times[at] ?? 0,
    placeOf: (x) => placeAt(times, x, false),
    titleAt: title,
    readingsAt: (at) => series.map((one) => readingAt(one, times[at] ?? 0)),
  };
}

function readingAt(series: Series, time: number): Reading {
  const at = placeAt(series.times, time, series.isStep);
  if (!holdsAt(series, at, time)) return { series, value: null };
  const held = { series, value: valueAt(series, at) };
  if (series.band === null) return held;
  return { ...held, least: series.band.least[at] ?? null, most: series.band.most[at] ?? null };
}

function allTimes(series: readonly Series[]): Pick<Series, "times" | "offsets"> {
  const [only] = series;
  if (only !== undefined && series.length === 1) return only;
  const times: number[] = [];
  const offsets: number[] = [];
  for (const { time, places } of sameTimes(series.map((one) => one.times))) {
    const column = places.findIndex((place) => place >= 0);
    times.push(time);
    offsets.push(series[column]?.offsets[places[column] ?? 0] ?? 0);
  }
  return { times: Float64Array.from(times), offsets: Float64Array.from(offsets) };
}
