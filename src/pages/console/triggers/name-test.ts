/** Which trigger would claim a name. */
import { useEffect, useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import type { NameTest } from "../contract.ts";
import { Fault, Foreign, Labelled, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { TEXTS } from "../texts.ts";
import { visible } from "../words.ts";

const { triggers: words } = TEXTS;
const TYPED_MS = 300;

export function NameTestCard({ name }: { readonly name: string }): Element {
  const [typed, setTyped] = useState(name);
  const [asked, setAsked] = useState(name);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(typed.trim()), TYPED_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const tested = useQuery<NameTest>(asked === "" ? null : "/triggers/test", { name: asked });
  const type = (event: Event) => setTyped((event.target as HTMLInputElement).value);
  const shown = asked === "" ? null : tested.answer;
  return html`<section class="card" aria-labelledby="claims"><h2 id="claims">${words.claims}</h2>
    ${Labelled({
      id: "claim-name",
      label: words.claimName,
      // A field shows marks that turn the direction by turning it.
      hint: visible(typed) === typed ? undefined : visible(typed),
      children: html`<input id="claim-name" value=${typed} onInput=${type} autocomplete="off" spellcheck=${false}
        maxlength="1000" />`,
    })}
    <${Fault} fault=${asked === "" ? null : tested.fault} />
    <div role="status">${shown === null ? null : Answer(shown)}</div></section>`;
}

function Answer({ forms, container, claimedBy, mapper, others, verdicts }: NameTest): Element {
  return html`<p>${
    claimedBy === null
      ? html`<${State} state="unmatched" words=${words.unclaimed} />`
      : html`<${State} state="ok" words=${claimedBy} /> → <bdi>${mapper ?? "?"}</bdi>`
  }</p>
  ${forms === null ? null : html`<p><${Foreign} text=${forms} /></p>`}
  ${container === null ? null : html`<p><${Foreign} text=${container} /></p>`}
  ${others.length === 0 ? null : html`<p class="warn">${words.others(others.join(", "))}</p>`}
  <details><summary>${words.verdicts(verdicts.length)}</summary><ul class="plain-list">${verdicts.map(
    ({ trigger, matches, words: why }) =>
      html`<li><b><bdi>${trigger}</bdi></b>: ${matches ? `${words.matches} ` : ""}<${Foreign} text=${why} /></li>`,
  )}</ul></details>`;
}
