/**
 * Runs of calculations: who claims what is due, how far a run is, and what became of it. A run belongs to a node for
 * the time of its lease; who takes it over continues where it was.
 */
import { change, type Database, insert, type Row, row, rows, type Steps } from "../database.ts";
import { addEvents } from "../events/events.ts";
import { number } from "../structure-rows.ts";
import { graphOf } from "./calculated.ts";
import { type Calculation, calculationOfRow, type DueDates } from "./calculation-rows.ts";
import type { DueCause } from "./marks.ts";

export interface ClaimTerms {
  readonly node: string;
  readonly nowMs: number;
  readonly untilMs: number;
  readonly defaultVersion: string;
  /** Whether the node calculates nothing else. */
  readonly isAlone: boolean;
  /** Whether the claim waits for the lane of the account while another transaction holds it. */
  readonly waits: boolean;
}

/** Takeovers without progress, from which on a run may be what ends the nodes: it then runs alone. */
export const SUSPICIOUS_TAKEOVERS = 2;
/** After so many the run has failed. */
export const TAKEOVERS_MAX = 5;

/** A variable that waits or is calculated, and since when its oldest change was known. */
export interface MarkedVariable {
  readonly id: number;
  readonly markedMs: number;
}

/** Variables that may be calculated, the first one first. */
export type ChooseReady = (
  graph: ReadonlyMap<number, readonly number[]>,
  due: readonly MarkedVariable[],
  busy: readonly MarkedVariable[],
  nowMs: number,
) => Iterable<number>;

export interface BegunPart {
  /** Of all outputs. */
  readonly beginMs: number;
  readonly endMs: number;
  readonly partMs: number;
}

export interface PassedPart {
  readonly cursorMs: number;
  /** Of its rows: those that were handed over, and those that are dropped. */
  readonly outputs: number;
  readonly dropped: number;
}

export interface ClaimStore {
  /** Accounts in which something waits for a node, the longest waiting first. */
  waitingAccounts(nowMs: number): Promise<readonly number[]>;
  /**
   * Takes over a run whose lease has ended, or begins one. Null: nothing can begin now; "alone": a run must be taken
   * over by a node that calculates nothing else; "held": another transaction holds the lane.
   */
  claim(accountId: number, terms: ClaimTerms, choose: ChooseReady): Promise<Calculation | "alone" | "held" | null>;
  /** False: the run belongs to another node now, or is over. This and the next six methods are of its owner. */
  renew(id: number, node: string, untilMs: number): Promise<boolean>;
  begin(id: number, node: string, part: BegunPart): Promise<boolean>;
  /** A part without rows to store. */
  pass(id: number, node: string, part: PassedPart): Promise<boolean>;
  /** No part is left. */
  complete(run: Calculation, node: string, message: string | null, nowMs: number): Promise<boolean>;
  fail(run: Calculation, node: string, message: string, nowMs: number): Promise<boolean>;
  /** The owner ends in peace; any node may take the run over. */
  leave(id: number, node: string): Promise<void>;
  /** A node tries again from that time on. */
  wait(id: number, node: string, message: string, nextMs: number): Promise<boolean>;
  /** The operation of a part was accepted; `sent`: operations before it. Nothing happens the second time. */
  sent(id: number, sent: number, part: PassedPart): Promise<void>;
  /** For the only node of a store: what runs or waits is free at once. */
  free(): Promise<void>;
}

const OPEN = "state IN ('running', 'waiting', 'storing')";
const OWNED = "id = ? AND node = ? AND state = 'running'";

