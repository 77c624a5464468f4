/** The runs of a file with their batches, its other versions, and what it packs. */
import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import type { FilePage, FileRow, FileRun } from "../contract.ts";
import { Foreign, Scroll, State } from "../parts.ts";
import { placeWords, type Spot } from "../place.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { bytes, count } from "../words.ts";
import { FileTable } from "./page.ts";

const { file: words } = TEXTS;

interface HistoryProps {
  readonly runs: readonly FileRun[];
  readonly versions: readonly FileRow[];
  readonly entries: readonly FileRow[];
  readonly counts: FilePage["counts"];
}

export function History({ runs, versions, entries, counts }: HistoryProps): Element {
  const note = (shown: number, all: number) =>
    shown < all ? html`<p class="detail">${words.firstOf(shown, all)}</p>` : null;
  const files = (id: "entries" | "versions", title: string, rows: readonly FileRow[]) =>
    rows.length === 0
      ? null
      : html`<section class="card" aria-labelledby=${id}><h2 id=${id}>${title}</h2>
          <${FileTable} rows=${rows} caption=${title} />${note(rows.length, counts[id])}</section>`;
  return html`
    ${
      runs.length === 0
        ? null
        : html`<section class="card" aria-labelledby="runs"><h2 id="runs">${words.runs(counts.runs)}</h2>
            ${[...runs].reverse().map((run, at) => html`<${Run} key=${run.run.id} run=${run} isFirst=${at === 0} />`)}
            ${note(runs.length, counts.runs)}</section>`
    }
    ${files("entries", words.entries, entries)}${files("versions", words.versions, versions)}`;
}

interface RunProps {
  readonly run: FileRun;
  readonly isFirst: boolean;
}

/** A closed run costs the browser its heading alone. */
function Run({ run, isFirst }: RunProps): Element {
  const [isOpen, setOpen] = useState(isFirst);
  const { id, state, binding, createdAt, finishedAt, node } = run.run;
  const toggle = (event: Event) => setOpen((event.currentTarget as HTMLDetailsElement).open);
  return html`<details class="run" open=${isOpen} onToggle=${toggle}><summary><${State} state=${state} />
      <code>${id}</code>${" "}
      <span class="detail"><${When} at=${createdAt} />${
        finishedAt === null ? null : html` – <${When} at=${finishedAt} />`
      } · <bdi>${binding.trigger}</bdi> → <bdi>${binding.mapper.name} ${binding.mapper.version}</bdi>${
        node === null ? null : html` · <bdi>${node}</bdi>`
      }</span></summary>
    ${isOpen ? html`<${RunStory} run=${run} />` : null}
  </details>`;
}

function RunStory({ run: { run, batches, story, rejected, rejectedCount } }: Pick<RunProps, "run">): Element {
  const { binding, replay, reason } = run;
  return html`${
    replay === null
      ? null
      : html`<p>${replay.continues ? words.continues : words.replayOf} <code>${replay.of}</code>${
          replay.continues ? null : html` ${words.by} <bdi>${replay.by}</bdi>`
        }${replay.why === null ? null : html`: <${Foreign} text=${replay.why} />`}</p>`
  }
    ${reason === null ? null : html`<p><${Foreign} text=${reason.message} /> <code>${reason.code}</code></p>`}
    ${Findings(run.findings)}<${Batches} batches=${batches} story=${story} />
    <${Refused} ...${{ rejected, rejectedCount }} />
    <details><summary>${words.settings}</summary><pre class="code">${JSON.stringify(binding.settings, null, 2)}</pre>
      </details>`;
}

/** Findings of the mapping, those that need attention before the others. */
export function Findings(findings: FileRun["run"]["findings"]): Content {
  if (findings.length === 0) return null;
  const sorted = [...findings].sort((a, b) => Number(b.attention ?? false) - Number(a.attention ?? false));
  return html`<p>${words.findings}</p><ul class="plain-list framed">${sorted.map(
    ({ message, count: found, first, last, attention, kind }) =>
      html`<li>${
        attention === true ? html`<strong>${words.attention}</strong> ` : null
      }${count(found)} × <${Foreign} text=${message} most=${300} /> <code class="detail-inline">${kind}</code>${
        first === undefined
          ? null
          : html` <span class="spot"><${Foreign} text=${spotsOf(first, last)} most=${400} /></span>`
      }</li>`,
  )}</ul>`;
}

