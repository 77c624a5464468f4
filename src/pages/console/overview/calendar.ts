/** When files were expected, and whether they came. */
import { type Element, html } from "../../kit/html.ts";
import type { Calendar } from "../contract.ts";
import { Hint, Loaded, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone } from "../time.ts";
import { moment } from "../words.ts";

const { overview: words } = TEXTS;
type Expectation = Calendar["triggers"][number]["expectations"][number];
const STATUSES = ["on-time", "late", "missing", "pending"] as const;

export function CalendarCard(): Element {
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