export function createClaimStore(database: Database): ClaimStore {
  const { dialect } = database;
  const own = async (sql: string, ...values: (string | number | null)[]) => (await database.run(sql, ...values)) > 0;
  return {
    waitingAccounts: (nowMs) =>
      database.ask(function* () {
        const sql = `SELECT account_id, min(marked_ms) AS since FROM (
            SELECT account_id, marked_ms FROM calculation_due UNION ALL
            SELECT account_id, marked_ms FROM calculation WHERE state IN ('running', 'waiting') AND lease_ms <= ?
          ) AS waiting GROUP BY account_id ORDER BY since, account_id`;
        return (yield* rows(sql, nowMs)).map((one) => Number(one["account_id"]));
      }),
    claim: (accountId, terms, choose) =>
      database.write(function* () {
        // Marks are written by the holder of the lane as well.
        if (terms.waits) yield* dialect.holdLane(accountId);
        else if (!(yield* dialect.tryLane(accountId))) return "held";
        return (yield* takeOver(accountId, terms)) ?? (yield* start(accountId, terms, choose));
      }),
    renew: (id, node, untilMs) => own(`UPDATE calculation SET lease_ms = ? WHERE ${OWNED}`, untilMs, id, node),
    begin: (id, node, { beginMs, endMs, partMs }) =>
      own(
        `UPDATE calculation SET begin_ms = coalesce(begin_ms, ?), end_ms = ?, part_ms = ? WHERE ${OWNED}`,
        ...[beginMs, endMs, partMs, id, node],
      ),
    pass: (id, node, { cursorMs, dropped }) =>
      own(
        `UPDATE calculation SET cursor_ms = ?, part_ms = NULL, takeovers = 0, dropped = dropped + ? WHERE ${OWNED}`,
        ...[cursorMs, dropped, id, node],
      ),
    complete: ({ id, accountId }, node, message, nowMs) =>
      database.write(function* () {
        // Events are numbered by the holder of the lane.
        yield* dialect.holdLane(accountId);
        const sql = `UPDATE calculation SET parts = sent, message = ?,
          state = CASE WHEN applied >= sent THEN 'done' ELSE 'storing' END,
          finished_ms = CASE WHEN applied >= sent THEN CAST(? AS BIGINT) END WHERE ${OWNED}`;
        if ((yield* change(sql, message, nowMs, id, node)) === 0) return false;
        yield* ended(id, nowMs);
        return true;
      }),
    fail: ({ id, accountId }, node, message, nowMs) =>
      database.write(function* () {
        yield* dialect.holdLane(accountId);
        const sql = `UPDATE calculation SET state = 'failed', message = ?, finished_ms = ? WHERE ${OWNED}`;
        if ((yield* change(sql, message, nowMs, id, node)) === 0) return false;
        yield* ended(id, nowMs);
        return true;
      }),
    async leave(id, node) {
      const sql = `UPDATE calculation SET state = 'waiting', lease_ms = 0, takeovers = 0 WHERE ${OWNED}`;
      await database.run(sql, id, node);
    },
    wait: (id, node, message, nextMs) =>
      own(
        `UPDATE calculation SET state = 'waiting', message = ?, lease_ms = ?, takeovers = 0 WHERE ${OWNED}`,
        ...[message, nextMs],
        id,
        node,
      ),
    async sent(id, sent, { cursorMs, outputs, dropped }) {
      const sql = `UPDATE calculation SET sent = sent + 1, cursor_ms = ?, part_ms = NULL, takeovers = 0,
        outputs = outputs + ?, dropped = dropped + ? WHERE id = ? AND sent = ? AND state IN ('running', 'waiting')`;
      await database.run(sql, cursorMs, outputs, dropped, id, sent);
    },
    async free() {
      await database.run("UPDATE calculation SET lease_ms = 0 WHERE state IN ('running', 'waiting')");
    },
  };
}

function* takeOver(
  accountId: number,
  { node, nowMs, untilMs, isAlone }: ClaimTerms,
): Steps<Calculation | "alone" | null> {
  const left = yield* row(
    `SELECT id, state, takeovers FROM calculation
      WHERE account_id = ? AND state IN ('running', 'waiting') AND lease_ms <= ? ORDER BY id LIMIT 1`,
    ...[accountId, nowMs],
  );
  if (left === undefined) return null;
  const id = Number(left["id"]);
  // A node that ends in peace, or waits for an engine, leaves its run waiting.
  const takeovers = left["state"] === "running" ? Number(left["takeovers"]) + 1 : 0;
  if (takeovers > TAKEOVERS_MAX) {
    const sql = "UPDATE calculation SET state = 'failed', message = ?, finished_ms = ? WHERE id = ?";
    yield* change(sql, ENDED_NODES, nowMs, id);
    yield* ended(id, nowMs);
    return null;
  }
  if (takeovers >= SUSPICIOUS_TAKEOVERS && !isAlone) return "alone";
  yield* change(
    `UPDATE calculation SET state = 'running', node = ?, lease_ms = ?, attempts = attempts + 1, takeovers = ?
      WHERE id = ?`,
    ...[node, untilMs, takeovers, id],
  );
  return yield* calculationOf(id);
}

