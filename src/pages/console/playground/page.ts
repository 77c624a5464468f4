/** The playground: what a mapper makes of a file, while its settings are changed. Nothing is sent to a service. */
import { useEffect, useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { ActionDialog } from "../actions/dialog.ts";
import { Problem, post } from "../api.ts";
import type { FilePage, Mapped, MapperFacts, MapperRuns, Proposed } from "../contract.ts";
import { FileField, useUpload } from "../file-field.ts";
import { JsonText } from "../files/payload.ts";
import { type Reading, ReadingsPart } from "../files/readings.ts";
import { Act, Choice, Fault, Foreign, Hint, Labelled, Loaded, type PageProps, Scroll, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { placeWords } from "../place.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { NameTestCard } from "../triggers/page.ts";
import { bytes, count, length } from "../words.ts";
import type { Schema, Settings } from "./schema.ts";
import { SettingsForm } from "./settings.ts";

const VIEWS = ["readings", "refused", "payload", "trigger", "log"] as const;
const TYPED_MS = 400;
/** A newer request of the same person took its place. */
const REPLACED = "HG-OPS-010";

const { playground: words } = TEXTS;

export interface Tried {
  readonly mapper: string;
  readonly settings: Settings;
  readonly rows: "strict" | "lenient";
  /** The name that the mapper gets; "" for that of the sample. */
  readonly fileName: string;
}

export type SourceOf = { readonly file: number } | { readonly sample: string };

const FIRST: Tried = { mapper: "", settings: {}, rows: "strict", fileName: "" };

export function PlaygroundPage({ place }: PageProps): Element {
  const file = Number(place.search.get("file")) || null;
  const mappers = useQuery<readonly MapperFacts[]>("/mappers");
  const page = useQuery<FilePage>(file === null ? null : `/files/${file}`);
  const [sample, setSample] = useState<Sample | null>(null);
  return html`<h1>${TEXTS.pages.playground}</h1><p class="lead">${words.lead}</p>
    <${Fault} fault=${page.fault} />
    <${Loaded} of=${mappers}>${(known: readonly MapperFacts[]) => {
      if (file !== null && page.answer === null && page.fault === null)
        return html`<p class="muted">${TEXTS.loading}</p>`;
      const key = sample?.id ?? `file-${page.answer?.arrival.id ?? "none"}`;
      return html`<${Bench} key=${key} ...${{ known, sample, setSample }}
        page=${file === null ? null : page.answer} />`;
    }}</${Loaded}>`;
}

interface BenchProps {
  readonly known: readonly MapperFacts[];
  readonly page: FilePage | null;
  readonly sample: Sample | null;
  setSample(sample: Sample): void;
}

/** A file begins with the mapper and the settings of its latest run. */
function firstOf(page: FilePage | null, known: readonly MapperFacts[]): Tried {
  const run = page?.runs.at(-1)?.run;
  if (run === undefined) return FIRST;
  const { mapper, settings, rows } = run.binding;
  return known.some(({ name }) => name === mapper.name) ? { ...FIRST, mapper: mapper.name, settings, rows } : FIRST;
}

function Bench({ known, page, sample, setSample }: BenchProps): Element {
  const [tried, setTried] = useState(() => (sample === null ? firstOf(page, known) : FIRST));
  const refusal = useRefusal();
  const source: SourceOf | null =
    sample !== null ? { sample: sample.id } : page !== null ? { file: page.arrival.id } : null;
  const mapped = useMapped(refusal === null ? source : null, tried);
  const mapper = known.find(({ name }) => name === tried.mapper);
  const change = (part: Partial<Tried>) => setTried((before) => ({ ...before, ...part }));
  return html`<div class="bench"><div class="bench-left">
      <section class="card" aria-labelledby="sample"><h2 id="sample">${words.source}</h2>
        ${
          page === null || sample !== null
            ? null
            : html`<p>${words.fileOf} <${Link} to=${hrefOf(`/files/${page.arrival.id}`)}>
              <bdi>${page.arrival.path}</bdi></${Link}></p>`
        }
        <${SampleChoice} sample=${sample} onSample=${setSample} />
      </section>
      <section class="card" aria-labelledby="mapper"><h2 id="mapper">${words.mapper}</h2>
        ${MapperChoice(known, tried, change)}
        ${source === null ? null : html`<${Proposal} source=${source} onUse=${change} />`}
        ${
          mapper === undefined
            ? null
            : html`<${SettingsForm} key=${mapper.name} schema=${mapper.settings as Schema} settings=${tried.settings}
            onChange=${(settings: Settings) => change({ settings })} />`
        }
      </section>
      <${NameTestCard} name=${sample?.name ?? page?.arrival.path ?? ""} />
      ${JumpToResult(mapped)}
    </div>
    <div class="bench-right">
      ${
        source === null
          ? html`<p class="muted">${words.chooseSource}</p>`
          : tried.mapper === ""
            ? html`<p class="muted">${words.chooseMapper}</p>`
            : refusal === null
              ? html`<${Result} ...${mapped} page=${sample === null ? page : null} />`
              : null
      }
      ${refusal === null ? null : html`<p class="warn">${refusal}</p>`}
      ${
        sample === null && page !== null
          ? html`<${ReplayWith} page=${page} tried=${tried}
        isMapped=${mapped.answer?.status === "mapped"} />`
          : null
      }
      ${mapper === undefined ? null : html`<${MapperVersions} mapper=${mapper.name} />`}
      ${
        mapper === undefined || mapper.isBundled || source === null
          ? null
          : html`<${NewCase}
        ...${{ source, tried }} />`
      }
    </div></div>`;
}

/** Where the result stands below the settings: what a change did, and the way there. */
function JumpToResult({ answer }: Mapping): Element | null {
  if (answer === null) return null;
  const { status, points, targetCount } = answer;
  return html`<p class="jump"><a href="#result">${words.toResult}</a>
    <span><${State} state=${status === "mapped" ? "ok" : "trouble"} words=${words.status[status]} />${
      status === "mapped" ? html` <span class="detail">${words.summary(points, targetCount)}</span>` : null
    }</span></p>`;
}

function MapperChoice(known: readonly MapperFacts[], tried: Tried, change: (part: Partial<Tried>) => void): Element {
  const mapper = known.find(({ name }) => name === tried.mapper);
  const options = known.map(({ name, version }) => ({ value: name, words: `${name} ${version}` }));
  return html`${Choice({
    id: "mapper-name",
    label: words.mapper,
    value: tried.mapper,
    options: [{ value: "", words: words.none }, ...options],
    set: (name) => change({ mapper: name, settings: {} }),
  })}
  ${mapper === undefined ? null : html`<p class="hint">${mapper.summary}</p>`}
  ${Choice({
    id: "rows",
    label: words.rows,
    value: tried.rows,
    hint: words.rowsHint,
    options: [
      { value: "strict", words: words.strict },
      { value: "lenient", words: words.lenient },
    ],
    set: (rows) => change({ rows: rows === "lenient" ? "lenient" : "strict" }),
  })}
  ${Labelled({
    id: "file-name",
    label: words.fileName,
    hint: words.fileNameHint,
    children: html`<input id="file-name" value=${tried.fileName} autocomplete="off" spellcheck=${false}
      aria-describedby="file-name-hint"
      onChange=${(event: Event) => change({ fileName: (event.target as HTMLInputElement).value })} />`,
  })}`;
}

interface ReplayProps {
  readonly page: FilePage;
  readonly tried: Tried;
  readonly isMapped: boolean;
}

/** The settings that were tried become a run, after its consequence was shown. */
function ReplayWith({ page, tried, isMapped }: ReplayProps): Element | null {
  const [isOpen, setOpen] = useState(false);
  const [isDone, setDone] = useState(false);
  const viewer = useRefusal();
  const run = page.runs.at(-1)?.run;
  useEffect(() => setDone(false), [tried]);
  if (run === undefined) return null;
  const refusal = viewer ?? (isMapped ? (page.actions.includes("replay") ? null : words.noReplay) : words.mapFirst);
  const { mapper, settings, rows } = tried;
  const targets = [{ subject: { run: run.id }, name: page.arrival.name }];
  return html`<p class="buttons"><${Act} words=${words.replay} isSmall=${false} refusal=${refusal}
    act=${() => setOpen(true)} />
      ${
        isDone
          ? html`<${Link} class="button plain" to=${hrefOf(`/files/${page.arrival.id}`)}>${words.seeFile}
        </${Link}>`
          : null
      }</p>
    ${
      isOpen
        ? html`<${ActionDialog} action="replay" targets=${targets} given=${{ mapper, settings, rows }}
          onClose=${() => setOpen(false)}
            onDone=${() => setDone(true)} />`
        : null
    }`;
}

// Maps when something was changed, and nothing is typed any longer.

export interface Mapping {
  /** The one before while the next is made. */
  readonly answer: Mapped | null;
  readonly fault: unknown;
  readonly isBusy: boolean;
}

function useMapped(source: SourceOf | null, tried: Tried): Mapping {
  const [state, setState] = useState<Mapping>({ answer: null, fault: null, isBusy: false });
  const key = source === null || tried.mapper === "" ? null : JSON.stringify([source, tried]);
  useEffect(() => {
    if (key === null) {
      setState({ answer: null, fault: null, isBusy: false });
      return;
    }
    const stop = new AbortController();
    const { mapper, settings, rows, fileName } = tried;
    const body = { ...source, mapper, settings, rows, ...(fileName === "" ? {} : { fileName }) };
    const timer = setTimeout(() => {
      setState((before) => ({ ...before, isBusy: true }));
      post<Mapped>("/playground/map", body, { signal: stop.signal }).then(
        (answer) => setState({ answer, fault: null, isBusy: false }),
        (fault: unknown) => {
          if (stop.signal.aborted || (fault instanceof Problem && fault.code === REPLACED)) return;
          setState({ answer: null, fault, isBusy: false });
        },
      );
    }, TYPED_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  return state;
}

/** The versions of a mapper, with the runs that each made. */
function MapperVersions({ mapper }: { readonly mapper: string }): Element | null {
  const runs = useQuery<MapperRuns>("/mappers/runs");
  const own = (runs.answer ?? []).filter(({ name }) => name === mapper);
  if (own.length === 0) return null;
  const { columns } = words;
  return html`<section class="card" aria-labelledby="versions"><h2 id="versions">${words.versions}</h2>
    <${Scroll}><table class="rows versions"><caption class="hidden">${words.versions}</caption>
    <thead><tr><th scope="col">${columns.version}</th><th scope="col" class="number">${columns.runs}</th>
      <th scope="col" class="number">${columns.quarantined}</th><th scope="col">${columns.first}</th>
      <th scope="col">${columns.last}</th></tr></thead>
    <tbody>${own.map(
      ({ version, digest, runs: made, quarantined, first, last }) => html`<tr key=${digest}>
        <td data-label=${columns.version}>${version} <code class="detail-inline">${digest.slice(0, 12)}</code></td>
        <td class="number" data-label=${columns.runs}>${count(made)}</td>
        <td class="number" data-label=${columns.quarantined}>${count(quarantined)}</td>
        <td data-label=${columns.first}><${When} at=${first} seconds=${false} /></td>
        <td data-label=${columns.last}><${When} at=${last} seconds=${false} /></td></tr>`,
    )}</tbody></table></${Scroll}></section>`;
}

// A sample from this computer, chosen or dropped on the page.

interface Sample {
  readonly id: string;
  readonly name: string;
  readonly size: number;
}

interface Taken {
  readonly sample: string;
  readonly name: string;
  readonly bytes: number;
}

interface ChoiceProps {
  readonly sample: Sample | null;
  onSample(sample: Sample): void;
}

function SampleChoice({ sample, onSample }: ChoiceProps): Element {
  const { fault, ...upload } = useUpload<Taken>("/playground/samples", (taken) =>
    onSample({ id: taken.sample, name: taken.name, size: taken.bytes }),
  );
  return html`<${Fault} fault=${fault} />
    ${sample === null ? null : html`<p><bdi>${sample.name}</bdi> <span class="detail">${bytes(sample.size)}</span></p>`}
    <${FileField} ...${{ id: "sample-file", label: words.upload, ...upload }} />`;
}

/** Keeps the sample as a case of a mapper of one's own. */
function NewCase({ source, tried }: { readonly source: SourceOf; readonly tried: Tried }): Element {
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

interface ProposalProps {
  readonly source: SourceOf;
  onUse(part: Partial<Tried>): void;
}

/** Settings that fit the table of a sample, as `headgate mapper new` proposes them. */
function Proposal({ source, onUse }: ProposalProps): Element {
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

type View = (typeof VIEWS)[number];

interface ResultProps extends Mapping {
  readonly page: FilePage | null;
}

/** The result of a try: readings, refused rows, payload, and the trigger that would do the same. */
function Result({ answer, fault, isBusy, page }: ResultProps): Element {
  const [chosen, setChosen] = useState<View | null>(null);
  if (answer === null)
    return html`<${Fault} fault=${fault} />
      <p class="muted" role="status">${isBusy || fault === null ? words.mapping : ""}</p>`;
  const view = chosen ?? (answer.readings.length === 0 && answer.refusedCount > 0 ? "refused" : "readings");
  const counts: Partial<Record<View, number>> = {
    readings: answer.points,
    refused: answer.refusedCount,
    log: answer.log.length,
  };
  const tab = (
    one: View,
  ) => html`<button type="button" class="tab" aria-pressed=${one === view} onClick=${() => setChosen(one)}>
    ${words.views[one]}${counts[one] === undefined ? null : html` <span class="detail">${count(counts[one])}</span>`}
      </button>`;
  return html`<section class="card result" aria-labelledby="result" aria-busy=${isBusy}>
    <h2 id="result" tabindex="-1">${words.result}</h2>
    <div role="status">${Summary(answer)}</div>
    ${answer.problems.map(
      ({ code, message, hint, place }) =>
        html`<div class="problem"><p><${Foreign} text=${message} />${
          code === null ? null : html` <code class="detail-inline">${code}</code>`
        }</p>${place === null ? null : html`<p class="spot"><${Foreign} text=${placeWords(place)} /></p>`}${
          hint === null ? null : html`<p class="detail"><${Hint} text=${hint} /></p>`
        }</div>`,
    )}
    <div class="tab-bar" role="group" aria-label=${words.viewsLabel}>${VIEWS.map(tab)}</div>
    ${View(view, answer, page)}
  </section>`;
}

function Summary({ status, mapper, points, targetCount, period, superseded, durationMs }: Mapped): Element {
  return html`<p><${State} state=${status === "mapped" ? "ok" : "trouble"} words=${words.status[status]} />${" "}
      ${status === "failed" && points === 0 ? null : words.summary(points, targetCount)}${
        period === null
          ? null
          : html`, <${When} at=${period.from} seconds=${false} /> – <${When} at=${period.to} seconds=${false} />`
      } <span class="detail">${mapper.name} ${mapper.version} · ${length(durationMs)}</span></p>
    ${superseded > 0 ? html`<p class="detail">${words.superseded(superseded)}</p>` : null}`;
}

function View(view: View, answer: Mapped, page: FilePage | null): Content {
  switch (view) {
    case "readings": {
      const { targets, readings, isCut } = answer;
      const id = page?.arrival.id;
      const rowLink =
        id === undefined
          ? null
          : ({ row, sheet }: Reading) =>
              hrefOf(`/files/${id}`, { view: "input", row: row === null ? null : String(row), sheet });
      return html`<${ReadingsPart} ...${{ targets, readings, isCut, rowLink }} />`;
    }
    case "refused":
      return Refused(answer);
    case "payload":
      return answer.payload === null
        ? html`<p class="muted">${words.noPayload}</p>`
        : html`<${JsonText} text=${answer.payload} isFormatted=${!answer.isPayloadCut} label=${TEXTS.payload.label} />`;
    case "trigger":
      return html`<${Yaml} text=${answer.trigger} />`;
    case "log":
      return answer.log.length === 0
        ? html`<p class="muted">${words.noLog}</p>`
        : html`<pre class="code scroll" tabindex="0" role="region" aria-label=${words.views.log}>
          <bdi>${answer.log.join("\n")}</bdi></pre>`;
  }
}

function Refused({ refused, refusedByReason, refusedCount }: Mapped): Content {
  if (refusedCount === 0) return html`<p class="muted">${words.noRefused}</p>`;
  return html`<ul class="plain-list">${refusedByReason.map(
    (one) =>
      html`<li><b>${count(one.count)}</b> × ${one.column === undefined ? "" : `${TEXTS.place.column(one.column)}: `}
        <${Foreign} text=${one.message} /></li>`,
  )}</ul>
  <${Scroll}><table class="rows"><caption>${words.refusedRows(refused.length, refusedCount)}</caption>
    <thead><tr><th scope="col">${words.place}</th><th scope="col">${words.reason}</th></tr></thead>
    <tbody>${refused.map(
      ({
        message,
        place,
      }) => html`<tr><td data-label=${words.place}><${Foreign} text=${placeWords(place)} most=${160} /></td>
        <td data-label=${words.reason}><${Foreign} text=${message} most=${300} /></td></tr>`,
    )}</tbody></table></${Scroll}>`;
}

function Yaml({ text }: { readonly text: string }): Element {
  const [isCopied, setCopied] = useState(false);
  const copy = () => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => getSelection()?.selectAllChildren(document.getElementById("trigger-yaml") ?? document.body),
    );
  };
  return html`<p>${words.yamlHint}</p><pre class="code" id="trigger-yaml">${text}</pre>
    <p><${Act} words=${words.copy} kind="plain" act=${copy} /> <span role="status" class="detail">
      ${isCopied ? words.copied : ""}</span></p>`;
}
