/** The gateway at a glance: the flow, what happened over time, and the files that are expected. */

import { useMemo } from "preact/hooks";
import uPlot, { type AlignedData } from "uplot";
import { axisOf, Plot, TICKS, tick } from "../../kit/browser/plot.ts";
import { type Content, type Element, html } from "../../kit/html.ts";
import type { Calendar, History, Overview } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Foreign, Hint, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone, When } from "../time.ts";
import { bytes, count, length, moment, number } from "../words.ts";

const NAMES = ["files", "points", "errors", "delayMs"] as const;

const COLOURS: Readonly<Record<Name, string>> = {
  files: "series-0",
  points: "series-2",
  errors: "danger",
  delayMs: "series-3",
};
const HISTORY_RELOAD_MS = 60_000;

/** Parts of the width of a step that a bar takes, and pixels at most. */
const BAR = [0.7, 40];
/** Of ticks between counts. */
const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
const AXIS_PIXELS = { numbers: 56, lengths: 84 } as const;

/** Drops that are named one by one. */
const DROPS_MOST = 12;

const STATUSES = ["on-time", "late", "missing", "pending"] as const;
const { overview: words } = TEXTS;
const RELOAD_MS = 3_000;

export function OverviewPage({ place }: PageProps): Element {
  const overview = useQuery<Overview>("/overview");
  useLiveReload(["state", "drops"], overview.reload, RELOAD_MS);
  return html`<h1>${TEXTS.pages.overview}</h1>
    <${Loaded} of=${overview}>${(shown: Overview) => html`
      ${Health(shown)}<${Flow} flow=${shown.flow} />
      <${HistoryCard} period=${place.search.get("period") === "month" ? "month" : "day"} />
      <div class="halves">${SpoolCard(shown)}${Nodes(shown)}</div>
      ${Services(shown)}<${CalendarCard} />`}</${Loaded}>`;
}

function Health({ health, attention }: Overview): Element | null {
  const faults = health.filter(({ ready }) => !ready);
  const matters =
    attention === 0 ? null : html`<p class="lead"><${Link} to="/">${words.attention(attention)}</${Link}></p>`;
  if (faults.length === 0) return matters ?? html`<p class="calm">${words.healthy}</p>`;
  return html`<section class="card" aria-labelledby="health"><h2 id="health">${words.health}</h2>
    <ul class="plain-list">${faults.map(
      ({ part, reason }) => html`<li><${State} state="trouble" words=${part} /> <${Foreign} text=${reason} /></li>`,
    )}</ul>${matters}</section>`;
}

function SpoolCard({ spool }: Overview): Element {
  const { usedBytes, budgetBytes, freeBytes, full } = spool;
  const share = budgetBytes === 0 ? 0 : usedBytes / budgetBytes;
  return html`<section class="card" aria-labelledby="spool"><h2 id="spool">${words.spool}</h2>
    <label class="hidden" for="spool-used">${words.spool}</label>
    <meter id="spool-used" min="0" max="1" high="0.9" optimum="0" value=${share}></meter>
    <p>${words.used(bytes(usedBytes), bytes(budgetBytes))}${
      freeBytes === null ? null : html` <span class="detail">${words.free(bytes(freeBytes))}</span>`
    }</p>${full === null ? null : html`<p class="warn"><${Foreign} text=${full} /></p>`}</section>`;
}

function Nodes({ nodes }: Overview): Element | null {
  if (nodes.length === 0) return null;
  const { columns } = words;
  return html`<section class="card" aria-labelledby="nodes"><h2 id="nodes">${words.nodes}</h2>
    <${Scroll}><table class="rows"><caption class="hidden">${words.nodes}</caption>
    <thead><tr><th scope="col">${columns.node}</th><th scope="col">${columns.drops}</th>
      <th scope="col" class="number">${columns.runs}</th><th scope="col">${columns.seen}</th></tr></thead>
    <tbody>${nodes.map(
      ({ node, drops, runs, seenAt, isAlive, isSelf }) => html`<tr><td data-label=${columns.node}><${State}
          state=${isAlive ? "ok" : "trouble"} words=${node} />${
            isSelf
              ? html` <span class="detail">${words.thisNode}
            </span>`
              : null
          }</td>
        <td data-label=${columns.drops}><bdi>${drops.join(", ") || "–"}</bdi></td>
        <td class="number" data-label=${columns.runs}>${count(runs)}</td><td data-label=${columns.seen}>
          <${When} at=${seenAt} age /></td></tr>`,
    )}</tbody></table></${Scroll}></section>`;
}

function Services({ flow }: Overview): Element {
  const { columns } = words;
  return html`<section class="card" aria-labelledby="services"><h2 id="services">${words.services}</h2>
    <${Scroll}><table class="rows"><caption class="hidden">${words.services}</caption>
    <thead><tr><th scope="col">${columns.service}</th><th scope="col">${columns.state}</th>
      <th scope="col">${columns.breaker}</th><th scope="col" class="number">${columns.waiting}</th>
      <th scope="col">${columns.lastError}</th></tr></thead>
    <tbody>${flow.services.map(
      ({
        name,
        state,
        reason,
        breaker,
        waiting,
        lastError,
      }) => html`<tr><td data-label=${columns.service}><bdi>${name}</bdi></td>
        <td data-label=${columns.state}><${State} state=${STATES[state]} words=${words.serviceStates[state]} />${
          reason === null ? null : html` <span class="detail"><${Foreign} text=${reason} /></span>`
        }</td><td data-label=${columns.breaker}>${words.breakers[breaker]}</td>
        <td class="number" data-label=${columns.waiting}>${count(waiting)}</td>
        <td data-label=${columns.lastError}>${
          lastError === null
            ? "–"
            : html`<${Foreign} text=${lastError}
          most=${240} />`
        }</td></tr>`,
    )}</tbody></table></${Scroll}></section>`;
}

