/** Keeps the sample as a case of a mapper of one's own. */
import { useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import { Act, Fault, Labelled } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import type { SourceOf, Tried } from "./page.ts";

const { playground: words } = TEXTS;

export function NewCase({ source, tried }: { readonly source: SourceOf; readonly tried: Tried }): Element {
  const [name, setName] = useState("");
  const [fault, setFault] = useState<unknown>(null);
  const [added, setAdded] = useState<string | null>(null);
  const viewer = useRefusal();
  const refusal = viewer ?? (/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name) ? null : words.caseName);
  const { mapper, settings, rows, fileName } = tried;
  const add = () => {
    setFault(null);
    const body = { ...source, mapper, settings, rows, name, ...(fileName === "" ? {} : { fileName }) };
    post<{ case: string }>("/playground/case", body).then((answer) => setAdded(answer.case), setFault);
  };
  const type = (event: Event) => setName((event.target as HTMLInputElement).value);
  return html`<section class="card" aria-labelledby="case"><h2 id="case">${words.case}</h2><${Fault} fault=${fault} />
    ${Labelled({
      id: "case-name",
      label: words.caseLabel,
      hint: words.caseName,
      children: html`<input id="case-name" value=${name} onInput=${type} autocomplete="off"
        aria-describedby="case-name-hint" />`,
    })}
    <${Act} words=${words.addCase} kind="plain" refusal=${refusal} act=${add} />
    <p role="status">${added === null ? "" : words.caseAdded(added)}</p></section>`;
}
