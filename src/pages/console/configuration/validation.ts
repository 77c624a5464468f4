/** The check of a pasted configuration, which is neither kept nor applied. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { Validation } from "../contract.ts";
import { Act, Fault, Foreign, Hint, Labelled, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";

const { configuration: words } = TEXTS;

export function ValidationCard(): Element {
  const [text, setText] = useState("");
  const [result, setResult] = useState<Validation | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const viewer = useRefusal();
  const refusal = viewer ?? (text.trim() === "" ? words.pasteFirst : null);
  const check = () => {
    setBusy(true);
    setFault(null);
    post<Validation>("/configuration/validate", { text })
      .then(setResult, setFault)
      .finally(() => setBusy(false));
  };
  const type = (event: Event) => {
    setText((event.target as HTMLTextAreaElement).value);
    setResult(null);
  };
  return html`<section class="card" aria-labelledby="validation"><h2 id="validation">${words.validation}</h2>
    ${Labelled({
      id: "configuration-text",
      label: words.text,
      hint: words.textHint,
      children: html`<textarea id="configuration-text" class="mono" rows="10" value=${text} onInput=${type}
        spellcheck=${false} aria-describedby="configuration-text-hint"></textarea>`,
    })}
    <p><${Act} words=${words.validate} kind="plain" refusal=${refusal} isBusy=${isBusy} act=${check} /></p>
    <${Fault} fault=${fault} /><div role="status">${result === null ? null : Result(result)}</div></section>`;
}

function Result({ isValid, findings }: Validation): Element {
  return html`<p><${State} state=${isValid ? "ok" : "failed"} words=${isValid ? words.valid : words.invalid} /></p>
    <ul class="plain-list">${findings.map(
      ({ level, line, what, hint }) => html`<li class="finding"><${State} state=${level}
          words=${TEXTS.drops.levels[level]} /> ${line === null ? null : html`<b>${words.line(line)}</b>`}${" "}
        <${Foreign} text=${what} />${hint === null ? null : html`<p class="detail"><${Hint} text=${hint} /></p>`}</li>`,
    )}</ul>`;
}
