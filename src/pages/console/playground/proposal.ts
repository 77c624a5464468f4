/** Settings that fit the table of a sample, as `headgate mapper new` proposes them. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { Proposed } from "../contract.ts";
import { Act, Fault, Foreign, Labelled } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import type { SourceOf, Tried } from "./page.ts";

const { playground: words } = TEXTS;

interface ProposalProps {
  readonly source: SourceOf;
  onUse(part: Partial<Tried>): void;
}

export function Proposal({ source, onUse }: ProposalProps): Element {
  const [proposed, setProposed] = useState<Proposed | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [timeZone, setZone] = useState("");
  const refusal = useRefusal();
  const ask = () => {
    setBusy(true);
    setFault(null);
    post<Proposed>("/playground/propose", { ...source, ...(timeZone === "" ? {} : { timeZone }) })
      .then(setProposed, setFault)
      .finally(() => setBusy(false));
  };
  const zone = (event: Event) => setZone((event.target as HTMLInputElement).value);
  return html`<details class="nested"><summary>${words.propose}</summary>
    <p class="hint">${words.proposeHint}</p><${Fault} fault=${fault} />
    ${Labelled({
      id: "propose-zone",
      label: words.proposeZone,
      hint: proposed?.needsZone === true ? words.needsZone : undefined,
      children: html`<input id="propose-zone" list="propose-zones" value=${timeZone} onInput=${zone}
        autocomplete="off" />
        <datalist id="propose-zones">${["UTC", ...Intl.supportedValuesOf("timeZone")].map(
          (one) => html`<option
          value=${one} />`,
        )}</datalist>`,
    })}
    <${Act} words=${words.proposeNow} kind="plain" refusal=${refusal} isBusy=${isBusy} act=${ask} />
    <div role="status">${proposed === null ? null : Shown(proposed, onUse)}</div></details>`;
}

function Shown({ needsZone, declarative, source, assumed }: Proposed, onUse: ProposalProps["onUse"]): Element {
  if (needsZone) return html`<p class="warn">${words.needsZone}</p>`;
  return html`
    ${
      declarative === null
        ? html`<p>${words.noDeclarative}</p>`
        : html`<p>${words.declarative(declarative.mapper)} <${Act} words=${words.use}
            act=${() => onUse({ mapper: declarative.mapper, settings: declarative.settings })} /></p>`
    }
    ${
      assumed.length === 0
        ? null
        : html`<p>${words.assumed}</p><ul>${assumed.map(
            (one) => html`<li>
      <${Foreign} text=${one} /></li>`,
          )}</ul>`
    }
    ${
      source === null
        ? null
        : html`<details><summary>${words.newMapper}</summary><pre class="code">${source}</pre>
      </details>`
    }`;
}
