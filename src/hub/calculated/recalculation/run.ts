/** Performs one calculation: part after part, each from its inputs to its outputs, which are handed over as a push. */
import { createHash } from "node:crypto";
import type { MessagePort } from "node:worker_threads";
import type { Clock } from "#core/clock.ts";
import { ConfigError, TransientError, wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import type { Formula } from "#wire/calculated.ts";
import { growingWait } from "../../deliveries/growing-wait.ts";
import type { HubOptions } from "../../options.ts";
import { compressedPieces } from "../../push/body-compression.ts";
import type { Calculation } from "../../store/calculated/calculation-rows.ts";
import type { CalculationStore } from "../../store/resources.ts";
import { isoOfMs } from "../../time.ts";
import type { CalculationEngine, CalculationResult, ComputedRows } from "../engines/engine.ts";
import { checkExpression, type ExpressionSymbol } from "../engines/expressions/check.ts";
import { createExpressionEngine } from "../engines/expressions/expression-engine.ts";
import { createREngine } from "../engines/r/r-engine.ts";
import type { CalculatedOptions } from "../options.ts";
import { DefinitionFault, type PlannedVariable, planned, type ReachOfExpression } from "./formulas.ts";
import { InputReader } from "./input-reader.ts";
import { readForms, readVariable } from "./inputs.ts";
import { endOfNextPart, type PlannedStretch, stretchesToCalculate } from "./plan.ts";
import type { Interval } from "./reach.ts";

/** Outputs of one part on their way to the queue of operations. */
export interface HandedPart {
  readonly calculationId: number;
  readonly accountId: number;
  /** Operations of the calculation before this one. */
  readonly sent: number;
  readonly cursorMs: number;
  readonly outputs: number;
  readonly dropped: number;
  /** Of the body before it was compressed. */
  readonly digest: string;
  readonly body: Uint8Array;
}

export interface RunParts {
  readonly store: CalculationStore;
  readonly engines: Engines;
  readonly clock: Clock;
  readonly node: string;
  /** Rows of inputs that one part may read. */
  readonly inputRows: number;
  /** Aborted when the hub ends, or the run belongs to another node. */
  readonly signal: AbortSignal;
  /** Resolves when the operation was accepted, and the part is recorded as sent. */
  hand(part: HandedPart): Promise<void>;
}

export type RunEnd = "done" | "failed" | "waiting" | "lost";

/** A million rows are many times as large as text: so much of it is held at a time. */
const PIECE_CHARACTERS = 256 * 1024;

const AWAY = { backoff: 5_000, backoffMax: 300_000 };

export async function performCalculation(run: Calculation, parts: RunParts): Promise<RunEnd> {
  const { store, node, clock, signal } = parts;
  const { claims } = store;
  try {
    const verdict = await calculate(run, parts);
    if (verdict === "lost") return "lost";
    faultPoint("hub.calculation.calculated");
    const nowMs = clock.now().epochMilliseconds;
    if ("failure" in verdict) return (await claims.fail(run, node, verdict.failure, nowMs)) ? "failed" : "lost";
    const message = verdict.notes.length === 0 ? null : verdict.notes.join("\n");
    return (await claims.complete(run, node, message, nowMs)) ? "done" : "lost";
  } catch (thrown) {
    if (signal.aborted) return "lost";
    const nowMs = clock.now().epochMilliseconds;
    if (thrown instanceof TransientError || thrown instanceof ConfigError || isDatabaseTrouble(thrown)) {
      const nextMs = nowMs + growingWait(AWAY, run.attempts - 1);
      return (await claims.wait(run.id, node, wordsOf(thrown), nextMs)) ? "waiting" : "lost";
    }
    const words =
      thrown instanceof DefinitionFault ? thrown.message : `the hub failed to calculate: ${wordsOf(thrown)}`;
    return (await claims.fail(run, node, words, nowMs)) ? "failed" : "lost";
  }
}

type Verdict = "lost" | { readonly failure: string } | { readonly notes: readonly string[] };

async function calculate(run: Calculation, parts: RunParts): Promise<Verdict> {
  const { store, engines, clock, node, signal, hand, inputRows } = parts;
  const reader = new InputReader({ points: store.points, rowsMax: inputRows, signal });
  const [definition] = await store.calculated.list(run.accountId, [run.variableId]);
  if (definition === undefined) return "lost";
  const variable = await planned(store, definition, engines.reachOf);
  const nowMs = clock.now().epochMilliseconds;
  const all = await stretchesToCalculate(abortable(store, signal), variable, run, nowMs);
  const beginMs = Math.min(...all.map((one) => one.fromMs));
  const endMs = Math.max(...all.map(({ toMs }) => toMs));
  const notes = new Set(notesOfFuture(variable, nowMs));
  let left = 0;
  let { sent, partMs } = run;
  for (const stretch of all) {
    let fromMs = Math.max(stretch.fromMs, (run.cursorMs ?? stretch.fromMs - 1) + 1);
    while (fromMs <= stretch.toMs) {
      const rest = { ...stretch, fromMs };
      const toMs =
        partMs !== null && partMs >= fromMs && partMs <= stretch.toMs
          ? partMs
          : await endOfNextPart(store, rest, variable.zone);
      partMs = null;
      if (!(await store.claims.begin(run.id, node, { beginMs, endMs, partMs: toMs }))) return "lost";
      const part = { ...rest, toMs };
      const result = await computed(run, variable, part, { ...parts, reader });
      signal.throwIfAborted();
      if (result.kind === "failed") return { failure: result.message };
      const { isVersioned, id: variableId } = variable.facts;
      const { defaultVersion } = run;
      const keepsLater = toMs >= stretch.extent.toMs;
      const outputs = await outputsOf(result, { variableId, isVersioned, defaultVersion, window: part, keepsLater });
      const { body, digest, rows, outside, withoutValue } = outputs;
      for (const note of [...result.errors, ...result.warnings, ...outputs.notes])
        if (notes.size < NOTES_MAX) notes.add(note);
      left += await countLeft(parts, variable, part, result.atMs);
      const passed = { cursorMs: toMs, outputs: rows, dropped: outside + withoutValue };
      faultPoint("hub.calculation.computed");
      if (body === null) {
        if (!(await store.claims.pass(run.id, node, passed))) return "lost";
      } else {
        await hand({ calculationId: run.id, accountId: run.accountId, sent, ...passed, digest, body });
        sent += 1;
      }
      fromMs = toMs + 1;
    }
  }
  return { notes: [...notes, ...wordsOfLeft(left)] };
}

/** Nothing makes these due when their time comes. */
function notesOfFuture({ formulas }: PlannedVariable, nowMs: number): readonly string[] {
  return formulas
    .filter(({ inputs, fromMs }) => inputs.length === 0 && fromMs !== null && fromMs > nowMs)
    .map(
      ({ fromMs }) =>
        `the formula without variables that holds from ${isoOfMs(fromMs ?? nowMs)} gives nothing before: ` +
        "calculate it then by POST /events/forceUpdate",
    );
}

/** The store, whose reads of points end with the run: an input may take many of them. */
function abortable(store: CalculationStore, signal: AbortSignal): CalculationStore {
  const read: CalculationStore["points"]["read"] = (variable, range) => {
    signal.throwIfAborted();
    return store.points.read(variable, range);
  };
  const pieces: CalculationStore["points"]["pieces"] = (variable, range) => {
    signal.throwIfAborted();
    return store.points.pieces(variable, range);
  };
  return { ...store, points: { ...store.points, read, pieces } };
}

/** Stored values of the part at dates for which the formula gives nothing; they stay as they are. */
async function countLeft(
  { store, signal }: RunParts,
  { facts }: PlannedVariable,
  { fromMs, toMs }: PlannedStretch,
  computedMs: Float64Array,
): Promise<number> {
  const given = computedMs.toSorted();
  let next = 0;
  const page = { offset: 0, limit: null };
  const stored = { fromMs, lastMs: toMs, order: "ASC", page, view: { kind: "latest" }, labels: false } as const;
  let left = 0;
  for await (const chunk of store.points.read(facts, stored)) {
    signal.throwIfAborted();
    for (const { atMs } of chunk) {
      while ((given[next] ?? atMs) < atMs) next += 1;
      if (given[next] !== atMs) left += 1;
    }
  }
  return left;
}

function wordsOfLeft(count: number): readonly string[] {
  if (count === 0) return [];
  const words = count === 1 ? "1 stored value of this period is" : `${count} stored values of this period are`;
  return [`${words} no longer computed: what was calculated before stays until it is removed (DELETE /data)`];
}

/** Notes of a formula in the message of a calculation. */
const NOTES_MAX = 20;

async function computed(
  run: Calculation,
  { zone }: PlannedVariable,
  part: PlannedStretch,
  { store, engines, signal, reader }: RunParts & { readonly reader: InputReader },
): Promise<CalculationResult> {
  const { formula, fromMs, toMs } = part;
  const window = { fromMs, toMs };
  const variables = [];
  for (const input of formula.inputs)
    variables.push(await readVariable({ store: abortable(store, signal), reader, zone }, input, window));
  reader.endPart();
  const forms = await readForms(store, run.accountId, formula);
  const constants = (formula.definition.constants ?? []).map(({ alias, value }) => ({ alias, value }));
  const { accountId, defaultVersion } = run;
  const engine = engines.of(formula.isExpression);
  const input = { accountId, formula: formula.text, defaultVersion, zone, window, variables, forms, constants };
  return engine.run(input, signal);
}

// The computed rows of a part as the body of a push.

interface OutputParts {
  readonly variableId: number;
  readonly isVersioned: boolean;
  readonly defaultVersion: string;
  readonly window: Interval;
  /** Rows after the window are kept: it reaches the newest point of the inputs. */
  readonly keepsLater: boolean;
}

interface Outputs {
  /** The push, compressed as bodies of the queue are. Null: no row is left to be stored. */
  readonly body: Uint8Array | null;
  /** Of the push before it was compressed. */
  readonly digest: string;
  readonly rows: number;
  /** Rows outside of the window, which are not stored. */
  readonly outside: number;
  /** Rows whose value is no number, which are not stored. */
  readonly withoutValue: number;
  /** For the author of the formula. */
  readonly notes: readonly string[];
}

type Rows = Pick<ComputedRows, "atMs" | "values" | "versions" | "tags">;

/** Rows without a version of their own get the default one where the variable keeps versions (rules 2 and 3). */
export async function outputsOf(computed: Rows, parts: OutputParts): Promise<Outputs> {
  const { variableId, isVersioned, defaultVersion } = parts;
  const counts = { rows: 0, outside: 0, withoutValue: 0 };
  const repeated = isAscending(computed.atMs) ? null : new RepeatedDates();
  const hash = createHash("sha256");
  const element = { variableId, ...(isVersioned ? { version: defaultVersion } : {}), data: [] };
  const pieceOf = (text: string) => {
    const piece = Buffer.from(text);
    hash.update(piece);
    return piece;
  };
  const pieces = function* () {
    let text = JSON.stringify([element]).slice(0, -"]}]".length);
    for (const row of keptRows(computed, parts, counts)) {
      repeated?.add(row.atMs, isVersioned ? (row.version ?? defaultVersion) : null);
      const { atMs, ...others } = row;
      text += `${counts.rows === 0 ? "" : ","}${JSON.stringify({ date: new Date(atMs).toISOString(), ...others })}`;
      counts.rows += 1;
      if (text.length < PIECE_CHARACTERS) continue;
      yield pieceOf(text);
      text = "";
    }
    yield pieceOf(`${text}]}]`);
  };
  const body = await compressedPieces(pieces());
  const notes = repeated?.notes() ?? [];
  return { body: counts.rows === 0 ? null : body, digest: hash.digest("hex"), ...counts, notes };
}

interface KeptRow {
  readonly atMs: number;
  readonly value: number;
  readonly version: string | undefined;
  readonly tags: Readonly<Record<string, string>> | undefined;
}

/** Rows that are stored; counts the others. */
function* keptRows(
  { atMs, values, versions, tags }: Rows,
  { window, keepsLater }: OutputParts,
  counts: { outside: number; withoutValue: number },
): Generator<KeptRow> {
  for (const [nth, ms] of atMs.entries()) {
    const value = values[nth] ?? Number.NaN;
    if (!(ms >= window.fromMs && (keepsLater || ms <= window.toMs))) counts.outside += 1;
    else if (!Number.isFinite(value)) counts.withoutValue += 1;
    else yield { atMs: ms, value, version: versions?.[nth] || undefined, tags: tags?.[nth] ?? undefined };
  }
}

/** Then no two rows have one date. */
function isAscending(atMs: Float64Array): boolean {
  return atMs.every((ms, at) => at === 0 || ms > (atMs[at - 1] ?? ms));
}

/** Rows that overwrite each other. */
class RepeatedDates {
  readonly #seen = new Map<string | null, Set<number>>();
  #count = 0;
  #firstMs = Number.POSITIVE_INFINITY;

  /** `version` null: the variable keeps none. */
  add(ms: number, version: string | null): void {
    const dates = this.#seen.get(version) ?? new Set();
    if (dates.size === 0) this.#seen.set(version, dates);
    if (dates.has(ms)) {
      this.#count += 1;
      this.#firstMs = Math.min(this.#firstMs, ms);
    }
    dates.add(ms);
  }

  notes(): readonly string[] {
    if (this.#count === 0) return [];
    const same = this.#seen.has(null) ? "date" : "date and version";
    const rows = this.#count === 1 ? "1 row has" : `${this.#count} rows have`;
    const first = new Date(this.#firstMs).toISOString();
    return [`${rows} the same ${same} as a row before, first at ${first}: of such rows only the last one stays`];
  }
}

// Messages between the thread of recalculation and the main thread of the hub.

export interface RecalculationData {
  readonly store: HubOptions["store"];
  readonly calculated: HubOptions["calculated"];
  readonly node: string;
  /** A fault point to arm in the thread, for tests; otherwise null. */
  readonly fault: string | null;
}

/** The only task of the thread. */
export interface RecalculationTask {
  readonly port: MessagePort;
}

export type ToThread =
  | { readonly type: "wake" }
  | { readonly type: "stop" }
  /** The part with this number was accepted, or could not be (with the words). */
  | { readonly type: "accepted"; readonly part: number; readonly fault: string | null };

export type FromThread =
  | { readonly type: "part"; readonly part: number; readonly handed: HandedPart }
  | {
      readonly type: "ended";
      readonly calculationId: number;
      readonly accountId: number;
      readonly variableId: number;
      readonly end: RunEnd;
      readonly seconds: number;
    }
  | { readonly type: "trouble"; readonly message: string };

// The engines of formulas: each is started by the first formula that needs it.

interface Engines {
  of(isExpression: boolean): CalculationEngine;
  readonly reachOf: ReachOfExpression;
  close(): Promise<void>;
}

/** `sideBySide`: most runs at one time. */
export function createEngines(options: CalculatedOptions, sideBySide: number): Engines {
  const running = new Map<boolean, CalculationEngine>();
  return {
    of(isExpression) {
      const engine =
        running.get(isExpression) ??
        (isExpression ? createExpressionEngine(options, sideBySide) : createREngine(options));
      running.set(isExpression, engine);
      return engine;
    },
    reachOf: async (definition, units) =>
      (await checkExpression(definition.formula ?? "", symbolsOf(definition, units))).reach,
    async close() {
      await Promise.all(running.values().map((engine) => engine.close()));
    },
  };
}

function symbolsOf({ entities, constants }: Formula, units: ReadonlyMap<string, number>): readonly ExpressionSymbol[] {
  return [
    ...Array.from(units, ([name, unitId]) => ({ name, kind: "variable" as const, unitId })),
    ...(entities ?? []).map(({ alias }) => ({ name: alias, kind: "form" as const })),
    ...(constants ?? []).map(({ alias }) => ({ name: alias, kind: "constant" as const })),
  ];
}
