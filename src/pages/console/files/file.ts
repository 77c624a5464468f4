/** One file: what became of it, and views of its content. */

import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import { ActionBar } from "../actions/bar.ts";
import type { FilePage as File, FileRow, FileRun } from "../contract.ts";
import { Reason } from "../inbox/items.ts";
import { useLive } from "../live.ts";
import { Foreign, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { placeWords, type Spot } from "../place.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { useZone, When } from "../time.ts";
import { bytes, count, length, withMoments } from "../words.ts";
import { InputView } from "./input.ts";
import { FileTable } from "./page.ts";
import { PayloadView, type ViewProps } from "./payload.ts";
import { ReadingsView } from "./readings.ts";

/** Rows that a click adds. */
const MORE = 200;

const REFUSED_SHOWN = 20;

/** Of more events the first and the last ones are shown. */
const SHOWN = 200;

const { file: words } = TEXTS;
const VIEWS = ["story", "input", "readings", "payload"] as const;
type View = (typeof VIEWS)[number];

export function FilePage({ place }: PageProps): Element {
  const id = Number(place.path.split("/")[2]);
  const page = useQuery<File>(`/files/${id}`);
  useLive("files", (event) => {
    const path = page.answer?.arrival.path;
    if (event === null || event.isCut || event.files.some((one) => one.id === id || one.path === path)) page.reload();
  });
  const view = VIEWS.find((one) => one === place.search.get("view")) ?? "story";
  // A file that is not known has a heading, too.
  const heading = page.answer === null ? html`<h1>${TEXTS.pages.file}</h1>` : null;
  return html`${heading}<${Loaded} of=${page}>${(file: File) => html`${Head(file)}${Views(file, view)}
    ${
      view === "story"
        ? html`<${Story} file=${file} search=${place.search} onChanged=${page.reload} />`
        : html`<${view === "input" ? InputView : view === "readings" ? ReadingsView : PayloadView}
            key=${view} file=${file} search=${place.search} />`
    }`}</${Loaded}>`;
}

function Head({ arrival }: File): Element {
  const { name, drop, path, size, state, container } = arrival;
  return html`<p class="crumbs"><${Link} to=${hrefOf("/files", { drop })}><bdi>${drop}</bdi></${Link}>${
    container === null ? null : html` › <${Link} to=${hrefOf(`/files/${container}`)}>${words.container}</${Link}>`
  } › <span class="path"><${Foreign} text=${path} most=${240} /></span></p>
  <h1 class="file-name"><${Foreign} text=${name} most=${160} /> <${State} state=${state ?? "container"} /></h1>
  <p class="detail">${bytes(size)} · ${words.seen} <${When} at=${arrival.seenAt} age /></p>`;
}

function Views({ arrival, input, runs }: File, view: View): Element {
  const has = { story: true, input: input.kept, readings: runs.length > 0, payload: runs.some(hasBatches) };
  const link = (one: View) => {
    const to = hrefOf(`/files/${arrival.id}`, { view: one === "story" ? null : one });
    return html`<li><${Link} to=${to} current=${one === view}>${words.views[one]}</${Link}></li>`;
  };
  return html`<nav class="tabs" aria-label=${words.viewsLabel}><ul>
    ${VIEWS.filter((one) => has[one] || one === view).map(link)}</ul></nav>`;
}

function hasBatches({ batches }: FileRun): boolean {
  return batches.length > 0;
}

function Story({ file, search, onChanged }: ViewProps & { onChanged(): void }): Element {
  const { arrival, runs, versions, entries, counts, events } = file;
  const last = runs.at(-1);
  const item = {
    ...{ run: last?.run.id ?? null, drop: arrival.drop, path: arrival.path },
    ...{ trigger: last?.run.binding.trigger ?? null, actions: file.actions },
  };
  return html`
    <section class="card" aria-labelledby="outcome"><h2 id="outcome">${words.outcome}</h2>
      ${Outcome(file, last)}
      ${file.actions.length === 0 ? null : html`<${ActionBar} items=${[item]} all=${1} onChanged=${onChanged} />`}
      ${
        last === undefined || !file.input.kept
          ? null
          : html`<p><${Link} to=${hrefOf("/playground", { file: String(arrival.id) })}>${TEXTS.inbox.tryIt}</${Link}>
            </p>`
      }
    </section>
    ${last === undefined ? null : html`<${Excerpt} file=${file} search=${search} last=${last} />`}
    <section class="card" aria-labelledby="timeline"><h2 id="timeline">${words.timeline}</h2>
      <${Timeline} events=${events} /></section>
    <${History} ...${{ runs, versions, entries, counts }} />`;
}

function Outcome(file: File, last: FileRun | undefined): Content {
  const { arrival, currentPlace, forms } = file;
  const reason = last?.run.reason ?? null;
  const facts: (readonly [string, Content])[] = [
    [words.now, html`<${Foreign} text=${currentPlace} />`],
    ...(forms === null ? [] : [[words.forms, html`<${Foreign} text=${forms} />`] as const]),
    ...(last === undefined ? [] : runFacts(last)),
    ...(arrival.sha256 === null ? [] : [[words.digest, html`<code class="digest">${arrival.sha256}</code>`] as const]),
  ];
  return html`${
    reason === null
      ? arrival.arrivalReason === "" || last !== undefined
        ? null
        : arrival.state === "unmatched"
          ? Verdicts(arrival.arrivalReason)
          : html`<p><${Foreign} text=${arrival.arrivalReason} /></p>`
      : Reason({
          item: {
            ...{ code: reason.code, reason: reason.message },
            ...{ hint: reason.hint ?? null, place: reason.place ?? null },
          },
        })
  }
  ${Targets(reason?.targets ?? [])}
  ${last === undefined ? null : Findings(last.run.findings)}
  ${Facts({ facts })}`;
}

/** The words of each trigger about the name. */
function Verdicts(reason: string): Element {
  return html`<p>${words.unmatched}</p><ul class="plain-list framed">${reason
    .split(" · ")
    .map((one) => html`<li><${Foreign} text=${one} /></li>`)}</ul>`;
}

function Targets(targets: readonly { readonly words: string }[]): Element | null {
  if (targets.length === 0) return null;
  return html`<ul class="plain-list framed">${targets.map(
    (one) => html`<li><${Foreign} text=${one.words} />
    </li>`,
  )}</ul>`;
}

function runFacts({ run }: FileRun): (readonly [string, Content])[] {
  const { trigger, mapper, service } = run.binding;
  const { mapped, accepted, stored, rejected, discarded } = run.points;
  const numbers = [
    words.points.mapped(count(mapped)),
    words.points.accepted(count(accepted)),
    ...(stored > 0 ? [words.points.stored(count(stored))] : []),
    ...(rejected > 0 ? [words.points.rejected(count(rejected))] : []),
    ...(discarded > 0 ? [words.points.discarded(count(discarded))] : []),
  ];
  return [
    [words.readings, numbers.join(" · ")],
    [words.through, html`<bdi>${trigger}</bdi> → <bdi>${mapper.name} ${mapper.version}</bdi> → <bdi>${service}</bdi>`],
    [words.run, html`<code>${run.id}</code> <${State} state=${run.state} />`],
  ];
}

/** The rows around the place that the reason names. */
function Excerpt({ file, last }: ViewProps & { readonly last: FileRun }): Element | null {
  const row = last.run.reason?.place?.row ?? last.rejected[0]?.place.row;
  if (row === undefined || !file.input.kept || file.input.format === "binary") return null;
  const sheet = last.run.reason?.place?.sheet ?? last.rejected[0]?.place.sheet ?? null;
  const to = hrefOf(`/files/${file.arrival.id}`, { view: "input", row: String(row), sheet });
  const search = new URLSearchParams({ row: String(row), ...(sheet === null ? {} : { sheet }) });
  return html`<section class="card" aria-labelledby="excerpt"><h2 id="excerpt">${words.excerpt}</h2>
    <${InputView} file=${file} search=${search} isExcerpt />
    <p><${Link} to=${to}>${words.openInput}</${Link}></p></section>`;
}

/** The events of a file, from its first sight on, and how long each step took. */
function Timeline({ events }: Pick<File, "events">): Element {
  const zone = useZone();
  const [isWhole, setWhole] = useState(false);
  const hidden = isWhole ? 0 : Math.max(0, events.length - SHOWN);
  const shown = hidden === 0 ? events : [...events.slice(0, SHOWN / 2), ...events.slice(-SHOWN / 2)];
  const first = events[0];
  const last = events.at(-1);
  const whole = first === undefined || last === undefined ? 0 : Date.parse(last.at) - Date.parse(first.at);
  return html`<ol class="timeline">${shown.map(
    ({ at, what, detail, operationId, sinceMs, folded }) => html`<li>
      <span class="at"><${When} at=${at} /></span>
      <span class="since">${sinceMs === null ? "" : `+${length(sinceMs)}`}</span>
      <span class="what">${eventWords(what)}${
        detail === ""
          ? null
          : html` <span class="detail">
        <${Foreign} text=${withMoments(detail, zone)} most=${300} /></span>`
      }${operationId === null ? null : html` <code class="detail-inline">${operationId}</code>`}${
        folded === null
          ? null
          : html` <span class="detail">${words.foldedEvents(folded.count)} <${When} at=${folded.lastAt} />${" "}
              <code>${folded.lastOperationId}</code></span>`
      }</span></li>`,
  )}</ol>
  ${
    hidden === 0
      ? null
      : html`<p class="detail">${words.hiddenEvents(hidden)}${" "}
          <button type="button" class="link" onClick=${() => setWhole(true)}>${words.showMore}</button></p>`
  }
  ${events.length < 2 ? null : html`<p class="detail">${words.whole(length(whole))}</p>`}`;
}

function eventWords(what: string): Element {
  const [subject = "", verb = ""] = what.split(".");
  const known = TEXTS.events[what];
  if (known === undefined && subject === "run") return html`<${State} state=${verb} />`;
  return html`<span>${known ?? `${subject} ${verb}`}</span>`;
}

// The runs of a file with their batches, its other versions, and what it packs.

interface HistoryProps {
  readonly runs: readonly FileRun[];
  readonly versions: readonly FileRow[];
  readonly entries: readonly FileRow[];
  readonly counts: File["counts"];
}

function History({ runs, versions, entries, counts }: HistoryProps): Element {
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
function Findings(findings: FileRun["run"]["findings"]): Content {
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
