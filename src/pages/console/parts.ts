/** Parts that all pages use. */
import type { Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Content, type Element, html } from "../kit/html.ts";
import { Notice } from "../kit/parts.ts";
import { BASE, Problem, SessionEnded } from "./api.ts";
import { hrefOf, Link, type Place } from "./router.ts";
import { TEXTS } from "./texts.ts";
import { cut, visible } from "./words.ts";

export { Scroll } from "../kit/browser/scroll.ts";

/** Longer texts are cut, with a button for the rest: a cell of a file may have a million characters. */
const TEXT_MOST = 600;
const TEXT_WHOLE = 20_000;

/** Text from files and servers: its direction ends with it. */
export function Foreign({ text, most = TEXT_MOST }: { readonly text: string; readonly most?: number }): Element {
  const [isWhole, setWhole] = useState(false);
  if (text.length <= most) return html`<bdi>${visible(text)}</bdi>`;
  if (isWhole) return html`<bdi>${visible(cut(text, TEXT_WHOLE))}</bdi>`;
  return html`<span><bdi>${visible(cut(text, most))}</bdi> <button type="button" class="link"
    onClick=${() => setWhole(true)}>${TEXTS.showRest(text.length)}</button></span>`;
}

interface HintProps {
  readonly text: string;
  /** The buttons of actions stand beside it: commands of the command line are named as these. */
  readonly hasButtons?: boolean;
}

/** A hint of ours, in which names of settings and commands stand between backticks. */
export function Hint({ text, hasButtons = false }: HintProps): Element {
  const parts = cut(text, TEXT_MOST).split("`");
  return html`<span>${parts.map((part, at) => {
    if (at % 2 === 0 || at === parts.length - 1) return html`<bdi>${visible(part)}</bdi>`;
    const button = hasButtons ? buttonOf(part) : null;
    return button === null
      ? html`<code>${visible(part)}</code>`
      : html`<b class="button-name" title=${visible(part)}>${button}</b>`;
  })}</span>`;
}

/** `headgate replay RUN`: the button that does the same, unless the command has options. */
function buttonOf(command: string): string | null {
  const [, name = ""] = /^headgate (\w+)(?: [A-Z]+)?$/.exec(command) ?? [];
  return TEXTS.actions.named[name] ?? null;
}

export function Fault({ fault }: { readonly fault: unknown }): Element | null {
  if (fault === null || fault === undefined) return null;
  if (fault instanceof SessionEnded) {
    const next = `${location.pathname}${location.search}`;
    const link = html`<a href=${`${BASE}/console/sign-in?next=${encodeURIComponent(next)}`}>${TEXTS.faults.signIn}</a>`;
    return Notice({ kind: "danger", children: html`<p>${TEXTS.faults.ended} ${link}</p>` });
  }
  const words = fault instanceof Error ? fault.message : String(fault);
  const hint = fault instanceof Problem ? fault.hint : null;
  const code = fault instanceof Problem ? fault.code : null;
  return Notice({
    kind: "danger",
    children: html`<p><${Foreign} text=${words} />${code === null ? null : html` <code>${code}</code>`}</p>
      ${hint === null ? null : html`<p><${Hint} text=${hint} /></p>`}`,
  });
}

interface LoadedProps<Answer> {
  readonly of: { readonly answer: Answer | null; readonly fault: unknown; readonly isLoading: boolean };
  readonly children: (answer: Answer) => Content;
}

/** The fault, or what was loaded; a note to screen readers while it loads. */
export function Loaded<Answer>({ of, children }: LoadedProps<Answer>): Element {
  return html`<${Fault} fault=${of.fault} />
    <p class="hidden" role="status">${of.isLoading ? TEXTS.loading : ""}</p>
    ${
      of.answer === null
        ? of.fault === null
          ? html`<p class="muted">${TEXTS.loading}
      </p>`
          : null
        : children(of.answer)
    }`;
}

export type Tone = "plain" | "good" | "warning" | "bad" | "faint";

const TONES: Readonly<Record<string, Tone>> = {
  ...{ delivered: "good", accepted: "good", confirmed: "good", ok: "good", done: "good", "on-time": "good" },
  ...{ quarantined: "bad", discarded: "bad", missing: "bad", trouble: "bad", refused: "bad", drop: "bad" },
  ...{ service: "bad", rejected: "bad", failed: "bad", error: "bad" },
  ...{
    unconfirmed: "warning",
    emptied: "warning",
    held: "warning",
    late: "warning",
    unmatched: "warning",
    paused: "warning",
  },
  ...{ lane: "warning", spool: "warning", trigger: "warning", occupied: "warning", warning: "warning" },
  ...{ empty: "faint", duplicate: "faint", skipped: "faint", cancelled: "faint" },
};

