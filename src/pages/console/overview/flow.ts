/** The flow from drops to services, with what waits and what moves. */
import { type Content, type Element, html } from "../../kit/html.ts";
import type { Overview } from "../contract.ts";
import { Foreign, State } from "../parts.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { count, number } from "../words.ts";

const { overview: words } = TEXTS;
/** Drops that are named one by one. */
const DROPS_MOST = 12;

export function Flow({ flow }: Pick<Overview, "flow">): Element {
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
