/** The gateway at a glance: the flow, what happened over time, and the files that are expected. */
import { type Element, html } from "../../kit/html.ts";
import type { PageProps } from "../app.ts";
import type { Overview } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Foreign, Loaded, Scroll, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { bytes, count } from "../words.ts";
import { CalendarCard } from "./calendar.ts";
import { Flow } from "./flow.ts";
import { HistoryCard } from "./history.ts";

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
