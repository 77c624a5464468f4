/** The shown variables with what the period holds of them, and the values of the plot as a table. */
import { useMemo, useState } from "preact/hooks";
import { usualAggregate } from "#wire/referentials/aggregates.ts";
import { Scroll } from "../kit/browser/scroll.ts";
import { type Element, html } from "../kit/html.ts";
import { dateWords } from "../kit/zone.ts";
import { isByDay } from "./at-cursor.ts";
import { COLOURS, symbolOf, unitOf } from "./chart.ts";
import { sameTimes } from "./columns.ts";
import type { DataRow } from "./hub.ts";
import type { Loaded } from "./loaded.ts";
import { numberWords, SUMMARY_DIGITS, VALUE_DIGITS } from "./numbers.ts";
import { dateAt, type Series, valueAt } from "./series.ts";
import { TEXTS } from "./texts.ts";

const ROWS = 200;
/** At first, in which many variables have fewer rows. */
const CELLS = 1_000;
const ROWS_LEAST = 50;

const NUMBERS: ReadonlySet<string> = new Set(["total", "mean", "least", "most", "count"]);

interface LegendProps {
  readonly loaded: Loaded;
  onUnit(unitId: number): void;
  onRemove(id: number): void;
}

export function Legend({ loaded, onUnit, onRemove }: LegendProps): Element {
  const { columns } = TEXTS;
  const names = ["variable", "unit", "latest", "total", "mean", "least", "most", "count", "actions"] as const;
  const heads = names.map(
    (name) =>
      html`<th scope="col" class=${NUMBERS.has(name) ? "number" : ""}>${
        name === "actions" ? html`<span class="hidden">${columns.actions}</span>` : columns[name]
      }</th>`,
  );
  const rows = loaded.series.map((one, at) => LegendRow({ loaded, one, at, onUnit, onRemove }));
  return html`<${Scroll}><table class="rows legend"><caption class="hidden">${TEXTS.shown}</caption>
    <thead><tr>${heads}</tr></thead>
    <tbody>${rows}</tbody></table></${Scroll}>`;
}

function LegendRow({ loaded, one, at, onUnit, onRemove }: LegendProps & { one: Series; at: number }): Element {
  const { variable } = one;
  const { columns } = TEXTS;
  const source = loaded.sources.get(variable.sourceId);
  const own = loaded.summaries.get(variable.id);
  const number = (name: keyof typeof columns, value: number | null | undefined) =>
    html`<td class="number" data-label=${columns[name]}>${numberWords(value, SUMMARY_DIGITS)}</td>`;
  const stored = loaded.units.get(variable.unitId ?? 0);
  const family = [...loaded.units.values()].filter((unit) => unit.unitFamilyId === stored?.unitFamilyId);
  const change = (event: Event) => onUnit(Number((event.target as HTMLSelectElement).value));
  const options = family.map((unit) => html`<option key=${unit.id} value=${unit.id}>${unit.symbol}</option>`);
  const path = [source?.siteName ?? source?.site?.name, source?.name].filter((text) => text).join(" › ");
  return html`<tr key=${variable.id}>
    <th scope="row" data-label=${columns.variable}>
      <div class="named"><span class=${`swatch series-${at % COLOURS}`} aria-hidden="true"></span>
      <span><bdi class="name">${variable.name}</bdi><span class="detail"><bdi>${path}</bdi></span>${aggregateOf(
        one,
      )}</span></div>
    </th>
    <td data-label=${columns.unit}>
      <label class="hidden" for=${`unit-${variable.id}`}>${TEXTS.unitOf(variable.name)}</label>
      <select id=${`unit-${variable.id}`} value=${one.unitId} onChange=${change}>${options}</select>
    </td>
    <td data-label=${columns.latest}>${Latest(loaded, own?.latest)}</td>
    ${number("total", own?.sumValue)}${number("mean", own?.avgValue)}${number("least", own?.minValue)}
    ${number("most", own?.maxValue)}${number("count", own?.countValue)}
    <td><button type="button" class="plain small" aria-label=${TEXTS.remove(variable.name)}
      onClick=${() => onRemove(variable.id)}>×</button></td>
  </tr>`;
}

