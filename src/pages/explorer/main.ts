/** Begins the explorer in its page. */
import { render } from "preact";
import { type Element, html } from "../kit/html.ts";
import "uplot/dist/uPlot.min.css";
import "./explorer.css";
import { useCallback, useEffect, useMemo, useState } from "preact/hooks";
import { usualAggregate } from "#wire/referentials/aggregates.ts";
import { useLater } from "../kit/browser/later.ts";
import { Scroll } from "../kit/browser/scroll.ts";
import { Card, Notice } from "../kit/parts.ts";
import { dateWords, localOfMs, msOfLocal, nowMs } from "../kit/zone.ts";
import { addressOf, readAddress, type Shown, VARIABLES_MAX } from "./address.ts";
import { AtCursor, isByDay, timeTrack, useTimeTrack } from "./at-cursor.ts";
import { Chart, COLOURS, Cursor, HINT, periodWords, symbolOf, unitOf } from "./chart.ts";
import { sameTimes } from "./columns.ts";
import { countDifferences, differences } from "./comparison.ts";
import { Controls, type ControlsProps, choice } from "./controls.ts";
import { DurationChart, DurationTable, useCurves, useDurationTrack } from "./duration-chart.ts";
import { HeatChart } from "./heat-chart.ts";
import { type DataRow, pathOf, SessionEnded } from "./hub.ts";
import { type Loaded, useLoaded } from "./loaded.ts";
import { numberWords, SUMMARY_DIGITS, VALUE_DIGITS } from "./numbers.ts";
import { Point } from "./point.ts";
import { dateAt, type Series, valueAt } from "./series.ts";
import { type Earlier, PERIODS, SPANS, type Span, type State } from "./state.ts";
import { TEXTS } from "./texts.ts";
import { Tree } from "./tree.ts";

const ROWS = 200;
/** At first, in which many variables have fewer rows. */
const CELLS = 1_000;
const ROWS_LEAST = 50;
const NUMBERS: ReadonlySet<string> = new Set(["total", "mean", "least", "most", "count"]);
const { versions: words } = TEXTS;

const BEGINNINGS: Readonly<Record<State["kind"], () => State>> = {
  current: () => ({ kind: "current" }),
  last: () => ({ kind: "last", count: 24, span: "h" }),
  asof: () => ({ kind: "asof", at: instantOf(nowMs()) }),
  tag: () => ({ kind: "tag", tag: "" }),
};

const FORMATS = [
  { words: "CSV", format: "csv" },
  { words: "XLSX", format: "xlsx" },
  { words: "JSON", format: "json" },
];

const place = document.getElementById("explorer");
if (place !== null) {
  place.replaceChildren();
  render(html`<${App} />`, place);
}