const STATES = { up: "ok", down: "trouble", unused: "pending" } as const;

type Expectation = Calendar["triggers"][number]["expectations"][number];

/** When files were expected, and whether they came. */
function CalendarCard(): Element {
  const calendar = useQuery<Calendar>("/calendar");
  return html`<section class="card" aria-labelledby="calendar"><h2 id="calendar">${words.calendar}</h2>
    <${Loaded} of=${calendar}>${({ triggers }: Calendar) =>
      triggers.length === 0
        ? html`<p class="muted"><${Hint} text=${words.noExpectations} /></p>`
        : html`<ul class="legend-line">${STATUSES.map((status) => html`<li><${State} state=${status} /></li>`)}</ul>
          ${triggers.map((one) => html`<${TriggerRow} key=${one.trigger} ...${one} />`)}`}</${Loaded}></section>`;
}

function TriggerRow({ trigger, expectations }: Calendar["triggers"][number]): Element {
  const zone = useZone();
  const days = Map.groupBy(expectations, ({ due }) => moment(Date.parse(due), zone, false).slice(0, 10));
  const counts = STATUSES.flatMap((status) => {
    const found = expectations.filter((one) => one.status === status).length;
    return found === 0 ? [] : [`${found} ${(TEXTS.states[status] ?? status).toLowerCase()}`];
  });
  return html`<h3><bdi>${trigger}</bdi> <span class="detail">${counts.join(" · ")}</span></h3>
    <ol class="calendar">${[...days].map(
      ([day, list]) =>
        html`<li key=${day}><span class="day">${day.slice(5)}</span><span class="dues">
          ${list.map((one) => Due(one, zone))}</span></li>`,
    )}</ol>`;
}

function Due({ due, status, file, arrivedAt }: Expectation, zone: string): Element {
  const label = words.due(
    moment(Date.parse(due), zone, false),
    TEXTS.states[status] ?? status,
    arrivedAt === null ? null : moment(Date.parse(arrivedAt), zone, false),
  );
  const mark = html`<span class=${`due ${status}`} title=${label}></span><span class="hidden">${label}</span>`;
  return file === null ? html`<span>${mark}</span>` : html`<${Link} to=${hrefOf(`/files/${file}`)}>${mark}</${Link}>`;
}

/** The flow from drops to services, with what waits and what moves. */
function Flow({ flow }: Pick<Overview, "flow">): Element {
  const { drops, stages, services } = flow;
  // A drop in trouble must not be hidden among many.
  const sorted = [...drops].sort((one, other) => rank(one.state) - rank(other.state));
  return html`<section aria-labelledby="flow"><h2 id="flow">${words.flow}</h2><ol class="flow">
    ${Box(
      words.drops(drops.length),
      html`<ul class="plain-list">${sorted.slice(0, DROPS_MOST).map(
        ({
          name,
          state,
          words: about,
          waiting,
        }) => html`<li class="flow-line"><${Link} to=${hrefOf(`/drops/${encodeURIComponent(name)}`)}><${State}
            state=${state} words=${name} /></${Link}>${
              waiting > 0 ? html` <b title=${words.waitingFiles}>${count(waiting)}</b>` : null
            }${
              state === "ok" ? null : html` <span class="detail"><${Foreign} text=${about} most=${120} /></span>`
            }</li>`,
      )}</ul>${
        drops.length > DROPS_MOST
          ? html`<p class="detail">${TEXTS.inbox.andMore(drops.length - DROPS_MOST)}
        </p>`
          : null
      }`,
    )}
    ${stages.map(({ name, running, waiting, ratePerMinute }) =>
      Box(
        words.stages[name],
        html`<p class="big">${count(waiting)} <span class="detail">${words.waiting}</span></p>
          <p class="detail">${words.running(running)}<br />${words.rate(number(Math.round(ratePerMinute * 10) / 10))}
            </p>`,
      ),
    )}
    ${Box(
      words.servicesOf(services.length),
      html`<ul class="plain-list">${services.map(
        ({ name, state, waiting }) => html`<li class="flow-line"><${State}
          state=${state === "up" ? "ok" : state === "down" ? "trouble" : "pending"}
            words=${name} />${waiting > 0 ? html` <b>${count(waiting)}</b>` : null}</li>`,
      )}</ul>`,
    )}
  </ol></section>`;
}

function rank(state: string): number {
  return ["trouble", "paused", "ok"].indexOf(state);
}

function Box(title: string, content: Content): Element {
  return html`<li class="flow-box"><h3>${title}</h3>${content}</li>`;
}

type Name = (typeof NAMES)[number];

/** Files, readings, errors and delays of a day or a month. */
function HistoryCard({ period }: { readonly period: "day" | "month" }): Element {
  const history = useQuery<History>("/history", { period });
  useLiveReload(["state"], history.reload, HISTORY_RELOAD_MS);
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