const ENDED_NODES =
  `the hub ended ${TAKEOVERS_MAX + 1} times while it calculated the same part, probably for lack of memory: let the ` +
  "formula read less (a shorter period, a granularity), or give the hub more memory, and force an update";

function* start(
  accountId: number,
  { node, nowMs, untilMs, defaultVersion }: ClaimTerms,
  choose: ChooseReady,
): Steps<Calculation | null> {
  const waiting = yield* rows(
    `SELECT variable_id, min(marked_ms) AS marked_ms FROM calculation_due WHERE account_id = ?
      GROUP BY variable_id ORDER BY min(marked_ms), variable_id`,
    accountId,
  );
  if (waiting.length === 0) return null;
  const open = yield* rows(
    `SELECT variable_id, marked_ms FROM calculation WHERE account_id = ? AND ${OPEN}`,
    accountId,
  );
  const graph = new Map<number, number[]>();
  for (const { calculatedId, inputId } of yield* graphOf(accountId))
    graph.set(calculatedId, [...(graph.get(calculatedId) ?? []), inputId]);
  const marked = (one: Row) => ({ id: Number(one["variable_id"]), markedMs: Number(one["marked_ms"]) });
  const [variableId] = choose(graph, waiting.map(marked), open.map(marked), nowMs);
  if (variableId === undefined) return null;
  const due = yield* rows("SELECT * FROM calculation_due WHERE variable_id = ? ORDER BY from_ms", variableId);
  yield* change("DELETE FROM calculation_due WHERE variable_id = ?", variableId);
  const dates = due.map(datesOf);
  const id = yield* insert("calculation", {
    account_id: accountId,
    variable_id: variableId,
    state: "running",
    from_ms: Math.min(...dates.map(([, fromMs]) => fromMs)),
    to_ms: Math.max(...dates.map(([, , toMs]) => toMs)),
    due: JSON.stringify(dates),
    default_version: defaultVersion,
    node,
    lease_ms: untilMs,
    marked_ms: Math.min(...due.map((one) => Number(one["marked_ms"]))),
    started_ms: nowMs,
    attempts: 1,
  });
  return yield* calculationOf(id);
}

function datesOf(one: Row): DueDates {
  const cause = String(one["cause"]) as DueCause;
  return [number(one["input_id"]), Number(one["from_ms"]), Number(one["to_ms"]), cause];
}

function* calculationOf(id: number): Steps<Calculation | null> {
  const found = yield* row("SELECT * FROM calculation WHERE id = ?", id);
  return found === undefined ? null : calculationOfRow(found);
}

/** Counts of an applied operation. */
export interface AppliedCounts {
  readonly stored: number;
  readonly replaced: number;
  readonly discarded: number;
}

/** For use inside the transaction that applies an operation of the calculation, as its last statements. */
export function* applied(
  calculationId: number,
  { stored, replaced, discarded }: AppliedCounts,
  nowMs: number,
): Steps<void> {
  const changed = yield* change(
    `UPDATE calculation SET stored = stored + ?, replaced = replaced + ?, discarded = discarded + ?,
      applied = applied + 1 WHERE id = ?`,
    ...[stored, replaced, discarded, calculationId],
  );
  if (changed === 0) return;
  const sql = `UPDATE calculation SET state = 'done', finished_ms = ?
    WHERE id = ? AND state = 'storing' AND parts <= applied`;
  if ((yield* change(sql, nowMs, calculationId)) > 0) yield* ended(calculationId, nowMs);
}

