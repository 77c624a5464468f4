/** Files, readings, errors and delays of a day or a month. */
import { useMemo } from "preact/hooks";
import uPlot, { type AlignedData } from "uplot";
import { axisOf, Plot, TICKS, tick } from "../../kit/browser/plot.ts";
import { type Element, html } from "../../kit/html.ts";
import type { History } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Loaded, Scroll } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone } from "../time.ts";
import { count, length, moment } from "../words.ts";

const { overview: words } = TEXTS;
const NAMES = ["files", "points", "errors", "delayMs"] as const;
type Name = (typeof NAMES)[number];
const COLOURS: Readonly<Record<Name, string>> = {
  files: "series-0",
  points: "series-2",
  errors: "danger",
  delayMs: "series-3",
};
const RELOAD_MS = 60_000;
/** Parts of the width of a step that a bar takes, and pixels at most. */
const BAR = [0.7, 40];
/** Of ticks between counts. */
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
const AXIS_PIXELS = { numbers: 56, lengths: 84 } as const;

export function HistoryCard({ period }: { readonly period: "day" | "month" }): Element {
  const history = useQuery<History>("/history", { period });
  useLiveReload(["state"], history.reload, RELOAD_MS);
  const tab = (one: "day" | "month") =>
    html`<li><${Link} to=${hrefOf("/overview", { period: one === "day" ? null : one })} current=${one === period}>
      ${words.periods[one]}</${Link}></li>`;
  return html`<section aria-labelledby="history"><h2 id="history">${words.history}</h2>
    <nav class="chips" aria-label=${words.periodsLabel}><ul>${tab("day")}${tab("month")}</ul></nav>
    <${Loaded} of=${history}>${(shown: History) =>
      html`<div class="plots">${NAMES.map(
        (name) => html`<${SmallPlot} key=${name} name=${name} shown=${shown} />`,
      )}</div><${Steps} shown=${shown} />`}</${Loaded}></section>`;
}

/** The numbers that are drawn, for people who do not see the plots or want to read them. */
function Steps({ shown }: { readonly shown: History }): Element {
  const zone = useZone();
  const { from, stepMs, series } = shown;
  const steps = series.files.flatMap((_, at) => (NAMES.some((name) => series[name][at]) ? [at] : [])).reverse();
  const momentOf = (at: number) => moment(Date.parse(from) + at * stepMs, zone, false);
  const cell = (name: Name, at: number) => {
    const value = series[name][at] ?? null;
    return value === null ? "–" : name === "delayMs" ? length(value) : count(value);
  };
  return html`<details class="steps"><summary>${words.asTable}</summary>
    ${
      steps.length === 0
        ? html`<p class="muted">${words.noSteps}</p>`
        : html`<${Scroll}><table class="rows"><caption>${words.steps(length(stepMs))}</caption>
            <thead><tr><th scope="col">${words.columns.from}</th>${NAMES.map(
              (name) => html`<th scope="col" class="number">${words.series[name]}</th>`,
            )}</tr></thead>
            <tbody>${steps.map(
              (at) => html`<tr key=${at}><td data-label=${words.columns.from} class="when">
                ${momentOf(at)}</td>${NAMES.map(
                  (name) => html`<td class="number" data-label=${words.series[name]}>${cell(name, at)}</td>`,
                )}</tr>`,
            )}</tbody></table></${Scroll}>`
    }</details>`;
}

function SmallPlot({ name, shown }: { readonly name: Name; readonly shown: History }): Element {
  const zone = useZone();
  const { from, stepMs, series } = shown;
  const { [name]: values } = series;
  const start = Date.parse(from) / 1_000;
  const data = useMemo<AlignedData>(() => {
    return [values.map((_, at) => start + (at * stepMs) / 1_000), [...values]];
  }, [shown]);
  const known = values.flatMap((value) => value ?? []);
  const sum = known.reduce<number>((total, value) => total + value, 0);
  const mean = known.length === 0 ? null : sum / known.length;
  const total = name === "delayMs" ? (mean === null ? "–" : length(mean)) : count(sum);
  const label = `${words.series[name]}: ${total}`;
  const draw = (colour: (one: string) => string) => {
    const axis = axisOf(colour);
    const stroke = colour(COLOURS[name]);
    const bars = uPlot.paths.bars?.({ size: [BAR[0] ?? 1, BAR[1] ?? 1], align: 1 });
    const paths = name === "delayMs" || bars === undefined ? {} : { paths: bars };
    return {
      data,
      options: {
        series: [
          {},
          {
            stroke,
            fill: name === "delayMs" ? undefined : stroke,
            width: name === "delayMs" ? 1.5 : 0,
            points: { show: name === "delayMs" },
            ...paths,
          },
        ],
        legend: { show: false },
        tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), zone),
        // The last bar has its whole step, and heights compare from zero.
        scales: {
          x: { range: [start, start + (values.length * stepMs) / 1_000] },
          y: { range: (_: uPlot, _least: number, most: number): [number, number] => [0, most > 0 ? most * 1.1 : 1] },
        },
        axes: [
          { ...axis, values: TICKS, space: 70 },
          {
            ...axis,
            ...(name === "delayMs" ? {} : { incrs: WHOLE }),
            size: AXIS_PIXELS[name === "delayMs" ? "lengths" : "numbers"],
            space: 40,
            values: (_: uPlot, all: number[]) => all.map((one) => (name === "delayMs" ? length(one) : tick(one))),
          },
        ],
        cursor: { drag: { x: false, y: false } },
      },
    };
  };
  return html`<figure><figcaption>${words.series[name]} <b>${total}</b></figcaption>
    <${Plot} height=${() => 150} words=${label} inputs=${[data, zone]} draw=${draw} /></figure>`;
}
