/** The alarms of all accounts in memory, and how they follow templates and structure. */
import { wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import type { Logger } from "#core/log.ts";
import { breath } from "#core/turns.ts";
import { type AlarmCondition, type AlarmTemplateBody, ianaZone } from "#wire/index.ts";
import type { AlarmStep, NewAlarm, NewChange } from "../store/alarms/evaluation.ts";
import type { StoredAlarm, StoredTemplate } from "../store/alarms/records.ts";
import type { VariableFacts } from "../store/records.ts";
import type { HubStore } from "../store/store.ts";
import { isLevel, type Memory } from "./conditions.ts";
import { type Compiled, expressionOf } from "./expression.ts";
import { noticesOf, notifiedOf } from "./notices.ts";
import { carried, type Rule, type StateChange } from "./progress.ts";
import { selectedVariables } from "./selection.ts";

export interface Watched {
  /** As its row is known, but for `watermarkMs` and `memory`, which may be ahead of it. */
  stored: StoredAlarm;
  readonly template: StoredTemplate;
  readonly rule: Rule;
  readonly compiled: Compiled | null;
  readonly facts: VariableFacts | null;
  /** IANA name, of the site. */
  readonly zone: string;
  /** Whether the row lacks watermark or memory. */
  isAhead: boolean;
  /** NoData: date of the newest known point. */
  newestMs: number | null;
  /** Date of the first known point after now. */
  futureMs: number | null;
}

const MINUTE_MS = 60_000;
export const GAP_SHOWN_MS = 86_400_000;

/** Of the changes of an alarm that are found at once, so many of the newest are sent; all are recorded. */
const SENT = 20;
/** Changes of one transaction: each costs the writer of points its wait, and a sync. */
const CHANGES = 1_000;

const ROWS = 1_000;
/** Filters by form values and views may select others without a change of the structure. */
const RESELECT_MS = 3_600_000;
const NEWEST = { order: "DESC", page: { offset: 0, limit: 1 }, view: { kind: "latest" }, labels: false } as const;

/** Time that one account has to select, before the others have their turn. */
const SLICE_MS = 1_000;

interface Known {
  readonly version: number;
  readonly readMs: number;
}

/** A selection that took longer than its slice. */
interface Begun extends Known {
  /** The last template whose variables are selected. */
  readonly templateId: number;
}

export class WatchedAlarms {
  readonly #store: HubStore;
  readonly #log: Logger;
  readonly #mostOf: (accountId: number) => number;
  readonly #sliceMs: number;
  readonly #begun = new Map<number, Begun>();
  #isEnding = false;
  readonly #accounts = new Map<number, Known>();
  readonly #byId = new Map<number, Watched>();
  #byVariable = new Map<number, Watched[]>();
  /** Accounts that were read since their pauses were judged. */
  readonly unjudged = new Set<number>();

  /** `mostOf`: how many alarms an account may have. */
  constructor(
    store: HubStore,
    log: Logger,
    mostOf: (accountId: number) => number = () => Number.POSITIVE_INFINITY,
    sliceMs = SLICE_MS,
  ) {
    this.#mostOf = mostOf;
    this.#sliceMs = sliceMs;
    this.#store = store;
    this.#log = log;
  }

  all(): Iterable<Watched> {
    return this.#byId.values();
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The selections of an account continue with the next refresh. */
  get isPartial(): boolean {
    return this.#begun.size > 0 && !this.#isEnding;
  }

  /** A refresh selects no more. */
  end(): void {
    this.#isEnding = true;
  }

  of(variableId: number): readonly Watched[] {
    return this.#byVariable.get(variableId) ?? [];
  }

  byId(id: number): Watched | undefined {
    return this.#byId.get(id);
  }

  drop({ stored: { id } }: Watched): void {
    this.#byId.delete(id);
    this.#index();
  }

  /** `force`: reads every row again. Returns alarms that are new here, or whose template has changed. */
  async refresh(nowMs: number, force: boolean): Promise<readonly Watched[]> {
    const versions = await this.#store.alarms.evaluation.versions();
    const fresh: Watched[] = [];
    for (const accountId of [...this.#accounts.keys()]) if (!versions.has(accountId)) this.#forget(accountId);
    for (const [accountId, version] of versions) {
      const known = this.#accounts.get(accountId);
      const isOld =
        known === undefined ||
        known.version !== version ||
        nowMs - known.readMs >= RESELECT_MS ||
        this.#begun.has(accountId);
      if (isOld) await this.#selectMore(accountId, { version, readMs: nowMs });
      if (isOld || force) fresh.push(...(await this.#read(accountId)));
      if (isOld || force) this.unjudged.add(accountId);
    }
    return fresh;
  }

  /** For one slice. A change that comes meanwhile has all selected once more. */
  async #selectMore(accountId: number, now: Known): Promise<void> {
    const begun = this.#begun.get(accountId) ?? { ...now, templateId: 0 };
    const templateId = await this.#select(accountId, begun.templateId, now.readMs);
    if (templateId !== null) {
      this.#begun.set(accountId, { ...begun, templateId });
      return;
    }
    this.#begun.delete(accountId);
    this.#accounts.set(accountId, { version: begun.version, readMs: begun.readMs });
  }

  #forget(accountId: number): void {
    this.#accounts.delete(accountId);
    this.#begun.delete(accountId);
    this.unjudged.delete(accountId);
    for (const [id, { stored }] of this.#byId) if (stored.accountId === accountId) this.#byId.delete(id);
    this.#index();
  }

  /**
   * Adds and removes rows, so that they are those that the templates after this one select. Returns the last of them
   * where the slice has ended; null: all are selected.
   */
  async #select(accountId: number, afterTemplate: number, nowMs: number): Promise<number | null> {
    const { evaluation } = this.#store.alarms;
    const rows = Map.groupBy(await this.#rows(accountId), ({ templateId }) => templateId);
    const templates = (await evaluation.templates(accountId)).filter(({ id }) => id > afterTemplate);
    const endMs = performance.now() + this.#sliceMs;
    for (const [nth, template] of templates.entries()) {
      const { selection, condition } = template.body;
      const own = rows.get(template.id) ?? [];
      try {
        if (condition.kind === "LateFile") {
          const wanted = (selection.triggerIds ?? []).map((triggerId) => ({
            variableId: null,
            triggerId,
            watermarkMs: null,
          }));
          await this.#bring(template, own, wanted, nowMs);
        } else {
          const variables = await selectedVariables(this.#store, accountId, selection, nowMs);
          const had = new Set(own.map(({ variableId }) => variableId));
          const kept = variables.filter(({ id }) => had.has(id));
          const added = await this.#startsOf(
            variables.filter(({ id }) => !had.has(id)),
            template,
            nowMs,
          );
          await this.#bring(template, own, [...kept.map(({ id }) => ofVariable(id, null)), ...added], nowMs);
        }
      } catch (thrown) {
        const facts = { template: template.id, account: accountId, cause: wordsOf(thrown) };
        this.#log.warn(facts, "the variables of an alarm template could not be selected; its alarms stay as they are");
      }
      if (nth < templates.length - 1 && (this.#isEnding || performance.now() >= endMs)) return template.id;
    }
    return null;
  }

  async #bring(
    template: StoredTemplate,
    own: readonly StoredAlarm[],
    wanted: readonly NewAlarm[],
    nowMs: number,
  ): Promise<void> {
    const { evaluation } = this.#store.alarms;
    const keyOf = (one: Pick<NewAlarm, "variableId" | "triggerId">) => `${one.variableId} ${one.triggerId}`;
    const keys = new Set(wanted.map(keyOf));
    const had = new Set(own.map(keyOf));
    const gone = own.filter((one) => !keys.has(keyOf(one))).map(({ id }) => id);
    if (gone.length > 0) await evaluation.remove(template.accountId, gone);
    const added = wanted.filter((one) => !had.has(keyOf(one)));
    const most = this.#mostOf(template.accountId);
    let left = 0;
    for (let at = 0; at < added.length; at += ROWS / 2)
      left += await evaluation.add(template.accountId, template, added.slice(at, at + ROWS / 2), nowMs, most);
    const facts = { template: template.id, account: template.accountId, most, left };
    if (left > 0) this.#log.warn(facts, "the account has as many alarms as it may have; further variables have none");
  }

  /** A variable that is older than the template begins with its newest point, a newer one with its first. */
  async #startsOf(
    variables: readonly VariableFacts[],
    { lastVariableId }: StoredTemplate,
    nowMs: number,
  ): Promise<NewAlarm[]> {
    const starts = variables.filter(({ id }) => id > lastVariableId).map(({ id }) => ofVariable(id, null));
    const older = variables.filter(({ id }) => id <= lastVariableId);
    for (let at = 0; at < older.length; at += ROWS) {
      const part = older.slice(at, at + ROWS);
      const heads = await this.#heads(part, nowMs);
      starts.push(...part.map(({ id }, index) => ofVariable(id, heads[index] ?? null)));
    }
    return starts;
  }

  /** Dates of the newest points up to now. */
  async #heads(variables: readonly VariableFacts[], nowMs: number): Promise<readonly (number | null)[]> {
    const asks = variables.map((variable) => ({ variable, fromMs: null, lastMs: nowMs }));
    return (await this.#store.points.heads(asks, NEWEST)).map((points) => points[0]?.atMs ?? null);
  }

  async #rows(accountId: number): Promise<readonly StoredAlarm[]> {
    const all: StoredAlarm[] = [];
    for (let part: readonly StoredAlarm[]; ; ) {
      part = await this.#store.alarms.evaluation.alarms(accountId, all.at(-1)?.id ?? 0, ROWS);
      all.push(...part);
      if (part.length < ROWS) return all;
      await breath();
    }
  }

  async #read(accountId: number): Promise<readonly Watched[]> {
    const templates = new Map((await this.#store.alarms.evaluation.templates(accountId)).map((one) => [one.id, one]));
    const rows = await this.#rows(accountId);
    const ids = [...new Set(rows.flatMap(({ variableId }) => variableId ?? []))];
    const facts = new Map((await this.#store.points.select(accountId, { ids })).map((one) => [one.id, one]));
    const rules = new Map([...templates].map(([id, { body }]) => [id, ruleOf(body)]));
    const fresh: Watched[] = [];
    const seen = new Set<number>();
    for (const row of rows) {
      const template = templates.get(row.templateId);
      const rule = rules.get(row.templateId);
      if (template === undefined || rule === undefined) continue;
      const variable = row.variableId === null ? null : (facts.get(row.variableId) ?? null);
      const known = this.#byId.get(row.id);
      const isSame = known !== undefined && known.template.revision === template.revision;
      const watched: Watched = {
        stored: current(row, known, template),
        ...{ template, rule, facts: variable },
        compiled: isSame ? known.compiled : await expressionOf(template.body.condition, variable),
        zone: ianaZone(variable?.siteZoneId ?? "UTC") ?? "UTC",
        isAhead: isSame && known.isAhead,
        newestMs: known?.newestMs ?? row.watermarkMs,
        futureMs: known?.futureMs ?? null,
      };
      this.#byId.set(row.id, watched);
      seen.add(row.id);
      if (!isSame || (known.stored.pause !== null && row.pause === null)) fresh.push(watched);
    }
    for (const [id, { stored }] of this.#byId)
      if (stored.accountId === accountId && !seen.has(id)) this.#byId.delete(id);
    this.#index();
    return fresh;
  }

  #index(): void {
    const own = [...this.#byId.values()].filter(({ facts }) => facts !== null);
    this.#byVariable = Map.groupBy(own, ({ facts }) => facts?.id ?? 0);
  }
}

/** Evaluation here since the row was written counts, while no other hub or person has changed the row. */
function current(row: StoredAlarm, known: Watched | undefined, { revision }: StoredTemplate): StoredAlarm {
  const stored = known?.stored.revision === row.revision ? known.stored : row;
  if (row.templateRevision !== revision && stored.templateRevision !== revision)
    return { ...stored, templateRevision: revision, memory: carried(stored.memory) };
  return stored.templateRevision === revision ? stored : row;
}

function ofVariable(variableId: number, watermarkMs: number | null): NewAlarm {
  return { variableId, triggerId: null, watermarkMs };
}

// Writes what evaluation has found: in memory alone where the state stays, otherwise with all that follows from it.

export interface Found {
  readonly watched: Watched;
  readonly memory: Memory;
  /** Null: as it was. */
  readonly watermarkMs: number | null;
  /** In order. */
  readonly changes: readonly StateChange[];
}

interface Recording {
  readonly nowMs: number;
  readonly mailsAnHour: number;
  /** The address of the hub, where it is known. */
  readonly publicUrl: string | undefined;
}

/**
 * Each alarm occurs once. Returns those whose changes were not written: another hub, a person, or a change of the
 * template, was first.
 */
export async function record(
  store: HubStore,
  found: readonly Found[],
  { nowMs, mailsAnHour, publicUrl }: Recording,
): Promise<readonly Watched[]> {
  const changed = found.filter((one) => {
    if (one.changes.length === 0) remember(one);
    return one.changes.length > 0;
  });
  const refused: Watched[] = [];
  for (const list of listsOf(changed)) {
    const steps = await stepsOf(store, list, { nowMs, publicUrl });
    faultPoint("hub.alarm.found");
    const written = await store.alarms.evaluation.advance(steps, mailsAnHour);
    const ids = new Set(steps.flatMap(({ alarm }, index) => (written[index] === true ? [alarm.id] : [])));
    if (ids.size > 0) faultPoint("hub.alarm.changed");
    for (const one of list)
      if (ids.has(one.watched.stored.id)) keep(one);
      else refused.push(one.watched);
  }
  return refused;
}

function* listsOf(found: readonly Found[]): Generator<readonly Found[]> {
  let list: Found[] = [];
  let changes = 0;
  for (const one of found) {
    list.push(one);
    changes += one.changes.length;
    if (changes < CHANGES) continue;
    yield list;
    list = [];
    changes = 0;
  }
  if (list.length > 0) yield list;
}

/** Without those that are gone. */
async function stepsOf(
  store: HubStore,
  list: readonly Found[],
  { nowMs: recordedMs, publicUrl }: Omit<Recording, "mailsAnHour">,
): Promise<readonly AlarmStep[]> {
  const steps: AlarmStep[] = [];
  for (const [accountId, own] of Map.groupBy(list, ({ watched }) => watched.stored.accountId)) {
    const ids = own.map(({ watched }) => watched.stored.id);
    const notified = await notifiedOf(store, accountId, ids, publicUrl);
    for (const { watched, memory, watermarkMs, changes } of own) {
      const { stored: alarm, template } = watched;
      const facts = notified.get(alarm.id);
      if (facts === undefined) continue;
      steps.push({
        ...{ alarm, templateRevision: template.revision, watermarkMs: watermarkMs ?? alarm.watermarkMs, memory },
        ...{ changes: newChanges(watched, changes), recordedMs, noticesOf: noticesOf(facts, recordedMs) },
      });
    }
  }
  return steps;
}

function newChanges({ template }: Watched, changes: readonly StateChange[]): readonly NewChange[] {
  const limit = limitWords(template.body.condition);
  return changes.map((change, index) => ({
    ...{ ...change, limit, user: null },
    ...(index < changes.length - SENT ? { isQuiet: true } : {}),
  }));
}

function remember({ watched, memory, ...found }: Found): void {
  const { stored } = watched;
  const watermarkMs = found.watermarkMs ?? stored.watermarkMs;
  watched.isAhead ||= watermarkMs !== stored.watermarkMs || memory !== stored.memory;
  watched.stored = { ...stored, memory, watermarkMs };
}

/** As the row is now. */
function keep({ watched, memory, changes, ...found }: Found): void {
  const { stored } = watched;
  const { state = stored.state, atMs: sinceMs = stored.sinceMs } = changes.at(-1) ?? {};
  const watermarkMs = found.watermarkMs ?? stored.watermarkMs;
  watched.stored = { ...stored, state, sinceMs, memory, watermarkMs, revision: stored.revision + 1 };
  watched.isAhead = false;
}

// The parts of a template that evaluation needs.

export function ruleOf({ condition, holdMinutes = 0, schedule }: AlarmTemplateBody): Rule {
  return { condition, holdMs: holdMinutes * MINUTE_MS, schedule, expression: null };
}

/** Whether points change the state; of the other kinds a moment does, or something else than points. */
export function isOfPoints({ kind }: AlarmCondition): boolean {
  return kind !== "NoData" && kind !== "LateFile" && kind !== "CalculationFailed";
}

/** Whether the bounds of some values show that they change nothing. */
export function hasBounds({ condition, holdMs, schedule }: Rule): boolean {
  return isLevel(condition) && holdMs === 0 && schedule === undefined;
}

/** A limit in words, as mails and histories show it. */
function limitWords({ kind, ...limits }: AlarmCondition): string {
  const { set = 0, reset = set, low, high, margin = 0, minutes = 0, per = "Hour", inverted, by, days, zone } = limits;
  const levels = (sign: string, back: string) => `${sign} ${set}${reset === set ? "" : ` (until ${back} ${reset})`}`;
  switch (kind) {
    case "Above":
      return levels("at or above", "at or below");
    case "Below":
      return levels("at or below", "at or above");
    case "Outside":
      return `outside ${low} to ${high}${margin === 0 ? "" : ` (until ${margin} inside)`}`;
    case "Binary":
      return inverted === true ? "is 0" : "is not 0";
    case "ChangeRate":
      return `changes by ${set} or more per ${per.toLowerCase()}`;
    case "FlatLine":
      return `unchanged for ${minutes} minutes`;
    case "Expression":
      return `${limits.expression}`;
    case "NoData":
      return `no data for ${minutes} minutes`;
    case "Gap":
      return `no points for ${minutes} minutes between two points`;
    case "LateFile":
      return `no file by ${by} (${zone ?? "UTC"})${days === undefined ? "" : `, days ${days.join(", ")}`}`;
    case "CalculationFailed":
      return "the calculation failed";
  }
}

/** Of the condition LateFile. */
export function zoneOf({ zone }: AlarmCondition): string {
  return ianaZone(zone ?? "UTC") ?? "UTC";
}
