/** Migrations of history: their plans and progress, their files that need a person, by cause, and their actions. */
import { useEffect } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import type { MigrationFacts } from "../contract.ts";
import { Foreign, Hint, Loaded, Scroll, State } from "../parts.ts";
import { useQuery } from "../query.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { count, length } from "../words.ts";
import { MigrationActions } from "./actions.ts";
import { NewPlan, PlanOf } from "./plan.ts";

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
