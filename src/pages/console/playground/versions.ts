/** The versions of a mapper, with the runs that each made. */
import { type Element, html } from "../../kit/html.ts";
import type { MapperRuns } from "../contract.ts";
import { Scroll } from "../parts.ts";
import { useQuery } from "../query.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count } from "../words.ts";

const { playground: words } = TEXTS;

export function MapperVersions({ mapper }: { readonly mapper: string }): Element | null {
  const runs = useQuery<MapperRuns>("/mappers/runs");
  const own = (runs.answer ?? []).filter(({ name }) => name === mapper);
  if (own.length === 0) return null;
  const { columns } = words;
  return html`<section class="card" aria-labelledby="versions"><h2 id="versions">${words.versions}</h2>
    <${Scroll}><table class="rows versions"><caption class="hidden">${words.versions}</caption>
    <thead><tr><th scope="col">${columns.version}</th><th scope="col" class="number">${columns.runs}</th>
      <th scope="col" class="number">${columns.quarantined}</th><th scope="col">${columns.first}</th>
      <th scope="col">${columns.last}</th></tr></thead>
    <tbody>${own.map(
      ({ version, digest, runs: made, quarantined, first, last }) => html`<tr key=${digest}>
        <td data-label=${columns.version}>${version} <code class="detail-inline">${digest.slice(0, 12)}</code></td>
        <td class="number" data-label=${columns.runs}>${count(made)}</td>
        <td class="number" data-label=${columns.quarantined}>${count(quarantined)}</td>
        <td data-label=${columns.first}><${When} at=${first} seconds=${false} /></td>
        <td data-label=${columns.last}><${When} at=${last} seconds=${false} /></td></tr>`,
    )}</tbody></table></${Scroll}></section>`;
}
