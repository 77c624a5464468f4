/** The configuration in force, what changed it, and the check of a text. */
import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { Configuration, Validation } from "../contract.ts";
import { Act, Check, Fault, Foreign, Hint, Labelled, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { useQuery } from "../query.ts";
import { go, hrefOf } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count } from "../words.ts";

const { configuration: words } = TEXTS;
const ROWS = 60;
type Setting = Configuration["settings"][number];

export function ConfigurationPage({ place }: PageProps): Element {
  const configuration = useQuery<Configuration>("/configuration");
  return html`<h1>${TEXTS.pages.configuration}</h1>
    <${Loaded} of=${configuration}>${({ file, settings, reloads }: Configuration) => html`
      ${file === null ? null : html`<p class="lead">${words.file} <bdi>${file}</bdi></p>`}
      ${Reloads(reloads)}
      <${Settings} settings=${settings} search=${place.search} />`}</${Loaded}>
    <${ValidationCard} />`;
}

interface SettingsProps {
  readonly settings: readonly Setting[];
  readonly search: URLSearchParams;
}

function Settings({ settings, search }: SettingsProps): Element {
  const [most, setMost] = useState(ROWS);
  const sought = search.get("q") ?? "";
  const withDefaults = search.get("defaults") !== "no";
  const change = (q: string, defaults: boolean) =>
    go(hrefOf("/configuration", { q, defaults: defaults ? null : "no" }), true);
  const text = sought.trim().toLowerCase();
  const shown = settings.filter(
    ({ path, source, value, quantity, written }) =>
      (withDefaults || source === "given") &&
      `${path} ${written ?? ""} ${quantity ?? ""} ${value ?? ""}`.toLowerCase().includes(text),
  );
  const { columns } = words;
  const set = (all: boolean) => change(sought, all);
  const defaults = Check({ id: "defaults", words: words.withDefaults, checked: withDefaults, set });
  return html`<section class="card" aria-labelledby="settings"><h2 id="settings">${words.settings}</h2>
    <div class="toolbar">${Labelled({
      id: "sought",
      label: words.search,
      children: html`<input id="sought" type="search" value=${sought} autocomplete="off" spellcheck=${false}
        onInput=${(event: Event) => change((event.target as HTMLInputElement).value, withDefaults)} />`,
    })}${defaults}</div>
    <${Scroll}><table class="rows settings-table"><caption class="hidden">${words.settings}</caption>
    <thead><tr><th scope="col">${columns.path}</th><th scope="col">${columns.value}</th>
      <th scope="col">${columns.source}</th></tr></thead>
    <tbody>${shown.slice(0, most).map(
      (one) => html`<tr key=${one.path}><td data-label=${columns.path}><code>${one.path}</code></td>
        <td data-label=${columns.value}>${Value(one)}</td>
        <td data-label=${columns.source}>${words.sources[one.source]}</td></tr>`,
    )}</tbody></table></${Scroll}>
    <p role="status" class="detail">${words.found(shown.length)}</p>
    ${
      shown.length > most
        ? html`<p><button type="button" class="plain small" onClick=${() => setMost(most * 5)}>${TEXTS.more}</button>
          </p>`
        : null
    }</section>`;
}

function Value({ value, quantity, written, isHidden }: Setting): Content {
  if (isHidden) return html`<span class="muted">${words.hidden}</span>`;
  const text = quantity ?? (value === null ? "–" : String(value));
  return html`<${Foreign} text=${written ?? text} most=${200} />${
    written === null || written === text ? null : html` <span class="detail">= <bdi>${text}</bdi></span>`
  }`;
}

function Reloads(reloads: Configuration["reloads"]): Element {
  const { columns } = words;
  if (reloads.length === 0) return html`<p class="muted">${words.noReloads}</p>`;
  return html`<section class="card" aria-labelledby="reloads"><h2 id="reloads">${words.reloads}</h2>
    <${Scroll}><table class="rows"><caption class="hidden">${words.reloads}</caption>
    <thead><tr><th scope="col">${columns.at}</th><th scope="col">${columns.result}</th>
      <th scope="col">${columns.changed}</th></tr></thead>
    <tbody>${reloads.map(
      ({
        at,
        result,
        changed,
        changedCount,
        reason,
      }) => html`<tr><td data-label=${columns.at}><${When} at=${at} age /></td>
        <td data-label=${columns.result}><${State} state=${result === "refused" ? "refused" : "ok"}
          words=${words.results[result]} />${
            reason === null ? null : html` <span class="detail"><${Foreign} text=${reason} most=${400} /></span>`
          }</td>
        <td data-label=${columns.changed}>${count(changedCount)}${
          changed.length === 0 ? null : html`: <${Foreign} text=${changed.join(", ")} most=${200} />`
        }</td></tr>`,
    )}</tbody></table></${Scroll}></section>`;
}

/** The check of a pasted configuration, which is neither kept nor applied. */
function ValidationCard(): Element {
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
