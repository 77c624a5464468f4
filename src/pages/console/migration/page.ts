/** Migrations of history: their plans and progress, their files that need a person, by cause, and their actions. */
import { useEffect, useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import { addressOf, post } from "../api.ts";
import type { MapperFacts, MigrationFacts, MigrationPlaces, UndoPreview } from "../contract.ts";
import { Act, Check, Choice, Dialog, Fault, Foreign, Hint, Labelled, Loaded, Scroll, State } from "../parts.ts";
import { useRefusal } from "../person.ts";
import type { Schema, Settings } from "../playground/schema.ts";
import { SettingsForm } from "../playground/settings.ts";
import { useQuery } from "../query.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { bytes, count, length } from "../words.ts";

const typed = (set: (value: string) => void) => (event: Event) => set((event.target as HTMLInputElement).value);
const { migrations: words } = TEXTS;
/** A migration is a process of its own, whose changes the gateway does not report. */
const RELOAD_MS = 3_000;
const STATES = { planned: "pending", running: "ok", stopped: "paused", ended: "done", undone: "cancelled" } as const;

export function MigrationsPage(): Element {
  const migrations = useQuery<readonly MigrationFacts[]>("/migrations");
  // One that was started opens its ledger a moment later.
  const isRunning =
    migrations.answer?.some(
      ({ state, plan, actions }) => state === "running" || plan?.state === "running" || actions[0]?.what === "started",
    ) ?? false;
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(migrations.reload, RELOAD_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return html`<h1>${TEXTS.pages.migrations}</h1><${NewPlan} onPlanned=${migrations.reload} />
    <${Loaded} of=${migrations}>${(known: readonly MigrationFacts[]) =>
      known.length === 0
        ? html`<p class="muted"><${Hint} text=${words.none} /></p>`
        : known.map(
            (one) => html`<${Migration} key=${one.id} one=${one} onChanged=${migrations.reload} />`,
          )}</${Loaded}>`;
}

interface Props {
  readonly one: MigrationFacts;
  onChanged(): void;
}

function Migration({ one, onChanged }: Props): Element {
  const { id, fault, files, findings, isFindingsCut, undone, plan, pausing, opensAt } = one;
  const all = Object.values(files).reduce((sum, value) => sum + value, 0);
  const open = (files["pending"] ?? 0) + (files["settling"] ?? 0);
  // It stopped by itself, after the last file.
  const state = one.state === "stopped" && all > 0 && open === 0 ? "ended" : one.state;
  return html`<section class="card" aria-labelledby=${`migration-${id}`}>
    <h2 id=${`migration-${id}`}><bdi>${one.patterns.join(", ")}</bdi> <${State} state=${STATES[state]}
      words=${words.states[state]} /></h2>
    ${fault === null ? null : html`<div class="problem"><p><${Foreign} text=${fault} /></p></div>`}
    ${all === 0 ? null : Progress(id, all, open)}
    ${opensAt === null ? null : html`<p class="warn">${words.waitsUntil} <bdi>${opensAt}</bdi></p>`}
    ${pausing === null ? null : html`<p class="warn">${words.pausing} <bdi>${pausing.by}</bdi></p>`}
    <${MigrationActions} one=${one} onChanged=${onChanged} />
    ${plan === null ? null : html`<${PlanOf} plan=${plan} isNew=${one.state === "planned"} />`}
    ${Facts({ facts: factsOf(one) })}
    ${findings.length === 0 ? null : Findings(findings)}
    ${isFindingsCut ? html`<p class="detail">${words.cut}</p>` : null}
    ${undone.map(
      ({ begunAt, endedAt, by, points }) => html`<p class="detail">${words.undone(points)} <bdi>${by}</bdi>:${" "}
        <${When} at=${begunAt} /> – ${endedAt === null ? words.running : html`<${When} at=${endedAt} />`}</p>`,
    )}${History(one.actions)}</section>`;
}

function History(actions: MigrationFacts["actions"]): Element | null {
  if (actions.length === 0) return null;
  return html`<details><summary>${words.history}</summary><ul class="plain-list">${actions.map(
    ({ at, by, what, words: more }) => html`<li><${When} at=${at} /> ${words.actions[what] ?? what}${" "}
      <bdi>${by}</bdi>${more === "" ? null : html`: <${Foreign} text=${more} />`}</li>`,
  )}</ul></details>`;
}

function Progress(id: string, all: number, open: number): Element {
  const share = (all - open) / all;
  return html`<label for=${`progress-${id}`}>${words.progress(all - open, all)}</label>
    <progress id=${`progress-${id}`} max="1" value=${share}></progress>`;
}

function factsOf(one: MigrationFacts) {
  const { id, files, points, recent, mapper, service, rows, versionTag, folder, hasReport, remainingSeconds } = one;
  const standings = Object.entries(files).map(
    ([state, value]) => `${count(value)} ${(TEXTS.states[state] ?? state).toLowerCase()}`,
  );
  const facts: (readonly [string, Content])[] = [
    [words.files, standings.length === 0 ? words.nothing : standings.join(" · ")],
    [words.readings, words.points(count(points.mapped), count(points.accepted), count(points.rejected))],
    [words.recent(recent.minutes), words.rate(recent.files, recent.points)],
    ...(remainingSeconds === null ? [] : [[words.remaining, words.about(length(remainingSeconds * 1_000))] as const]),
    ...limitsOf(one.limits),
    [
      words.through,
      html`<bdi>${mapper ?? words.byTriggers}</bdi>${
        service === null ? null : html` → <bdi>${service}</bdi>`
      } (${rows})`,
    ],
    ...(versionTag === null ? [] : [[words.tag, html`<bdi>${versionTag}</bdi>`] as const]),
    [
      words.folder,
      html`<code>${folder}</code>${hasReport ? html` <span class="detail">${words.report}</span>` : null}`,
    ],
    [words.id, html`<code>${id}</code>`],
  ];
  return facts;
}

function limitsOf({ between, rate, pauseOnErrors }: MigrationFacts["limits"]): readonly (readonly [string, Content])[] {
  const given = [
    [words.hours, between],
    [words.rateLimit, rate],
    [words.pauseOnErrors, pauseOnErrors],
  ] as const;
  return given.flatMap(([name, value]) => (value === null ? [] : [[name, html`<bdi>${value}</bdi>`] as const]));
}

function Findings(findings: MigrationFacts["findings"]): Element {
  const { columns } = words;
  return html`<${Scroll}><table class="rows"><caption>${words.findings}</caption>
    <thead><tr><th scope="col">${columns.state}</th><th scope="col">${columns.what}</th>
      <th scope="col" class="number">${columns.files}</th><th scope="col">${columns.example}</th></tr></thead>
    <tbody>${findings.map(
      ({
        state,
        code,
        what,
        hint,
        files,
        example,
      }) => html`<tr><td data-label=${columns.state}><${State} state=${state} /></td>
        <td data-label=${columns.what}><${Foreign} text=${what} />${
          code === null ? null : html` <code class="detail-inline">${code}</code>`
        }${hint === null ? null : html` <span class="detail"><${Hint} text=${hint} /></span>`}</td>
        <td class="number" data-label=${columns.files}>${count(files)}</td>
        <td data-label=${columns.example}><${Foreign} text=${example} most=${160} /></td></tr>`,
    )}</tbody></table></${Scroll}>`;
}

// The form that plans a migration, and a plan with its findings by kind.

function NewPlan({ onPlanned }: { readonly onPlanned: () => void }): Element {
  const places = useQuery<MigrationPlaces>("/migrations/places");
  const [isOpen, setOpen] = useState(false);
  const refusal = useRefusal();
  return html`<${Loaded} of=${places}>${({ histories, services }: MigrationPlaces) => {
    if (histories.length === 0) return html`<p class="muted"><${Hint} text=${words.noHistories} /></p>`;
    if (!isOpen)
      return html`<p><${Act} words=${words.newPlan} kind="plain" refusal=${refusal} act=${() => setOpen(true)} /></p>`;
    const planned = () => {
      setOpen(false);
      onPlanned();
    };
    return html`<${PlanForm} ...${{ histories, services, planned }} leave=${() => setOpen(false)} />`;
  }}</${Loaded}>`;
}

interface FormProps extends MigrationPlaces {
  planned(): void;
  leave(): void;
}

function PlanForm({ histories, services, planned, leave }: FormProps): Element {
  const mappers = useQuery<readonly MapperFacts[]>("/mappers");
  const [patterns, setPatterns] = useState(`${histories[0]}/**/*.csv`);
  const [mapper, setMapper] = useState("");
  const [settings, setSettings] = useState<Settings>({});
  const [service, setService] = useState(services[0] ?? "");
  const [tag, setTag] = useState("");
  const [isLenient, setLenient] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const known = mappers.answer ?? [];
  const schema = known.find(({ name }) => name === mapper)?.settings as Schema | undefined;
  const plan = () => {
    setBusy(true);
    setFault(null);
    post("/migrations/plan", {
      patterns: patterns.split("\n").filter((line) => line.trim() !== ""),
      ...(mapper === "" ? {} : { mapper, settings }),
      ...(services.length > 1 ? { service } : {}),
      ...(tag.trim() === "" ? {} : { versionTag: tag }),
      rows: isLenient ? "lenient" : "strict",
    })
      .then(planned, setFault)
      .finally(() => setBusy(false));
  };
  const text = (set: (value: string) => void) => (event: Event) => set((event.target as HTMLInputElement).value);
  const choose = (name: string) => {
    setMapper(name);
    setSettings({});
  };
  return html`<section class="card" aria-labelledby="new-plan"><h2 id="new-plan">${words.newPlan}</h2>
    <p class="hint">${words.planLead}</p><${Fault} fault=${fault} />
    ${Labelled({
      id: "patterns",
      label: words.patterns,
      hint: words.patternsHint(histories.join(", ")),
      children: html`<textarea id="patterns" rows="3" spellcheck=${false} aria-describedby="patterns-hint"
        value=${patterns} onInput=${text(setPatterns)} />`,
    })}
    ${Choice({
      ...{ id: "mapper", label: words.mapper, value: mapper, set: choose },
      options: [{ value: "", words: words.byTriggers }, ...known.map(({ name }) => ({ value: name, words: name }))],
    })}
    ${
      schema === undefined
        ? null
        : html`<${SettingsForm} key=${mapper} ...${{ schema, settings }} onChange=${setSettings} />`
    }
    ${
      services.length < 2
        ? null
        : Choice({
            ...{ id: "service", label: words.service, value: service, set: setService },
            options: services.map((name) => ({ value: name, words: name })),
          })
    }
    ${Labelled({
      ...{ id: "tag", label: words.tag, hint: words.tagHint },
      children: html`<input id="tag" value=${tag} autocomplete="off" aria-describedby="tag-hint"
        onInput=${text(setTag)} />`,
    })}
    ${Check({ id: "lenient", words: words.lenient, checked: isLenient, set: setLenient })}
    <div class="buttons"><${Act} words=${words.makePlan} isSmall=${false} isBusy=${isBusy} act=${plan} />
      <${Act} words=${TEXTS.actions.leave} isSmall=${false} kind="plain" act=${leave} /></div>
    <p role="status" class="detail">${isBusy ? words.beginsPlan : ""}</p></section>`;
}

type Plan = NonNullable<MigrationFacts["plan"]>;

function PlanOf({ plan, isNew }: { readonly plan: Plan; readonly isNew: boolean }): Element {
  const { by, at, state, done, of, facts, findings } = plan;
  return html`<details open=${isNew}><summary>${words.plan(words.planStates[state])}
    </summary>
    <p class="detail"><bdi>${by}</bdi>, <${When} at=${at} />${
      state === "running" && of > 0 ? html` · ${words.planProgress(done, of)}` : null
    }</p>
    ${facts === null ? null : Facts({ facts: figures(facts) })}
    ${facts?.sample == null ? null : html`<p class="detail"><${Foreign} text=${facts.sample} /></p>`}
    ${
      facts?.unaskedBecause == null
        ? null
        : html`<p class="warn">${words.unasked} <${Foreign} text=${facts.unaskedBecause} /></p>`
    }
    ${findings.map(
      ({
        kind,
        count: all,
        examples,
      }) => html`<h3>${words.kinds[kind] ?? kind} <span class="detail">${count(all)}</span></h3>
        <ul>${examples.map((one) => html`<li><${Foreign} text=${one} /></li>`)}</ul>
        ${all > examples.length ? html`<p class="detail">${words.moreFindings(all - examples.length)}</p>` : null}`,
    )}
    ${state === "done" && findings.length === 0 ? html`<p>${words.noFindings}</p>` : null}</details>`;
}

function figures(facts: NonNullable<Plan["facts"]>): readonly (readonly [string, Content])[] {
  const { files, bytes: size, points, isCounted, targets, period, seconds, isAtLeast } = facts;
  const duration = length(seconds * 1_000);
  return [
    [words.files, `${count(files)} · ${bytes(size)}`],
    [words.readings, isCounted ? count(points) : words.about(count(points))],
    [words.targets, count(targets)],
    [words.period, period === null ? words.nothing : html`<${When} at=${period.from} /> – <${When} at=${period.to} />`],
    [words.duration, isAtLeast ? words.atLeast(duration) : words.about(duration)],
  ];
}

/** The actions of an operator on a migration: start, pause, and the preview of an undo. */
function MigrationActions({ one, onChanged }: Props): Element {
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
