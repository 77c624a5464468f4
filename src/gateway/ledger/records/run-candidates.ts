/**
 * Goes through runs of some states, of a trigger or with a target, newest first and in parts, for a condition on their
 * files. Several indexes are read side by side; a part ends where the first of them ends.
 */
import type { RunState } from "../../model.ts";
import { runStatesThat } from "../../states.ts";
import type { TargetKey } from "../ledger.ts";
import { digestOf } from "./lanes.ts";
import { literal, literals, runIndexOf } from "./run-indexes.ts";
import { row, rowEach, rows, type Steps, type Store, type Value } from "./store.ts";

export interface Candidates {
  readonly states: readonly RunState[];
  /** Whether these are all states. */
  readonly isAnyState: boolean;
  /** Null: of any trigger. */
  readonly bindings: readonly number[] | null;
  /** Of targets; null: with any. */
  readonly digests: readonly bigint[] | null;
}

/** On `arrivals`. */
export interface Condition {
  readonly where: string;
  readonly values: readonly Value[];
}

/** Where the candidates come from, in the order of their ids. */
interface Source {
  readonly from: string;
  /** On the candidates, as the index has them. */
  readonly where: string;
  readonly values: readonly Value[];
}

/** A trigger has a binding for each change of its settings or its mapper. */
const BINDINGS_MAX = 20;
/** Nearly all runs come to these states, so that the index of a trigger finds more in its first entries. */
const USUAL_STATES = runStatesThat(({ isAccepted, needsAttention }) => isAccepted && !needsAttention);

export function* candidatesIn(
  store: Store,
  candidates: Candidates,
  condition: Condition,
  at: { readonly after: string | null; readonly size: number; readonly limit: number },
): Steps<{ readonly found: readonly string[]; readonly next: string | null }> {
  const found: string[] = [];
  /** Below it, some source was not read. */
  let readTo = "";
  for (const source of sourcesOf(store, candidates)) {
    const part = yield* partOf(source, candidates, condition, at);
    found.push(...part.found);
    if (part.readTo > readTo) readTo = part.readTo;
  }
  // A run may have several of the targets.
  const whole = [...new Set(found)].filter((id) => id >= readTo).sort((a, b) => (a < b ? 1 : -1));
  const taken = whole.slice(0, at.limit);
  const end = taken.length < whole.length ? (taken.at(-1) ?? readTo) : readTo;
  return { found: taken, next: end === "" ? null : end };
}

/** The digests of those of the targets that some run has. */
export function* knownDigests(targets: readonly TargetKey[]): Steps<readonly bigint[]> {
  const digests = targets.map(digestOf);
  const found = yield* rowEach<readonly unknown[]>(
    "SELECT 1 FROM run_targets WHERE digest = ?",
    ["bigint"],
    digests.map((digest) => [digest]),
  );
  return digests.filter((_, at) => found[at] !== undefined);
}

function sourcesOf({ dialect }: Store, { states, bindings, digests }: Candidates): readonly Source[] {
  if (digests !== null)
    return digests.map((digest) => ({
      from: "run_targets JOIN runs ON runs.id = run_targets.run_id",
      where: "run_targets.digest = ?",
      values: [digest],
    }));
  const areUsual = states.some((state) => USUAL_STATES.includes(state));
  if (bindings !== null && areUsual && bindings.length <= BINDINGS_MAX)
    return bindings.map((id) => ({
      from: `runs ${dialect.indexedBy("runs_binding")}`,
      where: "runs.binding_id = ?",
      values: [id],
    }));
  return states.map((state) => ({
    from: `runs ${dialect.indexedBy(runIndexOf(state, {}).index)}`,
    where: `runs.state = ${literal(state)}`,
    values: [],
  }));
}

function* partOf(
  { from, where, values }: Source,
  { states, isAnyState, bindings }: Candidates,
  condition: Condition,
  { after, size, limit }: { readonly after: string | null; readonly size: number; readonly limit: number },
): Steps<{ readonly found: readonly string[]; readonly readTo: string }> {
  const below = after === null ? "" : " AND runs.id < ?";
  const inner = (columns: string) =>
    `SELECT ${columns} FROM ${from} WHERE ${where}${below} ORDER BY runs.id DESC LIMIT ?`;
  const given = [...values, ...(after === null ? [] : [after]), size];
  const end = yield* row<{ last: string | null; n: number }>(
    `SELECT min(id) AS last, count(*) AS n FROM (${inner("runs.id")}) AS part`,
    ...given,
  );
  if (end === undefined || end.n === 0) return { found: [], readTo: "" };
  const more = [
    ...(isAnyState ? [] : [` AND part.state IN (${literals(states)})`]),
    ...(bindings === null ? [] : [` AND part.binding_id IN (${bindings.length === 0 ? "NULL" : bindings.join(", ")})`]),
  ].join("");
  const found = yield* rows<{ id: string }>(
    `SELECT part.id FROM (${inner("runs.id, runs.arrival_id, runs.state, runs.binding_id")}) AS part
      JOIN arrivals ON arrivals.id = part.arrival_id AND arrivals.run_id = part.id
      WHERE ${condition.where}${more} ORDER BY part.id DESC LIMIT ?`,
    ...given,
    ...condition.values,
    limit,
  );
  const ids = found.map(({ id }) => id);
  if (ids.length === limit) return { found: ids, readTo: ids.at(-1) ?? "" };
  return { found: ids, readTo: end.n === size ? (end.last ?? "") : "" };
}
