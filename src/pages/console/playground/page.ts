/** The playground: what a mapper makes of a file, while its settings are changed. Nothing is sent to a service. */
import { useEffect, useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { ActionDialog } from "../actions/dialog.ts";
import type { PageProps } from "../app.ts";
import type { FilePage, MapperFacts } from "../contract.ts";
import { Act, Choice, Fault, Labelled, Loaded, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { useQuery } from "../query.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { NameTestCard } from "../triggers/name-test.ts";
import { NewCase } from "./case.ts";
import { type Mapping, useMapped } from "./mapped.ts";
import { Proposal } from "./proposal.ts";
import { Result } from "./result.ts";
import { type Sample, SampleChoice } from "./sample.ts";
import type { Schema, Settings } from "./schema.ts";
import { SettingsForm } from "./settings.ts";
import { MapperVersions } from "./versions.ts";

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