/** The explorer: the tree, and beside it what was chosen there. */
function App(): Element {
  const [shown, setShown] = useState(() => readAddress(location.search));
  const [fault, setFault] = useState<unknown>(null);
  useEffect(() => {
    const back = () => setShown(readAddress(location.search));
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  const { loaded, isLoading } = useLoaded(shown, setFault);
  const change = (part: Partial<Shown>) => {
    const next = { ...shown, ...part };
    history.pushState(null, "", addressOf(next));
    setFault(null);
    setShown(next);
  };
  const choose = (id: number, isAdded: boolean) => {
    const others = isAdded ? shown.variables.filter((one) => one !== id) : [];
    change({ variables: [...others, id].slice(-VARIABLES_MAX), ...(isAdded ? {} : { units: [], point: null }) });
  };
  return html`<div class="explorer">
    <${Tree} chosen=${shown.variables} onChoose=${choose} onFault=${setFault} />
    <div class="shown" aria-busy=${isLoading}>
      ${fault === null ? null : Fault(fault)}
      <p class="hidden" role="status">${isLoading ? TEXTS.loading : ""}</p>
      ${shown.variables.length === 0 ? html`<p class="muted">${TEXTS.choose}</p>` : null}
      ${loaded === null ? null : html`<${Plot} ...${{ shown, loaded }} onChange=${change} onFault=${setFault} />`}
    </div>
  </div>`;
}

function Fault(thrown: unknown): Element {
  if (!(thrown instanceof SessionEnded)) {
    const words = thrown instanceof Error ? thrown.message : String(thrown);
    return Notice({ kind: "danger", children: html`<p>${TEXTS.failed(words)}</p>` });
  }
  const next = `${location.pathname}${location.search}`;
  const link = html`<a href=${pathOf("/sign-in", { next })}>${TEXTS.signIn}</a>`;
  return Notice({ kind: "danger", children: html`<p>${TEXTS.ended} ${link}</p>` });
}

interface PlotProps {
  readonly shown: Shown;
  readonly loaded: Loaded;
  onChange(change: Partial<Shown>): void;
  onFault(thrown: unknown): void;
}

function Plot({ shown, loaded, onChange, onFault }: PlotProps): Element {
  const { others, units, zone, granularity, view } = loaded;
  const pick = useCallback(
    (one: Series, at: number) => onChange({ point: { variableId: one.variable.id, date: dateAt(one, at) } }),
    [loaded],
  );
  const onPick = granularity === "Raw" ? pick : undefined;
  const zoom = useCallback(
    (start: number, end: number) => {
      const [first, last] = [localOfMs(start, zone), localOfMs(end, zone)];
      if (first < last) onChange({ from: first, to: last });
    },
    [loaded],
  );
  const setUnit = (unitId: number) => {
    const family = units.get(unitId)?.unitFamilyId;
    const others = shown.units.filter((one) => units.get(one)?.unitFamilyId !== family);
    onChange({ units: [...others, unitId] });
  };
  const remove = (id: number) => onChange({ variables: shown.variables.filter((one) => one !== id) });
  return html`
    <${Legend} loaded=${loaded} onUnit=${setUnit} onRemove=${remove} />
    <${Controls} shown=${shown} loaded=${loaded} onChange=${onChange} />
    <${Versions} shown=${shown} loaded=${loaded} onChange=${onChange} />
    <${Figure} ...${{ shown, loaded, onPick }} onZoom=${zoom} />
    ${others.length === 0 || view !== "time" ? null : html`<${Difference} loaded=${loaded} onZoom=${zoom} />`}
    ${
      shown.point === null
        ? null
        : html`<${Point} name=${shown.point} loaded=${loaded} onFault=${onFault}
            onState=${(state: Shown["state"]) => onChange({ state })} onClose=${() => onChange({ point: null })} />`
    }
    <${Exports} loaded=${loaded} />
    <${Table} ...${{ loaded, onPick }} />`;
}

interface DifferenceProps {
  readonly loaded: Loaded;
  onZoom(fromMs: number, toMs: number): void;
}

/** The shown values minus those that they are compared with. */
function Difference({ loaded, onZoom }: DifferenceProps): Element {
  const { series, others, units, zone, fromMs, toMs } = loaded;
  const drawn = useMemo(() => differences(series, others), [loaded]);
  const { changed, added, missing } = useMemo(() => countDifferences(series, others), [loaded]);
  const words = TEXTS.versions.difference;
  return html`<h2>${words}</h2><p role="status">${TEXTS.versions.counts(changed, added, missing)}</p>
    <${Chart} ...${{ series: drawn, units, zone, fromMs, toMs, words }} onZoom=${onZoom} />`;
}

/** Files of the values that are shown: links, which the browser saves as they come. */
function Exports({ loaded }: { readonly loaded: Loaded }): Element {
  const links = FORMATS.map(({ words, format }) => {
    const href = pathOf("/data/export", { ...loaded.question, Format: format });
    return html`<a class="button plain small" href=${href} download>${words}</a>`;
  });
  return html`<div class="buttons" role="group" aria-label=${TEXTS.export}>
    <span>${TEXTS.export}:</span>${links}
  </div>`;
}

// The plot in the view that was chosen, with the values at a position of it, and the table below.

interface FigureProps {
  readonly shown: Shown;
  readonly loaded: Loaded;
  readonly onPick: ((series: Series, at: number) => void) | undefined;
  onZoom(fromMs: number, toMs: number): void;
}

function Figure(props: FigureProps): Element {
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
function Table({ loaded, onPick }: Pick<FigureProps, "loaded" | "onPick">): Element {
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

function instantOf(ms: number): string {
  return new Date(ms).toISOString();
}

/** Controls: which versions are shown, and what they are compared with. */
function Versions({ shown, loaded, onChange }: ControlsProps): Element {
  const { state, comparison } = shown;
  const kinds = Object.keys(BEGINNINGS) as State["kind"][];
  const freeze = () => onChange({ state: BEGINNINGS.asof() });
  const against = comparison.kind === "earlier" ? comparison.unit : comparison.kind === "none" ? "" : comparison.kind;
  const compare = (value: string) => {
    const unit = PERIODS.find((one) => one === value);
    if (unit !== undefined) onChange({ comparison: { kind: "earlier", unit } });
    else if (value === "asof") onChange({ comparison: { kind: "asof", at: instantOf(nowMs() - SPANS.d) } });
    else onChange({ comparison: { kind: "none" } });
  };
  return html`<div class="row" role="group" aria-label=${words.label}>
    ${choice({
      id: "versions",
      label: words.label,
      value: state.kind,
      options: kinds.map((value) => ({ value, words: words.kinds[value] })),
      set: (value) => onChange({ state: BEGINNINGS[value as State["kind"]]() }),
    })}
    ${Detail({ shown, loaded, onChange })}
    ${
      state.kind === "asof"
        ? null
        : html`<button type="button" class="plain small" onClick=${freeze}>${words.freeze}</button>`
    }
    ${choice({
      id: "comparison",
      label: words.compare,
      value: against,
      options: [
        { value: "", words: words.nothing },
        { value: "asof", words: words.other },
        ...PERIODS.map((unit: Earlier) => ({ value: unit, words: words.earlier[unit] })),
      ],
      set: compare,
    })}
    ${
      comparison.kind === "asof"
        ? moment("compared", words.otherMoment, comparison.at, loaded.zone, (at) =>
            onChange({ comparison: { kind: "asof", at } }),
          )
        : null
    }
  </div>`;
}

function Detail({ shown: { state }, loaded, onChange }: ControlsProps): Element | null {
  if (state.kind === "asof")
    return moment("moment", words.moment, state.at, loaded.zone, (at) => onChange({ state: { kind: "asof", at } }));
  if (state.kind === "tag") {
    const set = (event: Event) => onChange({ state: { kind: "tag", tag: (event.target as HTMLInputElement).value } });
    return html`<div class="field"><label for="tag">${words.tag}</label>
      <input id="tag" value=${state.tag} maxlength="200" autocomplete="off" spellcheck=${false}
        onChange=${set} /></div>`;
  }
  if (state.kind === "current") return null;
  const count = (event: Event) => {
    const value = Math.floor(Number((event.target as HTMLInputElement).value));
    if (value > 0 && value <= 9_999) onChange({ state: { ...state, count: value } });
  };
  return html`<div class="field short"><label for="count">${words.count}</label>
      <input id="count" type="number" min="1" max="9999" value=${state.count} onChange=${count} /></div>
    ${choice({
      id: "span",
      label: words.span,
      value: state.span,
      options: (Object.keys(SPANS) as Span[]).map((value) => ({ value, words: words.spans[value] })),
      set: (value) => onChange({ state: { ...state, span: value as Span } }),
    })}`;
}

function moment(id: string, label: string, at: string, zone: string, set: (at: string) => void): Element {
  const ms = Date.parse(at);
  const second = new Date(ms).getUTCSeconds();
  const local = `${localOfMs(ms, zone)}:${String(second).padStart(2, "0")}`;
  const change = (event: Event) => {
    const { value } = event.target as HTMLInputElement;
    const [minute = "", rest = "00"] = [value.slice(0, 16), value.slice(17, 19)];
    if (value !== "") set(instantOf(msOfLocal(minute, zone) + Number(rest || "00") * 1_000));
  };
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} type="datetime-local" step="1" value=${local} required onChange=${change} /></div>`;
}

// The shown variables with what the period holds of them, and the values of the plot as a table.

interface LegendProps {
  readonly loaded: Loaded;
  onUnit(unitId: number): void;
  onRemove(id: number): void;
}

function Legend({ loaded, onUnit, onRemove }: LegendProps): Element {
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
function Values({ loaded, onPick }: ValuesProps): Element {
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