/** For use inside the transaction that records the failure of such an operation, as its last statements. */
export function* applyFailed(calculationId: number, message: string, nowMs: number): Steps<void> {
  const sql = `UPDATE calculation SET state = 'failed', message = ?, finished_ms = ? WHERE id = ? AND ${OPEN}`;
  if ((yield* change(sql, message, nowMs, calculationId)) > 0) yield* ended(calculationId, nowMs, false);
}

/** A calculation is over; `hasHandedOver`: what it handed over is stored, or will be. */
function* ended(id: number, nowMs: number, hasHandedOver = true): Steps<void> {
  const run = yield* calculationOf(id);
  if (run === null) return;
  if (run.state === "failed") yield* keepMissed(run, hasHandedOver, nowMs);
  if (run.state === "done") yield* releaseMissed(run, nowMs);
  yield* addCalculationEvent(id, nowMs);
}

// The event of a calculation that is over.

/** For use inside the write that ends it; adds nothing while the calculation is open. */
function* addCalculationEvent(id: number, nowMs: number): Steps<void> {
  const found = yield* row(
    `SELECT calculation.*, variable.name, variable.source_id, source.site_id FROM calculation
      JOIN variable ON variable.id = calculation.variable_id JOIN source ON source.id = variable.source_id
      WHERE calculation.id = ? AND calculation.state IN ('done', 'failed')`,
    id,
  );
  if (found === undefined) return;
  const { accountId, variableId, state, message, defaultVersion, ...counts } = calculationOfRow(found);
  const isFailure = state === "failed";
  const { outputs, stored, replaced, discarded } = counts;
  yield* addEvents([
    {
      accountId,
      type: isFailure ? "calculation.failed" : "calculation.recalculated",
      subject: { kind: "variable", id: variableId, name: String(found["name"]) },
      atMs: nowMs,
      state,
      isFailure,
      siteId: Number(found["site_id"]),
      sourceId: Number(found["source_id"]),
      variableId,
      facts: { calculationId: id, defaultVersion, outputs, stored, replaced, discarded, message },
    },
  ]);
}

// Dates of outputs that a failed calculation left as they were: they are due again with the next success of their
// variable, since nothing else would ever calculate them.

/**
 * Keeps the dates that a failed run did not hand over, or all of them where an operation could not be stored: one
 * interval a variable.
 */
function* keepMissed(run: Calculation, hasHandedOver: boolean, nowMs: number): Steps<void> {
  const { accountId, variableId, cursorMs, beginMs, endMs } = run;
  const restMs = hasHandedOver && cursorMs !== null ? cursorMs + 1 : null;
  const before = yield* takeMissed(variableId);
  const fromMs = restMs ?? beginMs ?? run.fromMs;
  const toMs = endMs ?? run.toMs;
  yield* change(
    "INSERT INTO calculation_missed (variable_id, account_id, from_ms, to_ms, failed_ms) VALUES (?, ?, ?, ?, ?)",
    ...[variableId, accountId],
    Math.min(fromMs, before?.fromMs ?? fromMs),
    Math.max(toMs, before?.toMs ?? toMs),
    before?.failedMs ?? nowMs,
  );
}

/** Makes them due, unless the run that succeeded had calculated them. */
function* releaseMissed({ accountId, variableId, due }: Calculation, nowMs: number): Steps<void> {
  const missed = yield* takeMissed(variableId);
  if (missed === null) return;
  const { fromMs, toMs } = missed;
  if (due.some(([inputId, dueMs, untilMs]) => inputId === null && dueMs <= fromMs && untilMs >= toMs)) return;
  yield* insert("calculation_due", {
    ...{ account_id: accountId, variable_id: variableId, input_id: null, from_ms: fromMs, to_ms: toMs },
    ...{ marked_ms: nowMs, cause: "force" },
  });
}

function* takeMissed(variableId: number) {
  const found = yield* row("SELECT * FROM calculation_missed WHERE variable_id = ?", variableId);
  if (found === undefined) return null;
  yield* change("DELETE FROM calculation_missed WHERE variable_id = ?", variableId);
  return { fromMs: Number(found["from_ms"]), toMs: Number(found["to_ms"]), failedMs: Number(found["failed_ms"]) };
}
