/** One file: what became of it, and views of its content. */
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import { ActionBar } from "../actions/bar.ts";
import type { PageProps } from "../app.ts";
import type { FilePage as File, FileRun } from "../contract.ts";
import { Reason } from "../inbox/items.ts";
import { useLive } from "../live.ts";
import { Foreign, Loaded, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { bytes, count } from "../words.ts";
import { Findings, History } from "./history.ts";
import { InputView } from "./input.ts";
import { PayloadView } from "./payload.ts";
import { ReadingsView } from "./readings.ts";
import { Timeline } from "./timeline.ts";

const { file: words } = TEXTS;
const VIEWS = ["story", "input", "readings", "payload"] as const;
type View = (typeof VIEWS)[number];

export interface ViewProps {
  readonly file: File;
  readonly search: URLSearchParams;
}

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
