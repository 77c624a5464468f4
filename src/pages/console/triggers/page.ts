/** The triggers in force, in their order. */

import { useEffect, useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { ActionBar } from "../actions/bar.ts";
import type { NameTest, TriggerFacts } from "../contract.ts";
import { useLiveReload } from "../live.ts";
import { Fault, Foreign, Labelled, Loaded, Scroll, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { visible } from "../words.ts";

const TYPED_MS = 300;
const { triggers: words } = TEXTS;

export function TriggersPage(): Element {
  const triggers = useQuery<readonly TriggerFacts[]>("/triggers");
  useLiveReload(["state"], triggers.reload, 5_000);
  return html`<h1>${TEXTS.pages.triggers}</h1><p class="lead">${words.lead}</p><${NameTestCard} name="" />
    <${Loaded} of=${triggers}>${(known: readonly TriggerFacts[]) =>
      html`<${TriggerTable} triggers=${known} onChanged=${triggers.reload} />`}</${Loaded}>`;
}

interface TableProps {
  readonly triggers: readonly TriggerFacts[];
  onChanged(): void;
}

function TriggerTable({ triggers, onChanged }: TableProps): Element {
  const { columns } = words;
  if (triggers.length === 0) return html`<p class="muted">${words.none}</p>`;
  return html`<${Scroll}><table class="rows"><caption class="hidden">${TEXTS.pages.triggers}</caption>
    <thead><tr><th scope="col">${columns.trigger}</th><th scope="col">${columns.state}</th>
      <th scope="col">${columns.names}</th><th scope="col">${columns.mapper}</th>
      <th scope="col">${columns.lastFile}</th><th scope="col"><span class="hidden">${columns.actions}</span></th></tr>
        </thead>
    <tbody>${triggers.map((trigger) => {
      const { name, title, mapper, service, lastFileAt, paused } = trigger;
      const item = {
        ...{ run: null, path: null, drop: null, trigger: name, kind: "trigger" },
        actions: [paused === null ? ("pause" as const) : ("resume" as const)],
      };
      return html`<tr key=${name}><td data-label=${columns.trigger}>
          <${Link} to=${hrefOf("/files", { trigger: name })}><bdi>${name}</bdi></${Link}>${
            title === null ? null : html` <span class="detail"><bdi>${title}</bdi></span>`
          }</td>
        <td data-label=${columns.state}>${StateOf(trigger)}</td>
        <td data-label=${columns.names}>${Names(trigger)}</td>
        <td data-label=${columns.mapper}><bdi>${mapper ?? "–"}</bdi>${
          service === null ? null : html` → <bdi>${service}</bdi>`
        }</td>
        <td data-label=${columns.lastFile}>${lastFileAt === null ? "–" : html`<${When} at=${lastFileAt} age />`}</td>
        <td><${ActionBar} items=${[item]} all=${1} onChanged=${onChanged} /></td></tr>`;
    })}</tbody></table></${Scroll}>`;
}

function StateOf({ state, paused, problem }: TriggerFacts): Content {
  if (paused !== null)
    return html`<${State} state="paused" /> <span class="detail"><${Foreign} text=${paused} most=${160} /></span>`;
  if (problem !== null)
    return html`<${State} state="trouble" /> <span class="detail"><${Foreign} text=${problem} most=${240} /></span>`;
  return state === null || state === "Active"
    ? html`<${State} state="ok" />`
    : html`<${State} state="skipped" words=${state} />`;
}

function Names({ patterns, combination, drops, expect }: TriggerFacts): Content {
  const joint = combination === "And" ? words.and : words.or;
  const names = patterns.map(({ filterType, value }) => `${words.filters[filterType] ?? filterType} “${value}”`);
  return html`<bdi>${names.length === 0 ? words.anyName : names.join(` ${joint} `)}</bdi>
    <span class="detail">${drops === null ? words.allDrops : words.ofDrops(drops.join(", "))}</span>${
      expect === null
        ? null
        : html`<span class="detail">${words.expected(expect.every, expect.by, expect.timeZone)}</span>`
    }`;
}

/** Which trigger would claim a name. */
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
