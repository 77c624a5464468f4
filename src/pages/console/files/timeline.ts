/** The events of a file, from its first sight on, and how long each step took. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import type { FilePage } from "../contract.ts";
import { Foreign, State } from "../parts.ts";
import { TEXTS } from "../texts.ts";
import { useZone, When } from "../time.ts";
import { length, withMoments } from "../words.ts";

const { file: words } = TEXTS;

/** Of more events the first and the last ones are shown. */
const SHOWN = 200;

export function Timeline({ events }: Pick<FilePage, "events">): Element {
  const zone = useZone();
  const [isWhole, setWhole] = useState(false);
  const hidden = isWhole ? 0 : Math.max(0, events.length - SHOWN);
  const shown = hidden === 0 ? events : [...events.slice(0, SHOWN / 2), ...events.slice(-SHOWN / 2)];
  const first = events[0];
  const last = events.at(-1);
  const whole = first === undefined || last === undefined ? 0 : Date.parse(last.at) - Date.parse(first.at);
  return html`<ol class="timeline">${shown.map(
    ({ at, what, detail, operationId, sinceMs, folded }) => html`<li>
      <span class="at"><${When} at=${at} /></span>
      <span class="since">${sinceMs === null ? "" : `+${length(sinceMs)}`}</span>
      <span class="what">${eventWords(what)}${
        detail === ""
          ? null
          : html` <span class="detail">
        <${Foreign} text=${withMoments(detail, zone)} most=${300} /></span>`
      }${operationId === null ? null : html` <code class="detail-inline">${operationId}</code>`}${
        folded === null
          ? null
          : html` <span class="detail">${words.foldedEvents(folded.count)} <${When} at=${folded.lastAt} />${" "}
              <code>${folded.lastOperationId}</code></span>`
      }</span></li>`,
  )}</ol>
  ${
    hidden === 0
      ? null
      : html`<p class="detail">${words.hiddenEvents(hidden)}${" "}
          <button type="button" class="link" onClick=${() => setWhole(true)}>${words.showMore}</button></p>`
  }
  ${events.length < 2 ? null : html`<p class="detail">${words.whole(length(whole))}</p>`}`;
}

function eventWords(what: string): Element {
  const [subject = "", verb = ""] = what.split(".");
  const known = TEXTS.events[what];
  if (known === undefined && subject === "run") return html`<${State} state=${verb} />`;
  return html`<span>${known ?? `${subject} ${verb}`}</span>`;
}
