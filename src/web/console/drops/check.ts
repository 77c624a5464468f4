/** The check of a drop, as `headgate check` makes it. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { Finding } from "../contract.ts";
import { Act, Fault, Foreign, Hint, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";

const { drops: words } = TEXTS;
const STATES = { ok: "ok", warning: "warning", failed: "failed" } as const;

export function CheckCard({ drop }: { readonly drop: string }): Element {
  const [findings, setFindings] = useState<readonly Finding[] | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const refusal = useRefusal();
  const check = () => {
    setBusy(true);
    setFault(null);
    post<readonly Finding[]>(`/drops/${encodeURIComponent(drop)}/check`, {})
      .then(setFindings, setFault)
      .finally(() => setBusy(false));
  };
  return html`<section class="card" aria-labelledby="check"><h2 id="check">${words.check}</h2>
    <p class="hint"><${Hint} text=${words.checkHint} /></p><${Fault} fault=${fault} />
    <p><${Act} words=${words.checkNow} kind="plain" refusal=${refusal} isBusy=${isBusy} act=${check} /></p>
    <div role="status" aria-busy=${isBusy}>${isBusy ? html`<p class="muted">${words.checking}</p>` : null}
      ${
        findings === null
          ? null
          : html`<ul class="plain-list">${findings.map(
              ({ level, about, what, hint }) => html`<li class="finding">
                <${State} state=${STATES[level]} words=${words.levels[level]} /> <b><bdi>${about}</bdi></b>${" "}
                <${Foreign} text=${what} />${
                  hint === null ? null : html`<p class="detail"><${Hint} text=${hint} /></p>`
                }</li>`,
            )}</ul>`
      }</div></section>`;
}
