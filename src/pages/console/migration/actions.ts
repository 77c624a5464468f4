/** The actions of an operator on a migration: start, pause, and the preview of an undo. */
import { useEffect, useState } from "preact/hooks";
import { type Element, html } from "../../kit/html.ts";
import { addressOf, post } from "../api.ts";
import type { MigrationFacts, UndoPreview } from "../contract.ts";
import { Act, Check, Choice, Dialog, Fault, Foreign, Labelled, Scroll } from "../parts.ts";
import { useRefusal } from "../person.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count } from "../words.ts";

const { migrations: words } = TEXTS;

interface Props {
  readonly one: MigrationFacts;
  onChanged(): void;
}

export function MigrationActions({ one, onChanged }: Props): Element {
  const [opened, setOpened] = useState<"start" | "pause" | "undo" | null>(null);
  const refusal = useRefusal();
  const { id, state, plan, hasReport } = one;
  const isNew = state === "planned" || state === "undone";
  const planning = plan?.state === "running" ? words.waitForPlan : null;
  const close = () => setOpened(null);
  const done = () => {
    close();
    onChanged();
  };
  const button = (name: "start" | "pause" | "undo", label: string, why: string | null = null) =>
    html`<${Act} words=${label} kind=${name === "start" ? "main" : "plain"} refusal=${refusal ?? why}
      about=${one.patterns.join(", ")} act=${() => setOpened(name)} />`;
  return html`<div class="buttons">
    ${
      state === "running" ? button("pause", words.pause) : button("start", isNew ? words.start : words.resume, planning)
    }
    ${state === "stopped" ? button("undo", words.previewUndo) : null}
    ${
      hasReport
        ? html`<a class="button plain small" href=${addressOf(`/migrations/${id}/report`)}
            download=${`migration-${id}.html`}>${words.saveReport}</a>`
        : null
    }</div>
    ${opened === "start" ? html`<${StartDialog} ...${{ one, done, close, isNew }} />` : null}
    ${opened === "pause" ? html`<${PauseDialog} ...${{ one, done, close }} />` : null}
    ${opened === "undo" ? html`<${UndoDialog} ...${{ one, close }} />` : null}`;
}

interface DialogProps {
  readonly one: MigrationFacts;
  done(): void;
  close(): void;
}

/** Sends a command, and keeps its fault. */
function useCommand(path: string, done: () => void) {
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const send = (body: object) => {
    setBusy(true);
    setFault(null);
    post(path, body)
      .then(done, setFault)
      .finally(() => setBusy(false));
  };
  return { fault, isBusy, send };
}

const typed = (set: (value: string) => void) => (event: Event) => set((event.target as HTMLInputElement).value);

function Why({ why, set }: { readonly why: string; set(why: string): void }): Element {
  const { actions } = TEXTS;
  return Labelled({
    ...{ id: "why", label: actions.why, hint: actions.whyHint },
    children: html`<input id="why" maxlength="500" autocomplete="off" value=${why} onInput=${typed(set)}
      aria-describedby="why-hint" />`,
  });
}

function StartDialog({ one, done, close, isNew }: DialogProps & { readonly isNew: boolean }): Element {
  const { id, limits, plan, files } = one;
  const [between, setBetween] = useState(limits.between ?? "");
  const [rate, setRate] = useState(limits.rate ?? "");
  const [errors, setErrors] = useState(limits.pauseOnErrors ?? "");
  const [verify, setVerify] = useState(limits.verify);
  const [onChange, setOnChange] = useState("stop");
  const [why, setWhy] = useState("");
  const { fault, isBusy, send } = useCommand(`/migrations/${id}/start`, done);
  const field = (name: string, label: string, hint: string, value: string, set: (value: string) => void) =>
    Labelled({
      ...{ id: name, label, hint },
      children: html`<input id=${name} value=${value} autocomplete="off" spellcheck=${false} onInput=${typed(set)}
        aria-describedby=${`${name}-hint`} />`,
    });
  const open = (files["pending"] ?? 0) + (files["settling"] ?? 0);
  const facts = plan?.facts ?? null;
  const begun = facts === null ? words.startUnplanned : words.startWords(facts.files, count(facts.points));
  const title = isNew ? words.start : words.resume;
  return html`<${Dialog} title=${words.startTitle(title, one.patterns.join(", "))} onClose=${close}>
    <${Fault} fault=${fault} />
    <p>${isNew ? begun : words.resumeWords(open)} ${words.startEffect}</p>
    ${(plan?.findings ?? []).length === 0 || !isNew ? null : html`<p class="warn">${words.startFindings}</p>`}
    ${field("between", words.hours, words.hoursHint, between, setBetween)}
    ${field("rate", words.rateLimit, words.rateHint, rate, setRate)}
    ${field("errors", words.pauseOnErrors, words.errorsHint, errors, setErrors)}
    ${Check({ id: "verify", words: words.verify, checked: verify, set: setVerify })}
    ${
      isNew
        ? null
        : Choice({
            ...{ id: "on-change", label: words.onChange, value: onChange, set: setOnChange },
            options: Object.entries(words.changes).map(([value, label]) => ({ value, words: label })),
          })
    }
    <${Why} why=${why} set=${setWhy} />
    <div class="buttons"><${Act} words=${title.replace("…", "")} isSmall=${false} isBusy=${isBusy}
        act=${() => send({ between, rate, pauseOnErrors: errors, verify, onChange, why })} />
      <${Act} words=${TEXTS.actions.leave} isSmall=${false} kind="plain" act=${close} /></div>
    <p role="status" class="detail">${isBusy ? words.beginsRun : ""}</p></${Dialog}>`;
}

