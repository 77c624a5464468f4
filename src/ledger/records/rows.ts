/** Rows of the tables, and the nouns that they become. */
import type {
  Arrival,
  ArrivalState,
  Batch,
  BatchState,
  Binding,
  FinishPlan,
  LedgerEvent,
  Outcome,
  Reason,
  Replay,
  Run,
  RunState,
} from "../../model.ts";

export interface ArrivalRow {
  readonly id: number;
  readonly parent_id: number | null;
  readonly drop_name: string;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  readonly sha256: string | null;
  readonly state: ArrivalState;
  readonly reason: string;
  readonly seen_at: string;
  readonly changed_at: string;
  readonly gone_at: string | null;
}

export function toArrival(row: ArrivalRow): Arrival {
  return {
    id: row.id,
    parentId: row.parent_id,
    drop: row.drop_name,
    path: row.path,
    size: row.size,
    mtime: row.mtime,
    sha256: row.sha256,
    state: row.state,
    reason: row.reason,
    seenAt: row.seen_at,
    changedAt: row.changed_at,
    goneAt: row.gone_at,
  };
}

/** Columns in the order of `ArrivalCells`. */
export const ARRIVAL_COLUMNS =
  "id, parent_id, drop_name, path, size, mtime, sha256, state, reason, seen_at, changed_at, gone_at";

/** A row as an array: as an object it costs several times as much memory, and a drop may have a hundred thousand. */
export type ArrivalCells = readonly [
  id: number,
  parentId: number | null,
  drop: string,
  path: string,
  size: number,
  mtime: string,
  sha256: string | null,
  state: ArrivalState,
  reason: string,
  seenAt: string,
  changedAt: string,
  goneAt: string | null,
];

export function arrivalOfCells(cells: ArrivalCells): Arrival {
  const [id, parentId, drop, path, size, mtime, sha256, state, reason, seenAt, changedAt, goneAt] = cells;
  return { id, parentId, drop, path, size, mtime, sha256, state, reason, seenAt, changedAt, goneAt };
}

/** With the binding joined. */
export interface RunRow {
  readonly id: string;
  readonly arrival_id: number;
  readonly drop_name: string;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  readonly sha256: string | null;
  readonly binding: string;
  readonly lane: string;
  readonly state: RunState;
  readonly reason: string | null;
  readonly mapped: number;
  readonly accepted: number;
  readonly stored: number;
  readonly rejected: number;
  readonly discarded: number;
  readonly refused: number;
  readonly target_kinds: string;
  readonly finish_plan: string | null;
  readonly finished_at: string | null;
  readonly settled: number;
  readonly replay: string | null;
  readonly created_at: string;
  readonly changed_at: string;
  /** Where many nodes share the ledger. */
  readonly node?: string | null;
}

export const SELECT_RUN =
  "SELECT runs.*, bindings.json AS binding FROM runs JOIN bindings ON bindings.id = runs.binding_id";

export function toRun(row: RunRow): Run {
  return {
    id: row.id,
    arrivalId: row.arrival_id,
    drop: row.drop_name,
    path: row.path,
    size: row.size,
    mtime: row.mtime,
    sha256: row.sha256,
    binding: bindingOf(row.binding),
    lane: row.lane,
    state: row.state,
    reason: fromJson<Reason>(row.reason),
    points: {
      mapped: row.mapped,
      accepted: row.accepted,
      stored: row.stored,
      rejected: row.rejected,
      discarded: row.discarded,
    },
    finishPlan: fromJson<FinishPlan>(row.finish_plan),
    finishedAt: row.finished_at,
    replay: fromJson<Replay>(row.replay),
    node: row.node ?? null,
    createdAt: row.created_at,
    changedAt: row.changed_at,
  };
}

/** Bindings repeat from run to run, and nobody changes one. */
const bindings = new Map<string, Binding>();
const BINDINGS_MAX = 100;

function bindingOf(json: string): Binding {
  const known = bindings.get(json);
  if (known !== undefined) return known;
  const binding = JSON.parse(json) as Binding;
  if (bindings.size >= BINDINGS_MAX) bindings.clear();
  bindings.set(json, binding);
  return binding;
}

export interface BatchRow {
  readonly operation_id: string;
  readonly run_id: string;
  readonly sequence: string;
  readonly offset: number;
  readonly length: number;
  readonly points: number;
  readonly digest: string;
  readonly state: BatchState;
  readonly attempts: number;
  readonly answer: string | null;
  readonly accepted_at: string | null;
  readonly outcome: string | null;
}

export function toBatch(row: BatchRow): Batch {
  return {
    runId: row.run_id,
    operationId: row.operation_id,
    sequence: row.sequence,
    offset: row.offset,
    length: row.length,
    points: row.points,
    digest: row.digest,
    state: row.state,
    attempts: row.attempts,
    answer: row.answer,
    acceptedAt: row.accepted_at,
    outcome: fromJson<Outcome>(row.outcome),
  };
}

export interface EventRow {
  readonly at: string;
  readonly arrival_id: number;
  readonly run_id: string | null;
  readonly operation_id: string | null;
  readonly what: string;
  readonly detail: string;
}

export function toEvent(row: EventRow): LedgerEvent {
  return {
    at: row.at,
    arrivalId: row.arrival_id,
    runId: row.run_id,
    operationId: row.operation_id,
    what: row.what,
    detail: row.detail,
  };
}

function fromJson<T>(text: string | null): T | null {
  return text === null ? null : (JSON.parse(text) as T);
}