/** A state in words, with a mark besides its colour. */
export function State({ state, words }: { readonly state: string; readonly words?: string }): Element {
  // Names may be long.
  const wraps = words === undefined ? "" : " named";
  const style = `state ${TONES[state] ?? "plain"}${wraps}`;
  return html`<span class=${style}>${words ?? TEXTS.states[state] ?? state}</span>`;
}

export function FileLink({ file, path }: { readonly file: number | null; readonly path: string }): Element {
  const name = html`<bdi>${visible(cut(path, 160))}</bdi>`;
  return file === null ? html`<span>${name}</span>` : html`<${Link} to=${hrefOf(`/files/${file}`)}>${name}</${Link}>`;
}

interface DialogProps {
  readonly title: string;
  readonly isWide?: boolean;
  readonly children: Content;
  onClose(): void;
}

/** Modal: the browser keeps the focus inside, and Escape closes it. */
export function Dialog({ title, isWide = false, children, onClose }: DialogProps): Element {
  const place: Ref<HTMLDialogElement> = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const dialog = place.current;
    dialog?.showModal();
    return () => {
      // While it is open, nothing beside it takes the focus.
      dialog?.close();
      const next = before?.isConnected === true ? before : document.querySelector("main");
      if (next instanceof HTMLElement) next.focus();
    };
  }, []);
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${place} class=${isWide ? "wide" : ""} aria-labelledby="dialog-title" onCancel=${cancel}>
    <div class="dialog-head"><h2 id="dialog-title">${title}</h2>
      <button type="button" class="plain small" onClick=${onClose}>${TEXTS.close}</button></div>
    ${children}
  </dialog>`;
}

interface ActProps {
  readonly words: string;
  readonly kind?: "main" | "plain" | "danger";
  readonly isSmall?: boolean;
  /** Why it cannot be used; null when it can. */
  readonly refusal?: string | null;
  readonly isBusy?: boolean;
  readonly about?: string;
  act(): void;
}

/** One that is refused stays in the order of the keyboard, and says why. */
export function Act({ words, kind = "main", isSmall = true, refusal = null, isBusy = false, about, act }: ActProps) {
  const press = () => {
    if (refusal === null && !isBusy) act();
  };
  return html`<button type="button" class=${`${kind}${isSmall ? " small" : ""}`} onClick=${press}
    aria-disabled=${refusal !== null || isBusy ? "true" : undefined} title=${refusal ?? undefined}>${words}${
      about === undefined ? null : html`<span class="hidden"> ${about}</span>`
    }${refusal === null ? null : html`<span class="hidden"> (${refusal})</span>`}</button>`;
}

interface FieldProps {
  readonly id: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly children: Content;
}

/** A label over a control, which has the id. */
export function Labelled({ id, label, hint, children }: FieldProps): Element {
  return html`<div class="field"><label for=${id}>${label}</label>${children}
    ${hint === undefined ? null : html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}</div>`;
}

export interface Option {
  readonly value: string;
  readonly words: string;
}

interface ChoiceProps {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly hint?: string | undefined;
  set(value: string): void;
}

export function Choice({ id, label, value, options, hint, set }: ChoiceProps): Element {
  const change = (event: Event) => set((event.target as HTMLSelectElement).value);
  return Labelled({
    id,
    label,
    hint,
    children: html`<select id=${id} value=${value} onChange=${change}>
      ${options.map(
        (one) => html`<option key=${one.value} value=${one.value} selected=${one.value === value}>
        ${one.words}</option>`,
      )}
    </select>`,
  });
}

interface CheckProps {
  readonly id: string;
  readonly words: Content;
  readonly checked: boolean;
  set(checked: boolean): void;
}

export function Check({ id, words, checked, set }: CheckProps): Element {
  const change = (event: Event) => set((event.target as HTMLInputElement).checked);
  return html`<div class="check"><input type="checkbox" id=${id} checked=${checked} onChange=${change} />
    <label for=${id}>${words}</label></div>`;
}

export interface PageProps {
  readonly place: Place;
}