/** How the plot puts the values of a period together, and that a variable does not say how. */
function aggregateOf({ variable, aggregate }: Series): Element | null {
  const unsaid = usualAggregate(variable) === null ? TEXTS.withoutQuantity : "";
  const words = [aggregate === null ? "" : TEXTS.aggregates[aggregate], unsaid].filter((text) => text !== "");
  return words.length === 0 ? null : html`<span class="detail">${words.join(": ")}</span>`;
}

function Latest({ units, atMs }: Loaded, row: DataRow | undefined): Element {
  if (row === undefined) return html`<span class="muted">${TEXTS.never}</span>`;
  const ms = atMs - Date.parse(row.date ?? "");
  const value = `${numberWords(row.rawValue, SUMMARY_DIGITS)} ${symbolOf(units, row.unitId ?? 0)}`;
  const date = dateWords(row.date ?? "", false);
  return html`<span>${value}<span class="detail" title=${date}>${ageWords(ms)}</span></span>`;
}

function ageWords(ms: number): string {
  const length = Math.abs(ms);
  const [name, unit] = TEXTS.ages.find(([, one]) => length >= one) ?? ["second", 1_000];
  const count = Math.floor(length / unit);
  const words = `${count} ${name}${count === 1 ? "" : "s"}`;
  return ms < 0 ? TEXTS.ahead(words) : TEXTS.ago(words);
}

interface ValuesProps {
  readonly loaded: Loaded;
  /** A value was chosen; absent: values are sums and the like, and not points. */
  readonly onPick?: ((series: Series, at: number) => void) | undefined;
}

/** The values of the plot, in its order. */
export function Values({ loaded, onPick }: ValuesProps): Element {
  const first = Math.min(ROWS, Math.max(ROWS_LEAST, Math.floor(CELLS / loaded.series.length)));
  const [times, setTimes] = useState(1);
  const most = times * first;
  const { rows, count } = useMemo(() => rowsOf(loaded.series, most), [loaded, most]);
  if (count === 0) return html`<p class="muted">${TEXTS.noRows}</p>`;
  const isDay = isByDay(loaded);
  const heads = loaded.series.map(
    (one) =>
      html`<th scope="col" class="number"><bdi>${one.variable.name}</bdi> ${unitIn(loaded, one)}${
        one.aggregate === null ? null : html`<span class="detail">${TEXTS.aggregates[one.aggregate]}</span>`
      }</th>`,
  );
  const cell = (series: Series, at: number) => {
    const value = valueAt(series, at);
    const text = numberWords(value, VALUE_DIGITS);
    if (onPick === undefined || value === null) return text;
    const label = TEXTS.point.open(series.variable.name, dateWords(dateAt(series, at), false), text);
    return html`<button type="button" class="value" aria-label=${label}
      onClick=${() => onPick(series, at)}>${text}</button>`;
  };
  const body = rows.map(
    ({ date, places }) => html`<tr key=${date}><th scope="row">${dateWords(date, isDay)}</th>
      ${loaded.series.map((one, column) => html`<td class="number">${cell(one, places[column] ?? -1)}</td>`)}</tr>`,
  );
  const more = html`<p>${TEXTS.rowsShown(Math.min(most, count), count)}
    <button type="button" class="plain small" onClick=${() => setTimes(times * 5)}>${TEXTS.more}</button></p>`;
  return html`<${Scroll}><table class="values"><caption class="hidden">${TEXTS.table}</caption>
    <thead><tr><th scope="col">${TEXTS.date(loaded.zone)}</th>${heads}</tr></thead><tbody>${body}</tbody>
  </table></${Scroll}>${count > most ? more : null}`;
}

function unitIn({ units }: Loaded, series: Series): string {
  const symbol = unitOf(units, series);
  return symbol === "" ? "" : `(${symbol})`;
}

interface ValuesRow {
  readonly date: string;
  /** In each series; -1 where it has none. */
  readonly places: readonly number[];
}

/** The first rows, and how many there are. */
function rowsOf(series: readonly Series[], most: number): { rows: readonly ValuesRow[]; count: number } {
  const rows: ValuesRow[] = [];
  let count = 0;
  for (const { places } of sameTimes(series.map(({ times }) => times))) {
    count += 1;
    if (count > most) continue;
    const column = places.findIndex((place) => place >= 0);
    const one = series[column];
    rows.push({ date: one === undefined ? "" : dateAt(one, places[column] ?? 0), places: [...places] });
  }
  return { rows, count };
}