function spotsOf(first: Spot, last: Spot | undefined): string {
  const [from, to] = [placeWords(first), placeWords(last)];
  return to === "" || to === from ? from : `${from} – ${to}`;
}

/** Rows that a click adds. */
const MORE = 200;

function Batches({ batches, story }: Pick<FileRun, "batches" | "story">): Content {
  const [most, setMost] = useState(0);
  const named = new Set(story.shown);
  const shown = most === 0 ? batches.filter(({ sequence }) => named.has(sequence)) : batches.slice(0, most);
  if (batches.length === 0) return html`<p class="muted">${words.noBatches}</p>`;
  const { columns } = words;
  return html`<${Scroll}><table class="rows batches"><caption>${words.batches}</caption>
    <thead><tr><th scope="col">${columns.batch}</th><th scope="col">${columns.state}</th>
      <th scope="col">${columns.operation}</th><th scope="col" class="number">${columns.points}</th>
      <th scope="col" class="number">${columns.size}</th><th scope="col">${columns.answer}</th>
      <th scope="col">${columns.outcome}</th></tr></thead>
    <tbody>${shown.map(
      (one) => html`<tr><td data-label=${columns.batch}>${one.sequence}</td>
        <td data-label=${columns.state}><${State} state=${one.state} words=${TEXTS.batchStates[one.state]} /></td>
        <td data-label=${columns.operation}><code>${one.operationId}</code></td>
        <td data-label=${columns.points} class="number">${count(one.points)}</td>
        <td data-label=${columns.size} class="number">${bytes(one.length)}</td>
        <td data-label=${columns.answer}>${
          one.answer === null
            ? "–"
            : html`<${Foreign} text=${one.answer}
          most=${200} />`
        }${one.attempts > 1 ? html` <span class="detail">${words.attempts(one.attempts)}</span>` : null}</td>
        <td data-label=${columns.outcome}>${outcomeWords(one.outcome)}</td></tr>`,
    )}</tbody></table></${Scroll}>
    ${
      shown.length === batches.length
        ? null
        : html`<p class="detail">${most === 0 ? words.folded(story) : words.firstOf(shown.length, batches.length)}
            ${" "}<button type="button" class="link" onClick=${() => setMost(most + MORE)}>${words.showMore}</button>
            </p>`
    }`;
}

function outcomeWords(outcome: FileRun["batches"][number]["outcome"]): Content {
  if (outcome === null) return "–";
  const { by, stored, received, discarded, at } = outcome;
  return html`<span>${words.stored(count(stored), count(received))} <span class="detail">${words.known[by]} <${When}
    at=${at} /></span></span>
    ${
      discarded.length === 0
        ? null
        : html`<ul class="plain-list">${discarded
            .slice(0, 10)
            .map(
              (one) =>
                html`<li>${count(one.points)} × <bdi>${one.target}</bdi>: <${Foreign} text=${one.reason} /></li>`,
            )}</ul>`
    }`;
}

const REFUSED_SHOWN = 20;

function Refused({ rejected, rejectedCount }: Pick<FileRun, "rejected" | "rejectedCount">): Content {
  const [isWhole, setWhole] = useState(false);
  if (rejected.length === 0) return null;
  const shown = isWhole ? rejected : rejected.slice(0, REFUSED_SHOWN);
  return html`<details open=${rejected.length <= 10}><summary>${words.refused(rejectedCount)}</summary>
    <ul class="plain-list framed">${shown.map(
      ({
        code,
        message,
        place,
      }) => html`<li><span class="spot"><${Foreign} text=${placeWords(place)} most=${160} /></span>${" "}
        <${Foreign} text=${message} most=${300} /> <code class="detail-inline">${code}</code></li>`,
    )}</ul>${
      shown.length === rejectedCount
        ? null
        : html`<p class="detail">${words.firstOf(shown.length, rejectedCount)}${" "}${
            isWhole || shown.length === rejected.length
              ? null
              : html`<button type="button" class="link" onClick=${() => setWhole(true)}>${words.showMore}</button>`
          }</p>`
    }</details>`;
}
