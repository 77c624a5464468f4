/** The result of a try: readings, refused rows, payload, and the trigger that would do the same. */
import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import type { FilePage, Mapped } from "../contract.ts";
import { JsonText } from "../files/payload.ts";
import { type Reading, ReadingsPart } from "../files/readings.ts";
import { Act, Fault, Foreign, Hint, Scroll, State } from "../parts.ts";
import { placeWords } from "../place.ts";
import { hrefOf } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count, length } from "../words.ts";
import type { Mapping } from "./mapped.ts";

const { playground: words } = TEXTS;
const VIEWS = ["readings", "refused", "payload", "trigger", "log"] as const;
type View = (typeof VIEWS)[number];

interface ResultProps extends Mapping {
  readonly page: FilePage | null;
}

export function Result({ answer, fault, isBusy, page }: ResultProps): Element {
  const [chosen, setChosen] = useState<View | null>(null);
  if (answer === null)
    return html`<${Fault} fault=${fault} />
      <p class="muted" role="status">${isBusy || fault === null ? words.mapping : ""}</p>`;
  const view = chosen ?? (answer.readings.length === 0 && answer.refusedCount > 0 ? "refused" : "readings");
  const counts: Partial<Record<View, number>> = {
    readings: answer.points,
    refused: answer.refusedCount,
    log: answer.log.length,
  };
  const tab = (
    one: View,
  ) => html`<button type="button" class="tab" aria-pressed=${one === view} onClick=${() => setChosen(one)}>
    ${words.views[one]}${counts[one] === undefined ? null : html` <span class="detail">${count(counts[one])}</span>`}
      </button>`;
  return html`<section class="card result" aria-labelledby="result" aria-busy=${isBusy}>
    <h2 id="result" tabindex="-1">${words.result}</h2>
    <div role="status">${Summary(answer)}</div>
    ${answer.problems.map(
      ({ code, message, hint, place }) =>
        html`<div class="problem"><p><${Foreign} text=${message} />${
          code === null ? null : html` <code class="detail-inline">${code}</code>`
        }</p>${place === null ? null : html`<p class="spot"><${Foreign} text=${placeWords(place)} /></p>`}${
          hint === null ? null : html`<p class="detail"><${Hint} text=${hint} /></p>`
        }</div>`,
    )}
    <div class="tab-bar" role="group" aria-label=${words.viewsLabel}>${VIEWS.map(tab)}</div>
    ${View(view, answer, page)}
  </section>`;
}

function Summary({ status, mapper, points, targetCount, period, superseded, durationMs }: Mapped): Element {
  return html`<p><${State} state=${status === "mapped" ? "ok" : "trouble"} words=${words.status[status]} />${" "}
      ${status === "failed" && points === 0 ? null : words.summary(points, targetCount)}${
        period === null
          ? null
          : html`, <${When} at=${period.from} seconds=${false} /> – <${When} at=${period.to} seconds=${false} />`
      } <span class="detail">${mapper.name} ${mapper.version} · ${length(durationMs)}</span></p>
    ${superseded > 0 ? html`<p class="detail">${words.superseded(superseded)}</p>` : null}`;
}

function View(view: View, answer: Mapped, page: FilePage | null): Content {
  switch (view) {
    case "readings": {
      const { targets, readings, isCut } = answer;
      const id = page?.arrival.id;
      const rowLink =
        id === undefined
          ? null
          : ({ row, sheet }: Reading) =>
              hrefOf(`/files/${id}`, { view: "input", row: row === null ? null : String(row), sheet });
      return html`<${ReadingsPart} ...${{ targets, readings, isCut, rowLink }} />`;
    }
    case "refused":
      return Refused(answer);
    case "payload":
      return answer.payload === null
        ? html`<p class="muted">${words.noPayload}</p>`
        : html`<${JsonText} text=${answer.payload} isFormatted=${!answer.isPayloadCut} label=${TEXTS.payload.label} />`;
    case "trigger":
      return html`<${Yaml} text=${answer.trigger} />`;
    case "log":
      return answer.log.length === 0
        ? html`<p class="muted">${words.noLog}</p>`
        : html`<pre class="code scroll" tabindex="0" role="region" aria-label=${words.views.log}>
          <bdi>${answer.log.join("\n")}</bdi></pre>`;
  }
}

function Refused({ refused, refusedByReason, refusedCount }: Mapped): Content {
  if (refusedCount === 0) return html`<p class="muted">${words.noRefused}</p>`;
  return html`<ul class="plain-list">${refusedByReason.map(
    (one) =>
      html`<li><b>${count(one.count)}</b> × ${one.column === undefined ? "" : `${TEXTS.place.column(one.column)}: `}
        <${Foreign} text=${one.message} /></li>`,
  )}</ul>
  <${Scroll}><table class="rows"><caption>${words.refusedRows(refused.length, refusedCount)}</caption>
    <thead><tr><th scope="col">${words.place}</th><th scope="col">${words.reason}</th></tr></thead>
    <tbody>${refused.map(
      ({
        message,
        place,
      }) => html`<tr><td data-label=${words.place}><${Foreign} text=${placeWords(place)} most=${160} /></td>
        <td data-label=${words.reason}><${Foreign} text=${message} most=${300} /></td></tr>`,
    )}</tbody></table></${Scroll}>`;
}

function Yaml({ text }: { readonly text: string }): Element {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => getSelection()?.selectAllChildren(document.getElementById("trigger-yaml") ?? document.body),
    );
  };
  return html`<p>${words.yamlHint}</p><pre class="code" id="trigger-yaml">${text}</pre>
    <p><${Act} words=${words.copy} kind="plain" act=${copy} /> <span role="status" class="detail">
      ${isCopied ? words.copied : ""}</span></p>`;
}