function PauseDialog({ one, done, close }: DialogProps): Element {
  const [why, setWhy] = useState("");
  const { fault, isBusy, send } = useCommand(`/migrations/${one.id}/pause`, done);
  return html`<${Dialog} title=${words.pauseTitle(one.patterns.join(", "))} onClose=${close}>
    <${Fault} fault=${fault} /><p>${words.pauseEffect}</p><${Why} why=${why} set=${setWhy} />
    <div class="buttons"><${Act} words=${words.pause.replace("…", "")} isSmall=${false} isBusy=${isBusy}
        act=${() => send({ why })} />
      <${Act} words=${TEXTS.actions.leave} isSmall=${false} kind="plain" act=${close} /></div></${Dialog}>`;
}

function UndoDialog({ one, close }: Omit<DialogProps, "done">): Element {
  const [found, setFound] = useState<UndoPreview | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    post<UndoPreview>(`/migrations/${one.id}/preview-undo`, {}, { signal: stop.signal }).then(
      setFound,
      (thrown: unknown) => !stop.signal.aborted && setFault(thrown),
    );
    return () => stop.abort();
  }, []);
  return html`<${Dialog} title=${words.undoTitle} isWide=${true} onClose=${close}><${Fault} fault=${fault} />
    <div aria-busy=${found === null && fault === null} aria-live="polite">${
      found === null ? (fault === null ? html`<p class="muted">${words.undoAsks}</p>` : null) : Undo(found)
    }</div>
    <p class="detail">${words.undoEffect} <code>headgate migrate undo ${one.id}</code></p>
    <div class="buttons"><${Act} words=${TEXTS.close} isSmall=${false} act=${close} /></div></${Dialog}>`;
}

function Undo({ points, variables, count: all, absent, gone }: UndoPreview): Element {
  const { undoColumns: columns } = words;
  return html`<p><strong>${words.undoPoints(points, all)}</strong></p>
    ${absent === 0 ? null : html`<p class="detail">${words.undoAbsent(absent)}</p>`}
    ${variables.some(({ stay }) => stay > 0) ? html`<p class="detail">${words.undoStay}</p>` : null}
    ${gone.length === 0 ? null : html`<p class="warn">${words.undoGone(gone.length)}</p>`}
    ${
      variables.length === 0
        ? null
        : html`<${Scroll}><table class="rows"><caption class="hidden">${words.undoTitle}</caption>
      <thead><tr><th scope="col">${columns.target}</th><th scope="col">${columns.from}</th>
        <th scope="col">${columns.to}</th><th scope="col" class="number">${columns.points}</th>
        <th scope="col" class="number">${columns.stay}</th></tr></thead>
      <tbody>${variables.map(
        (row) => html`<tr><td data-label=${columns.target}><${Foreign} text=${row.target} most=${160} /></td>
          <td data-label=${columns.from}>${row.from === null ? "–" : html`<${When} at=${row.from} />`}</td>
          <td data-label=${columns.to}>${row.to === null ? "–" : html`<${When} at=${row.to} />`}</td>
          <td class="number" data-label=${columns.points}>${count(row.points)}</td>
          <td class="number" data-label=${columns.stay}>${count(row.stay)}</td></tr>`,
      )}</tbody></table></${Scroll}>`
    }
    ${all > variables.length ? html`<p class="detail">${TEXTS.ofRows(variables.length, all)}</p>` : null}`;
}
