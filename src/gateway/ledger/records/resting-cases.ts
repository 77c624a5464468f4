/** Runs that need a person, with the facts of their causes. */
import { setImmediate } from "node:timers/promises";
import { cells, rowEach, type Steps } from "#core/sql/statements.ts";
import { type Binding, READINGS_LOST, type RunState } from "../../model.ts";
import type { RestingCase } from "../file-list.ts";
import { literal, runIndexOf } from "./run-indexes.ts";
import { type Dialect, perDialect, type Store } from "./store.ts";

/**
 * A newer version of the file has arrived. The sender does not know the outcome of an unconfirmed run, and the newer
 * version may have other dates; and it does not bring lost readings back. The reason is read last: it may be long.
 */
function isReplaced({ jsonField }: Dialect): string {
  return `(arrivals.parent_id IS NULL AND runs.state <> 'unconfirmed'
    AND EXISTS (SELECT 1 FROM arrivals AS later WHERE later.name = arrivals.name AND later.path = arrivals.path
      AND later.drop_name = arrivals.drop_name AND later.parent_id IS NULL AND later.id > arrivals.id
      AND later.state = 'matched')
    AND (runs.reason IS NULL OR ${jsonField("runs.reason", "code")} <> '${READINGS_LOST}'))`;
}

const selectReplaced = perDialect(
  (dialect) => `SELECT runs.id FROM runs JOIN arrivals ON arrivals.id = runs.arrival_id
    WHERE runs.id = ? AND ${isReplaced(dialect)}`,
);

export function* replacedRuns(store: Store, runs: readonly string[]): Steps<ReadonlySet<string>> {
  const found = yield* rowEach<readonly [string]>(
    selectReplaced(store),
    ["text"],
    runs.map((id) => [id]),
  );
  return new Set(found.flatMap((one) => (one === undefined ? [] : [one[0]])));
}

type CaseCells = readonly [
  id: string,
  state: RunState,
  arrivalId: number,
  drop: string,
  bindingId: number,
  changedAt: string,
  code: string | null,
  message: string | null,
  hint: string | null,
];

const selectCase = perDialect(
  ({ jsonField }) => `SELECT id, state, arrival_id, drop_name, binding_id, changed_at, ${jsonField("reason", "code")},
    ${jsonField("reason", "message")}, ${jsonField("reason", "hint")} FROM runs WHERE id = ?`,
);

/** Runs of one part: reading them takes some milliseconds. */
const PART = 500;

const selectShown = perDialect(
  (dialect) => `SELECT runs.id, runs.changed_at, runs.state FROM runs
    JOIN arrivals ON arrivals.id = runs.arrival_id AND arrivals.run_id = runs.id
    WHERE runs.id = ? AND NOT ${isReplaced(dialect)}`,
);

/** `known`: cases that were read before, by run; they are read again where the run has changed. */
export async function restingCases(
  store: Store,
  states: readonly RunState[],
  limit: number,
  known: ReadonlyMap<string, RestingCase>,
): Promise<readonly RestingCase[]> {
  const ids = await store.look(() => restingIds(store, states, limit));
  const found: RestingCase[] = [];
  for (let at = 0; at < ids.length; at += PART) {
    found.push(...(await store.look(() => casesOf(store, ids.slice(at, at + PART), states, known))));
    // Other work of the process goes first.
    await setImmediate();
  }
  return found;
}

/** From the indexes alone, newest first. */
function* restingIds(store: Store, states: readonly RunState[], limit: number): Steps<readonly string[]> {
  const found: string[] = [];
  for (const state of new Set(states)) {
    const index = store.dialect.indexedBy(runIndexOf(state, {}).index);
    for (const [id] of yield* cells<readonly [string]>(
      `SELECT id FROM runs ${index} WHERE runs.state = ${literal(state)} ORDER BY id DESC LIMIT ?`,
      limit,
    ))
      found.push(id);
  }
  return found.sort((a, b) => (a < b ? 1 : -1)).slice(0, limit);
}

function* casesOf(
  store: Store,
  ids: readonly string[],
  states: readonly RunState[],
  known: ReadonlyMap<string, RestingCase>,
): Steps<readonly RestingCase[]> {
  const found = yield* rowEach<readonly [id: string, changedAt: string, state: RunState]>(
    selectShown(store),
    ["text"],
    ids.map((id) => [id]),
  );
  const shown = found.filter((one) => one !== undefined).filter(([, , state]) => states.includes(state));
  const isKnown = ([id, changedAt]: readonly [string, string, RunState]) => known.get(id)?.changedAt === changedAt;
  const read = yield* readCases(
    store,
    shown.filter((one) => !isKnown(one)).map(([id]) => id),
  );
  return shown.flatMap((one) => (isKnown(one) ? known.get(one[0]) : read.get(one[0])) ?? []);
}

function* readCases(store: Store, ids: readonly string[]): Steps<ReadonlyMap<string, RestingCase>> {
  const found = yield* rowEach<CaseCells>(
    selectCase(store),
    ["text"],
    ids.map((id) => [id]),
  );
  const rows = found.filter((one) => one !== undefined);
  const bindings = yield* bindingsOf([...new Set(rows.map(([, , , , bindingId]) => bindingId))]);
  return new Map(rows.map((one) => [one[0], caseOf(one, bindings.get(one[4]))]));
}

function caseOf(
  [run, state, arrivalId, drop, , changedAt, code, message, hint]: CaseCells,
  binding: Binding | undefined,
): RestingCase {
  const { name = "", version = "" } = binding?.mapper ?? {};
  const { trigger = "" } = binding ?? {};
  const mapper = `${name} ${version}`;
  return { run, arrivalId, state, drop, trigger, mapper, changedAt, code, message: message ?? "", hint };
}

function* bindingsOf(ids: readonly number[]): Steps<ReadonlyMap<number, Binding>> {
  const found = yield* rowEach<readonly [number, string]>(
    "SELECT id, json FROM bindings WHERE id = ?",
    ["bigint"],
    ids.map((id) => [id]),
  );
  return new Map(found.flatMap((one) => (one === undefined ? [] : [[one[0], JSON.parse(one[1]) as Binding]])));
}
