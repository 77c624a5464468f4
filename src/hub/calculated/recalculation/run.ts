/** Performs one calculation: part after part, each from its inputs to its outputs, which are handed over as a push. */

import type { Clock } from "#core/clock.ts";
import { ConfigError, TransientError, wordsOf } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import { growingWait } from "../../deliveries/growing-wait.ts";
import type { Calculation } from "../../store/calculated/claims.ts";
import type { CalculationStore } from "../../store/resources.ts";
import { isoOfMs } from "../../time.ts";
import type { CalculationResult } from "../engines/engine.ts";
import type { Engines } from "./engines.ts";
import { DefinitionFault, type PlannedVariable, planned } from "./formulas.ts";
import { InputReader } from "./input-reader.ts";
import { readForms, readVariable } from "./inputs.ts";
import { outputsOf } from "./outputs.ts";
import { endOfNextPart, type PlannedStretch, stretchesToCalculate } from "./plan.ts";

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
