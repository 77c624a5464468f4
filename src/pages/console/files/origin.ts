/** From a reading to the row that it came from. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import type { Origin } from "../contract.ts";
import { FileLink, Foreign, Labelled, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { go, hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone } from "../time.ts";
import { msOfMoment, number, typedMoment } from "../words.ts";

const { origin: words } = TEXTS;

export function ReadingsPage({ place }: PageProps): Element {
  const zone = useZone();
  const target = place.search.get("target") ?? "";
  const date = place.search.get("date") ?? "";
  const operationId = place.search.get("operationId");
  const isAsked = target !== "" && date !== "";
  return html`<h1>${TEXTS.pages.readings}</h1><p class="lead">${words.lead}</p>
    <${Question} key=${`${place.search} ${zone}`} ...${{ target, zone, operationId }} date=${typedMoment(date, zone)} />
    ${isAsked ? html`<${Answer} key=${String(place.search)} ...${{ target, date, operationId }} />` : null}`;
}

/** Of one question: its key keeps a former answer from standing below the fault of another. */
function Answer({ target, date, operationId }: Omit<QuestionProps, "zone">): Element {
  const found = useQuery<{ found: readonly Origin[] }>("/readings", { target, date, operationId });
  return html`<${Loaded} of=${found}>${({ found: rows }: { found: readonly Origin[] }) =>
    rows.length === 0 ? html`<p role="status">${words.none}</p>` : html`<${Found} rows=${rows} />`}</${Loaded}>`;
}

interface QuestionProps {
  readonly target: string;
  readonly date: string;
  readonly zone: string;
  /** Of the push that stored the reading, when the page was opened by a link of the service. */
  readonly operationId: string | null;
}

function Question({ target, date, zone, operationId }: QuestionProps): Element {
  const [typed, setTyped] = useState({ target, date });
  const type = (name: "target" | "date") => (event: Event) =>
    setTyped({ ...typed, [name]: (event.target as HTMLInputElement).value });
  const ask = (event: Event) => {
    event.preventDefault();
    // The address is read in any zone.
    const ms = msOfMoment(typed.date, zone);
    // Another reading may be of another operation.
    const own = typed.target === target && typed.date === date ? operationId : null;
    go(originLink(typed.target.trim(), ms === null ? typed.date.trim() : new Date(ms).toISOString(), own));
  };
  const field = (name: "target" | "date") =>
    Labelled({
      id: name,
      label: words[name],
      hint: words.hints[name],
      children: html`<input id=${name} value=${typed[name]} onInput=${type(name)} required autocomplete="off"
        spellcheck=${false} aria-describedby=${`${name}-hint`} />`,
    });
  return html`<form class="question-form" onSubmit=${ask}>${field("target")}${field("date")}
    <button type="submit">${words.find}</button></form>`;
}

/** `date`: an instant. */
export function originLink(target: string, date: string, operationId: string | null = null): string {
  return hrefOf("/readings", { target, date, operationId });
}

function Found({ rows }: { readonly rows: readonly Origin[] }): Element {
  const { columns } = words;
  return html`<${Scroll}><table class="rows"><caption>${words.found(rows.length)}</caption>
    <thead><tr><th scope="col" class="number">${columns.value}</th><th scope="col">${columns.file}</th>
      <th scope="col">${columns.row}</th><th scope="col">${columns.run}</th><th scope="col">${columns.operation}</th>
        </tr></thead>
    <tbody>${rows.map((one) => {
      const row = one.row === null ? null : String(one.row);
      const to = hrefOf(`/files/${one.file}`, { view: "input", row, sheet: one.sheet });
      return html`<tr><td class="number" data-label=${columns.value}>${number(one.value)}${
        one.version === null ? null : html` <span class="detail"><bdi>${one.version}</bdi></span>`
      }</td>
      <td data-label=${columns.file}><${FileLink} file=${one.file} path=${one.path} /> <span class="detail">
        <bdi>${one.drop}</bdi></span></td>
      <td data-label=${columns.row}>${
        row === null
          ? "–"
          : html`<${Link} to=${to}>${words.row(one.sheet, row)}
        </${Link}>`
      }</td>
      <td data-label=${columns.run}><${State} state=${one.state} /> <span class="detail">
        <code>${one.run}</code> <bdi>${one.mapper}</bdi></span></td>
      <td data-label=${columns.operation}>${
        one.operationId === null
          ? "–"
          : html`<code>
        <${Foreign} text=${one.operationId} /></code>`
      }</td></tr>`;
    })}</tbody></table></${Scroll}>`;
}
