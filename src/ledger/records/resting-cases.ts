/** Runs that need a person, with the facts of their causes. */
import type { Binding, RunState } from "../../model.ts";
import { READINGS_LOST } from "../../model.ts";
import type { RestingCase } from "../file-list.ts";
import { literal, runIndexOf } from "./run-indexes.ts";
import { type Dialect, perDialect, rowEach, rows, type Steps, type Store } from "./store.ts";

/**
 * A newer version of the file has arrived. The sender does not know the outcome of an unconfirmed run, and the newer
 * version may have other dates; and it does not bring lost readings back.
 */
function isReplaced({ jsonField }: Dialect): string {
  return `(arrivals.parent_id IS NULL AND runs.state <> 'unconfirmed'
    AND (runs.reason IS NULL OR ${jsonField("runs.reason", "code")} <> '${READINGS_LOST}')
    AND EXISTS (SELECT 1 FROM arrivals AS later WHERE later.name = arrivals.name AND later.path = arrivals.path
      AND later.drop_name = arrivals.drop_name AND later.parent_id IS NULL AND later.id > arrivals.id
      AND later.state = 'matched'))`;
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

interface CaseRow {
  readonly id: string;
  readonly arrival_id: number;
  readonly drop_name: string;
  readonly binding_id: number;
  readonly changed_at: string;
  readonly code: string | null;
  readonly message: string | null;
  readonly hint: string | null;
}

export function* restingCases(store: Store, states: readonly RunState[], limit: number): Steps<readonly RestingCase[]> {
  const { jsonField, indexedBy } = store.dialect;
  const found: (CaseRow & { readonly state: RunState })[] = [];
  for (const state of new Set(states)) {
    const some = yield* rows<CaseRow>(
      `SELECT runs.id, runs.arrival_id, runs.drop_name, runs.binding_id, runs.changed_at,
          ${jsonField("runs.reason", "code")} AS code, ${jsonField("runs.reason", "message")} AS message,
          ${jsonField("runs.reason", "hint")} AS hint
        FROM runs ${indexedBy(runIndexOf(state, {}).index)}
        JOIN arrivals ON arrivals.id = runs.arrival_id AND arrivals.run_id = runs.id
        WHERE runs.state = ${literal(state)} AND NOT ${isReplaced(store.dialect)}
        ORDER BY runs.id DESC LIMIT ?`,
      limit,
    );
    for (const one of some) found.push({ ...one, state });
  }
  const bindings = yield* bindingsOf([...new Set(found.map(({ binding_id }) => binding_id))]);
  return found
    .sort((a, b) => (a.id < b.id ? 1 : -1))
    .slice(0, limit)
    .map((one) => caseOf(one, bindings.get(one.binding_id)));
}

function caseOf(one: CaseRow & { readonly state: RunState }, binding: Binding | undefined): RestingCase {
  const { id, arrival_id, state, drop_name, changed_at, code, message, hint } = one;
  const { name = "", version = "" } = binding?.mapper ?? {};
  return {
    run: id,
    arrivalId: arrival_id,
    state,
    drop: drop_name,
    trigger: binding?.trigger ?? "",
    mapper: `${name} ${version}`,
    changedAt: changed_at,
    code,
    message: message ?? "",
    hint,
  };
}

function* bindingsOf(ids: readonly number[]): Steps<ReadonlyMap<number, Binding>> {
  const found = yield* rowEach<readonly [number, string]>(
    "SELECT id, json FROM bindings WHERE id = ?",
    ["bigint"],
    ids.map((id) => [id]),
  );
  return new Map(found.flatMap((one) => (one === undefined ? [] : [[one[0], JSON.parse(one[1]) as Binding]])));
}
