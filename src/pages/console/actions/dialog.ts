/** An action: first its consequence, then the question, then what became of it. */
import { useEffect, useState } from "preact/hooks";
import { useScrolling } from "../../kit/browser/scroll.ts";
import { type Content, type Element, html } from "../../kit/html.ts";
import { post } from "../api.ts";
import type { Action, Done, Preview } from "../contract.ts";
import { Act, Check, Dialog, Fault, Foreign, Labelled, State } from "../parts.ts";
import { hrefOf, Link } from "../router.ts";
import { TEXTS } from "../texts.ts";
import { visible } from "../words.ts";
import { Consequence } from "./consequence.ts";
import { sameSubject, type Target } from "./subjects.ts";

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
