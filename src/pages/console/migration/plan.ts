/** The form that plans a migration, and a plan with its findings by kind. */
import { useState } from "preact/hooks";
import { type Content, type Element, html } from "../../kit/html.ts";
import { Facts } from "../../kit/parts.ts";
import { post } from "../api.ts";
import type { MapperFacts, MigrationFacts, MigrationPlaces } from "../contract.ts";
import { Act, Check, Choice, Fault, Foreign, Hint, Labelled, Loaded } from "../parts.ts";
import { useRefusal } from "../person.ts";
import type { Schema, Settings } from "../playground/schema.ts";
import { SettingsForm } from "../playground/settings.ts";
import { useQuery } from "../query.ts";
import { TEXTS } from "../texts.ts";
import { When } from "../time.ts";
import { bytes, count, length } from "../words.ts";

const { migrations: words } = TEXTS;

export function NewPlan({ onPlanned }: { readonly onPlanned: () => void }): Element {
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

export function PlanOf({ plan, isNew }: { readonly plan: Plan; readonly isNew: boolean }): Element {
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
