/** An action: first its consequence, then the question, then what became of it. */
import { useEffect, useState } from "preact/hooks";
import { useScrolling } from "../../kit/browser/scroll.ts";
import { type Content, type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { Action, Done, Preview, PreviewDetail, ReplayDetail } from "../contract.ts";
import { Act, Check, Dialog, Fault, Foreign, Labelled, Scroll, State } from "../parts.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count, number, visible } from "../words.ts";
import { sameSubject, type Target } from "./subjects.ts";

const { consequence } = TEXTS;
const ROWS = 12;
const { actions } = TEXTS;
/** A preview maps each file again: more are performed, but not shown. */
const PREVIEWED_MOST = 20;
/** Subjects of one request. */
const PART = 50;

export interface ActionSettings {
  readonly trigger?: string;
  readonly mapper?: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly rows?: "strict" | "lenient";
}

interface DialogProps {
  readonly action: Action;
  readonly targets: readonly Target[];
  /** Of a replay, as they were tried. */
  readonly given?: ActionSettings;
  onClose(): void;
  onDone(): void;
}

interface Flags {
  readonly rejectedOnly: boolean;
  readonly overwrite: boolean;
  readonly discard: boolean;
}

const NO_FLAGS: Flags = { rejectedOnly: false, overwrite: false, discard: false };
const FLAGS: Readonly<Partial<Record<Action, readonly (keyof Flags)[]>>> = {
  replay: ["rejectedOnly", "overwrite"],
  release: ["discard", "overwrite"],
};

export function ActionDialog({ action, targets, given = {}, onClose, onDone }: DialogProps): Element {
  const [flags, setFlags] = useState(NO_FLAGS);
  const [previews, setPreviews] = useState<readonly Preview[] | null>(null);
  const [done, setDone] = useState<readonly Done[]>([]);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [why, setWhy] = useState("");
  const options = { ...given, ...flags };
  const place = useScrolling();
  useEffect(() => {
    const stop = new AbortController();
    setPreviews(null);
    setFault(null);
    const subjects = targets.slice(0, PREVIEWED_MOST).map(({ subject }) => subject);
    post<{ items: readonly Preview[] }>("/preview", { action, subjects, options }, { signal: stop.signal }).then(
      ({ items }) => setPreviews(items),
      (thrown: unknown) => !stop.signal.aborted && setFault(thrown),
    );
    return () => stop.abort();
  }, [flags]);
  const perform = async () => {
    setBusy(true);
    setFault(null);
    try {
      for (let at = done.length; at < targets.length; at += PART) {
        const subjects = targets.slice(at, at + PART).map(({ subject }) => subject);
        const { items } = await post<{ items: readonly Done[] }>("/commands", {
          command: action,
          subjects,
          options,
          why,
        });
        setDone((before) => [...before, ...items]);
      }
      onDone();
    } catch (thrown) {
      setFault(thrown);
    }
    setBusy(false);
  };
  const isDone = done.length === targets.length;
  const nameOf = (subject: Preview["subject"]) =>
    targets.find((target) => sameSubject(target.subject, subject))?.name ?? "";
  return html`<${Dialog} title=${actions.titles[action](targets.length, targets[0]?.name ?? "")}
    isWide=${action === "replay"}
    onClose=${onClose}>
    <${Fault} fault=${fault} />
    ${
      isDone
        ? Results(done, nameOf, onClose)
        : html`${Given(given)}${Options(action, flags, setFlags)}
          <div class="previews" ref=${place} aria-busy=${previews === null && fault === null} aria-live="polite">${
            previews === null
              ? fault === null
                ? html`<p class="muted">${actions.previewing}</p>`
                : null
              : Previews(previews, nameOf, targets.length)
          }</div>
          <${Question} ...${{ action, targets, isBusy, why, setWhy, onClose }} isReady=${previews !== null}
            perform=${() => void perform()} done=${done.length} />`
    }
  </${Dialog}>`;
}

function Given({ trigger, mapper, settings, rows }: ActionSettings): Element | null {
  const parts = [
    ...(trigger === undefined ? [] : [actions.byTrigger(trigger)]),
    ...(mapper === undefined ? [] : [actions.withMapper(mapper)]),
    ...(rows === undefined ? [] : [actions.withRows[rows]]),
  ];
  if (parts.length === 0 && settings === undefined) return null;
  const shown = settings === undefined ? null : html`<pre class="code">${JSON.stringify(settings, null, 2)}</pre>`;
  return html`<div class="given">${parts.map((words) => html`<p><bdi>${words}</bdi></p>`)}
    ${shown === null ? null : html`<details><summary>${actions.withSettings}</summary>${shown}</details>`}</div>`;
}

function Options(action: Action, flags: Flags, setFlags: (flags: Flags) => void): Content {
  return (FLAGS[action] ?? []).map((name) =>
    Check({
      id: `option-${name}`,
      words: html`${actions.options[name]} <span class="hint">
        ${actions.optionHints[action === "release" && name === "overwrite" ? "overwriteOfRelease" : name]}</span>`,
      checked: flags[name],
      set: (checked) => setFlags({ ...flags, [name]: checked }),
    }),
  );
}

function Previews(previews: readonly Preview[], nameOf: (subject: Preview["subject"]) => string, all: number): Element {
  const refused = previews.filter(({ status }) => status === "refused").length;
  return html`${
    refused === 0 || previews.length === 1
      ? null
      : html`<p>
    ${actions.refusedCount(refused, previews.length)}</p>`
  }
    ${previews.map(
      (one) => html`<div class="preview">
        <p>${all === 1 ? null : html`<strong><${Foreign} text=${nameOf(one.subject)} most=${120} /></strong> — `}${
          one.status === "refused" ? html`<${State} state="refused" /> ` : null
        }<${Foreign} text=${one.words} /></p>
        ${one.hint === null ? null : html`<p class="detail"><${Foreign} text=${one.hint} /></p>`}
        ${one.detail === null ? null : html`<${Consequence} detail=${one.detail} />`}
      </div>`,
    )}
    ${all > previews.length ? html`<p>${actions.notPreviewed(previews.length, all)}</p>` : null}`;
}

interface QuestionProps {
  readonly action: Action;
  readonly targets: readonly Target[];
  readonly isBusy: boolean;
  readonly isReady: boolean;
  readonly done: number;
  readonly why: string;
  setWhy(why: string): void;
  perform(): void;
  onClose(): void;
}

/** An action that cannot be undone asks for the name of the file. */
function Question({ action, targets, isBusy, isReady, done, why, setWhy, perform, onClose }: QuestionProps): Element {
  const [typed, setTyped] = useState("");
  const asked = action === "forget" ? (targets.length === 1 ? (targets[0]?.name ?? "") : String(targets.length)) : null;
  // As it is, or as it is shown.
  const isTyped = asked === null || [asked, visible(asked)].some((one) => one.trim() === typed.trim());
  const refusal = isTyped ? (isReady ? null : actions.waitForPreview) : actions.typeFirst;
  const text = (set: (value: string) => void) => (event: Event) => set((event.target as HTMLInputElement).value);
  const words = actions.buttons[action](targets.length, targets.length === 1);
  return html`<div class="question">
    ${
      asked === null
        ? null
        : Labelled({
            id: "typed",
            label: targets.length === 1 ? actions.typeName(asked) : actions.typeCount(targets.length),
            children: html`<input id="typed" autocomplete="off" value=${typed} onInput=${text(setTyped)} />`,
          })
    }
    ${Labelled({
      id: "why",
      label: actions.why,
      hint: actions.whyHint,
      children: html`<input id="why" maxlength="500" autocomplete="off" value=${why} onInput=${text(setWhy)}
        aria-describedby="why-hint" />`,
    })}
    <p role="status" class="detail">${isBusy ? actions.progress(done, targets.length) : ""}</p>
    <div class="buttons">
      <${Act} words=${words.replace("…", "")} isSmall=${false}
        kind=${action === "forget" || action === "cancel" ? "danger" : "main"}
        refusal=${refusal} isBusy=${isBusy} act=${perform} />
      <${Act} words=${actions.leave} isSmall=${false} kind="plain" act=${onClose} />
    </div>
  </div>`;
}

function Results(done: readonly Done[], nameOf: (subject: Done["subject"]) => string, onClose: () => void): Element {
  const refused = done.filter(({ status }) => status === "refused");
  const listed = refused.length > 0 ? refused : done;
  return html`<div role="status"><p><strong>${actions.result(done.length - refused.length, refused.length)}</strong></p>
    <ul class="plain-list">${listed.slice(0, 100).map(
      (one) => html`<li><${State} state=${one.status === "refused" ? "refused" : "done"} /> <bdi>${nameOf(one.subject)}
        </bdi> —${" "}
        <${Foreign} text=${one.words} />${
          one.hint === null
            ? null
            : html`<span class="detail"><bdi>${one.hint}</bdi>
          </span>`
        }${
          one.run === null ? null : html` <${Link} to=${hrefOf("/files", { q: one.run })}>${actions.follow}</${Link}>`
        }</li>`,
    )}</ul></div>
    <div class="buttons"><${Act} words=${TEXTS.close} isSmall=${false} act=${onClose} /></div>`;
}

/** The consequence of an action, in numbers and rows. */
function Consequence({ detail }: { readonly detail: PreviewDetail }): Element {
  switch (detail.action) {
    case "replay":
      return html`<${Replay} detail=${detail} />`;
    case "provision":
      return html`${Listed(consequence.creates, detail.creates, detail.count)}
        ${Listed(consequence.impossible, detail.impossible, detail.impossible.length)}`;
    case "release":
      return Numbers(
        [
          [consequence.readings, detail.readings],
          [consequence.discards, detail.discards],
        ],
        detail.overtaken === null ? null : html`<p class="warn"><${Foreign} text=${detail.overtaken} /></p>`,
      );
    case "cancel":
      return Numbers([
        [consequence.stays, detail.acceptedPoints],
        [consequence.unanswered, detail.unanswered],
      ]);
    case "forget":
      return Numbers([
        [consequence.versions, detail.versions],
        [consequence.runs, detail.runs],
        [consequence.stays, detail.acceptedPoints],
        [consequence.unanswered, detail.unanswered],
      ]);
  }
}

function Numbers(
  facts: readonly (readonly [words: (count: number) => string, value: number])[],
  more: Content = null,
): Element {
  return html`<ul class="numbers">${facts.map(
    ([words, value]) => html`<li class=${value === 0 ? "none" : ""}><b>${count(value)}</b> ${words(value)}</li>`,
  )}</ul>${more}`;
}

function Listed(words: string, lines: readonly string[], all: number): Element | null {
  if (all === 0) return null;
  return html`<p>${words}</p><ul class="plain-list framed">${lines.map(
    (line) => html`<li><${Foreign} text=${line} />
    </li>`,
  )}</ul>
    ${all > lines.length ? html`<p class="detail">${TEXTS.inbox.andMore(all - lines.length)}</p>` : null}`;
}

function Replay({ detail }: { readonly detail: ReplayDetail }): Element {
  const { readings, refusedRows, later, notKept } = detail;
  const facts = [
    [consequence.added, readings.added],
    [consequence.changed, readings.changed],
    [consequence.unchanged, readings.unchanged],
    [consequence.acceptedBefore, readings.acceptedBefore],
    [consequence.dropped, readings.dropped],
    [consequence.refusedRows, refusedRows],
  ] as const;
  return html`<p class="detail">${consequence.by} <bdi>${detail.trigger}</bdi> · <bdi>${detail.mapper}</bdi></p>
    ${Numbers(facts.filter(([, value], at) => at < 2 || value > 0))}
    <${Differences} differences=${detail.differences} />
    ${later.map(
      ({
        file,
        readings: overlapping,
        from,
        to,
      }) => html`<p class="warn">${consequence.later(overlapping)} <bdi>${file}</bdi>:${" "}
        <${When} at=${from} seconds=${false} /> – <${When} at=${to} seconds=${false} /></p>`,
    )}
    ${notKept.length === 0 ? null : html`<p class="detail">${consequence.notKept(notKept.length)}</p>`}`;
}

function Differences({ differences }: { readonly differences: ReplayDetail["differences"] }): Element | null {
  const [most, setMost] = useState(ROWS);
  if (differences.length === 0) return html`<p class="muted">${consequence.noDifference}</p>`;
  const hasVersion = differences.some(({ version }) => version !== null);
  const { columns } = consequence;
  return html`<${Scroll}><table class="values diff"><caption>${consequence.differences}</caption>
    <thead><tr><th scope="col">${columns.target}</th><th scope="col">${columns.date}</th>${
      hasVersion ? html`<th scope="col">${columns.version}</th>` : null
    }<th scope="col" class="number">${columns.before}</th><th scope="col" class="number">${columns.after}</th></tr>
      </thead>
    <tbody>${differences.slice(0, most).map(
      ({ target, date, version, before, after }) => html`<tr>
        <td><${Foreign} text=${target} most=${120} /></td><td><${When} at=${date} /></td>${
          hasVersion ? html`<td><bdi>${version ?? ""}</bdi></td>` : null
        }<td class="number">${
          before === null
            ? html`<span class="muted">${consequence.none}</span>`
            : html`<del>
          ${number(before)}</del>`
        }</td>
        <td class="number">${
          after === null
            ? html`<span class="muted">${consequence.notSent}</span>`
            : html`<ins>
          ${number(after)}</ins>`
        }</td></tr>`,
    )}</tbody></table></${Scroll}>
    ${
      differences.length > most
        ? html`<p><button type="button" class="plain small" onClick=${() => setMost(most + 50)}>${TEXTS.more}</button>
            <span class="detail">${TEXTS.ofRows(most, differences.length)}</span></p>`
        : null
    }`;
}
