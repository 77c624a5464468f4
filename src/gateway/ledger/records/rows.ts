/** Rows of the tables, and their conversion to the nouns of the model. */
import type {
  Arrival,
  ArrivalState,
  Batch,
  BatchState,
  Binding,
  ConfirmClock,
  FinishPlan,
  LedgerEvent,
  MappingFinding,
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
  /** Not among the cells of a poll. */
  readonly expected?: number;
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
    ...(row.expected === 1 ? { isExpected: true } : {}),
  };
}

/** Columns in the order of `ArrivalCells`. */
export const ARRIVAL_COLUMNS =
  "id, parent_id, drop_name, path, size, mtime, sha256, state, reason, seen_at, changed_at, gone_at";

/**
 * A row as an array: as an object it costs several times as much memory, and a drop may have a hundred
 * thousand files.
 */
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

/** A run with the columns that are not facts of a `Run`. */
export interface RunRow {
  readonly run: Run;
  /** The part of the rejected points that the mapper refused. */
  readonly refused: number;
  readonly targetKinds: string;
  readonly settled: boolean;
}

/** Columns in the order of `RunCells`, of runs with their bindings joined. */
export const RUN_COLUMNS = `runs.id, runs.arrival_id, runs.drop_name, runs.path, runs.size, runs.mtime, runs.sha256,
  bindings.json, runs.lane, runs.state, runs.reason, runs.mapped, runs.accepted, runs.stored, runs.rejected,
  runs.discarded, runs.finish_plan, runs.finished_at, runs.replay, runs.node, runs.created_at, runs.changed_at,
  runs.refused, runs.target_kinds, runs.settled, runs.confirm_clock, runs.sender, runs.operation_prefix,
  runs.findings`;

export const SELECT_RUN = `SELECT ${RUN_COLUMNS} FROM runs JOIN bindings ON bindings.id = runs.binding_id`;

/** Number of these columns. */
export const RUN_CELLS = RUN_COLUMNS.split(",").length;

/** A row as an array: an object of so many columns costs several times as much. */
export type RunCells = readonly [
  id: string,
  arrivalId: number,
  drop: string,
  path: string,
  size: number,
  mtime: string,
  sha256: string | null,
  binding: string,
  lane: string,
  state: RunState,
  reason: string | null,
  mapped: number,
  accepted: number,
  stored: number,
  rejected: number,
  discarded: number,
  finishPlan: string | null,
  finishedAt: string | null,
  replay: string | null,
  /** Null where one process owns the ledger. */
  node: string | null,
  createdAt: string,
  changedAt: string,
  refused: number,
  targetKinds: string,
  settled: number,
  confirmClock: string | null,
  sender: string | null,
  operationPrefix: string | null,
  findings: string | null,
  ...more: unknown[],
];

export function toRun(cells: RunCells): Run {
  return {
    id: cells[0],
    arrivalId: cells[1],
    drop: cells[2],
    path: cells[3],
    size: cells[4],
    mtime: cells[5],
    sha256: cells[6],
    binding: bindingOf(cells[7], cells[26], cells[27]),
    lane: cells[8],
    state: cells[9],
    reason: fromJson<Reason>(cells[10]),
    points: {
      mapped: cells[11],
      accepted: cells[12],
      stored: cells[13],
      rejected: cells[14],
      discarded: cells[15],
    },
    findings: fromJson<readonly MappingFinding[]>(cells[28]) ?? [],
    finishPlan: fromJson<FinishPlan>(cells[16]),
    finishedAt: cells[17],
    replay: fromJson<Replay>(cells[18]),
    node: cells[19],
    confirmClock: fromJson<ConfirmClock>(cells[25]),
    createdAt: cells[20],
    changedAt: cells[21],
  };
}

export function toRunRow(cells: RunCells): RunRow {
  return { run: toRun(cells), refused: cells[22], targetKinds: cells[23], settled: cells[24] !== 0 };
}

/** Cached, since what runs share repeats from run to run, and is never changed. */
const shared = new Map<string, Binding>();
const SHARED_MAX = 100;

/** The binding of a run: the part that runs share, and the columns of its own. */
function bindingOf(json: string, sender: string | null, operationPrefix: string | null): Binding {
  const binding = sharedOf(json);
  if (sender === null && operationPrefix === null) return binding;
  return {
    ...binding,
    ...(sender === null ? {} : { sender }),
    ...(operationPrefix === null ? {} : { operationPrefix }),
  };
}

function sharedOf(json: string): Binding {
  const known = shared.get(json);
  if (known !== undefined) return known;
  const binding = JSON.parse(json) as Binding;
  if (shared.size >= SHARED_MAX) shared.clear();
  shared.set(json, binding);
  return binding;
}

/** Columns in the order of `BatchCells`. */
export const BATCH_COLUMNS = `batches.operation_id, batches.run_id, batches.sequence, batches."offset", batches.length,
  batches.points, batches.digest, batches.state, batches.attempts, batches.answer, batches.accepted_at,
  batches.outcome, batches.idempotency_key, batches.repeats`;

/** Number of these columns. */
export const BATCH_CELLS = BATCH_COLUMNS.split(",").length;

export type BatchCells = readonly [
  operationId: string,
  runId: string,
  sequence: string,
  offset: number,
  length: number,
  points: number,
  digest: string,
  state: BatchState,
  attempts: number,
  answer: string | null,
  acceptedAt: string | null,
  outcome: string | null,
  idempotencyKey: string | null,
  repeats: string | null,
];

export function toBatch(cells: BatchCells): Batch {
  return {
    operationId: cells[0],
    runId: cells[1],
    sequence: cells[2],
    offset: cells[3],
    length: cells[4],
    points: cells[5],
    digest: cells[6],
    state: cells[7],
    attempts: cells[8],
    answer: cells[9],
    acceptedAt: cells[10],
    outcome: fromJson<Outcome>(cells[11]),
    idempotencyKey: cells[12] ?? cells[0],
    repeats: cells[13],
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
