/** The check of a drop, as `headgate check` makes it. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { nowMs } from "../../kit/zone.ts";
import { post } from "../api.ts";
import type { Finding } from "../contract.ts";
import { Act, Fault, Foreign, Hint, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";

const { drops: words } = TEXTS;
interface Checked {
  readonly atMs: number;
  readonly findings: readonly Finding[];
  /** Whether the check before found the same. */
  readonly asBefore: boolean;
}

const STATES = { ok: "ok", warning: "warning", failed: "failed" } as const;

export function CheckCard({ drop }: { readonly drop: string }): Element {
  const [checked, setChecked] = useState<Checked | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const refusal = useRefusal();
  const check = () => {
    setBusy(true);
    setFault(null);
    post<readonly Finding[]>(`/drops/${encodeURIComponent(drop)}/check`, {})
      .then((findings) => setChecked((before) => checkedNow(findings, before)), setFault)
      .finally(() => setBusy(false));
  };
  return html`<section class="card" aria-labelledby="check"><h2 id="check">${words.check}</h2>
    <p class="hint"><${Hint} text=${words.checkHint} /></p><${Fault} fault=${fault} />
    <p><${Act} words=${words.checkNow} kind="plain" refusal=${refusal} isBusy=${isBusy} act=${check} /></p>
    <div role="status" aria-busy=${isBusy}>${isBusy ? html`<p class="muted">${words.checking}</p>` : null}
      ${
        checked === null || isBusy
          ? null
          : html`${Summary(checked)}<ul class="plain-list">${checked.findings.map(
              ({ level, about, what, hint }) => html`<li class="finding">
                <${State} state=${STATES[level]} words=${words.levels[level]} /> <b><bdi>${about}</bdi></b>${" "}
                <${Foreign} text=${what} />${
                  hint === null ? null : html`<p class="detail"><${Hint} text=${hint} /></p>`
                }</li>`,
            )}</ul>`
      }</div></section>`;
}

function checkedNow(findings: readonly Finding[], before: Checked | null): Checked {
  return { atMs: nowMs(), findings, asBefore: before !== null && gist(findings) === gist(before.findings) };
}

/** Without what differs each time where all is in order, such as how long a listing took. */
function gist(findings: readonly Finding[]): string {
  return JSON.stringify(findings.map(({ about, level, what }) => [about, level, level === "ok" ? null : what]));
}

function Summary({ atMs, findings, asBefore }: Checked): Element {
  const parts = [...new Set(findings.map(({ about }) => about))].join(", ");
  const open = findings.filter(({ level }) => level !== "ok").length;
  return html`<p><${When} at=${atMs} />: <${Foreign} text=${words.checked(parts, open)} />${
    asBefore ? ` ${words.asBefore}` : ""
  }</p>`;
}
