/** The consequence of an action, in numbers and rows. */
import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import type { PreviewDetail, ReplayDetail } from "../contract.ts";
import { Foreign, Scroll } from "../parts.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count, number } from "../words.ts";

const { consequence } = TEXTS;
const ROWS = 12;

export function Consequence({ detail }: { readonly detail: PreviewDetail }): Element {
  switch (detail.action) {
    case "replay":
      return html`<${Replay} detail=${detail} />`;
    case "provision":
      return html`${Listed(consequence.creates, detail.creates, detail.count)}
        ${Listed(consequence.impossible, detail.impossible, detail.impossible.length)}`;
    case "release":
      return Numbers(
        [
          [consequence.readings, detail.readings],
          [consequence.discards, detail.discards],
        ],
        detail.overtaken === null ? null : html`<p class="warn"><${Foreign} text=${detail.overtaken} /></p>`,
      );
    case "cancel":
      return Numbers([
        [consequence.stays, detail.acceptedPoints],
        [consequence.unanswered, detail.unanswered],
      ]);
    case "forget":
      return Numbers([
        [consequence.versions, detail.versions],
        [consequence.runs, detail.runs],
        [consequence.stays, detail.acceptedPoints],
        [consequence.unanswered, detail.unanswered],
      ]);
  }
}

function Numbers(
  facts: readonly (readonly [words: (count: number) => string, value: number])[],
  more: Content = null,
): Element {
  return html`<ul class="numbers">${facts.map(
    ([words, value]) => html`<li class=${value === 0 ? "none" : ""}><b>${count(value)}</b> ${words(value)}</li>`,
  )}</ul>${more}`;
}

function Listed(words: string, lines: readonly string[], all: number): Element | null {
  if (all === 0) return null;
  return html`<p>${words}</p><ul class="plain-list framed">${lines.map(
    (line) => html`<li><${Foreign} text=${line} />
    </li>`,
  )}</ul>
    ${all > lines.length ? html`<p class="detail">${TEXTS.inbox.andMore(all - lines.length)}</p>` : null}`;
}

function Replay({ detail }: { readonly detail: ReplayDetail }): Element {
  const { readings, refusedRows, later, notKept } = detail;
  const facts = [
    [consequence.added, readings.added],
    [consequence.changed, readings.changed],
    [consequence.unchanged, readings.unchanged],
    [consequence.acceptedBefore, readings.acceptedBefore],
    [consequence.dropped, readings.dropped],
    [consequence.refusedRows, refusedRows],
  ] as const;
  return html`<p class="detail">${consequence.by} <bdi>${detail.trigger}</bdi> · <bdi>${detail.mapper}</bdi></p>
    ${Numbers(facts.filter(([, value], at) => at < 2 || value > 0))}
    <${Differences} differences=${detail.differences} />
    ${later.map(
      ({
        file,
        readings: overlapping,
        from,
        to,
      }) => html`<p class="warn">${consequence.later(overlapping)} <bdi>${file}</bdi>:${" "}
        <${When} at=${from} seconds=${false} /> – <${When} at=${to} seconds=${false} /></p>`,
    )}
    ${notKept.length === 0 ? null : html`<p class="detail">${consequence.notKept(notKept.length)}</p>`}`;
}

function Differences({ differences }: { readonly differences: ReplayDetail["differences"] }): Element | null {
  const [most, setMost] = useState(ROWS);
  if (differences.length === 0) return html`<p class="muted">${consequence.noDifference}</p>`;
  const hasVersion = differences.some(({ version }) => version !== null);
  const { columns } = consequence;
  return html`<${Scroll}><table class="values diff"><caption>${consequence.differences}</caption>
    <thead><tr><th scope="col">${columns.target}</th><th scope="col">${columns.date}</th>${
      hasVersion ? html`<th scope="col">${columns.version}</th>` : null
    }<th scope="col" class="number">${columns.before}</th><th scope="col" class="number">${columns.after}</th></tr>
      </thead>
    <tbody>${differences.slice(0, most).map(
      ({ target, date, version, before, after }) => html`<tr>
        <td><${Foreign} text=${target} most=${120} /></td><td><${When} at=${date} /></td>${
          hasVersion ? html`<td><bdi>${version ?? ""}</bdi></td>` : null
        }<td class="number">${
          before === null
            ? html`<span class="muted">${consequence.none}</span>`
            : html`<del>
          ${number(before)}</del>`
        }</td>
        <td class="number">${
          after === null
            ? html`<span class="muted">${consequence.notSent}</span>`
            : html`<ins>
          ${number(after)}</ins>`
        }</td></tr>`,
    )}</tbody></table></${Scroll}>
    ${
      differences.length > most
        ? html`<p><button type="button" class="plain small" onClick=${() => setMost(most + 50)}>${TEXTS.more}</button>
            <span class="detail">${TEXTS.ofRows(most, differences.length)}</span></p>`
        : null
    }`;
}
