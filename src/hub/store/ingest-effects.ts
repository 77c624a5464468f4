/**
 * Further effects of the transaction that applies operations: calculated variables whose inputs got points become due,
 * and calculations whose outputs were stored count them. The watches of an account are read once and remembered until
 * its structure changes, so that a push costs nothing more in an account without any.
 */
import type { Clock } from "#core/clock.ts";
import { graphOf } from "./calculated/calculated.ts";
import { applied, applyFailed } from "./calculated/claims.ts";
import { type DateInterval, intervalsOf, joined, markDue, NEAR_MS } from "./calculated/marks.ts";
import type { ReadingColumns } from "./columns.ts";
import { row, type Steps, type StoreDialect } from "./database.ts";
import { addEvents, type NewEvent, pushOutcomeEvent, wantsPushOutcomes } from "./events/events.ts";
import type { IngestReport, QueuedOperation, WrittenReadings } from "./ingest.ts";
import type { Outcome } from "./operations.ts";
import { type ChangedPoints, RollupWatch } from "./rollups/watch.ts";

/** The watches of an account. Add a field for a further effect of points. */
interface Watched {
  /** The calculated variables that an input triggers. */
  readonly triggered: ReadonlyMap<number, readonly number[]>;
  /** Whether outcomes of pushes become events. */
  readonly outcomes: boolean;
}

interface Touched {
  readonly accountId: number;
  readonly variableId: number;
  intervals: readonly DateInterval[];
}

export type AppliedState = "done" | "failed";

export class IngestEffects {
  readonly #dialect: StoreDialect;
  readonly #clock: Clock;
  readonly #rollups: RollupWatch;
  readonly #watched = new Map<number, Watched>();
  /** By variable. */
  readonly #touched = new Map<number, Touched>();
  #due = new Set<number>();
  #damaged: IngestReport["damaged"] = [];

  constructor(dialect: StoreDialect, clock: Clock) {
    this.#dialect = dialect;
    this.#rollups = new RollupWatch(dialect);
    this.#clock = clock;
  }

  /** Must be called when structure changed. Without an account: of any. */
  forget(accountId?: number): void {
    if (accountId === undefined) this.#watched.clear();
    else this.#watched.delete(accountId);
  }

  /** Begins a transaction; what an earlier one left, which was undone, is dropped. */
  begin(): void {
    this.#touched.clear();
    this.#due = new Set();
    this.#damaged = [];
  }

  /** Notes the variables whose readings were written. */
  written(columns: ReadingColumns, { damaged }: WrittenReadings): void {
    if (damaged.length > 0)
      this.#damaged = [...this.#damaged, ...damaged.map((one) => ({ ...one, refused: one.refused.length }))];
    const { length, variables, variable, atMs } = columns;
    const from = new Float64Array(variables.length).fill(Number.POSITIVE_INFINITY);
    const to = new Float64Array(variables.length).fill(Number.NEGATIVE_INFINITY);
    for (let index = 0; index < length; index += 1) {
      const position = variable[index] ?? 0;
      const at = atMs[index] ?? 0;
      if (at < (from[position] ?? 0)) from[position] = at;
      if (at > (to[position] ?? 0)) to[position] = at;
    }
    const touched = new Map<number, readonly DateInterval[]>();
    const spread = new Set<number>();
    for (const [position, { id, accountId }] of variables.entries()) {
      const [fromMs = 0, toMs = 0] = [from[position], to[position]];
      // A variable whose readings were all discarded.
      if (fromMs > toMs) continue;
      touched.set(position, [{ fromMs, toMs }]);
      if (toMs - fromMs > NEAR_MS && this.#mayTrigger(accountId, id)) spread.add(position);
    }
    if (spread.size > 0)
      for (const [position, dates] of datesOf(columns, spread)) touched.set(position, intervalsOf(dates));
    for (const [position, intervals] of touched) {
      const { id = 0, accountId = 0 } = variables[position] ?? {};
      const known = this.#touched.get(id);
      if (known === undefined) this.#touched.set(id, { accountId, variableId: id, intervals });
      else known.intervals = joined([...known.intervals, ...intervals]);
    }
  }

  /** True until the watches of the account are known. */
  #mayTrigger(accountId: number, variableId: number): boolean {
    return this.#watched.get(accountId)?.triggered.has(variableId) ?? true;
  }

  /** In the transaction, when all is written and the outcomes are known. */
  *applied(operations: readonly QueuedOperation[], outcomes: readonly Outcome[], state: AppliedState): Steps<void> {
    const nowMs = this.#clock.now().epochMilliseconds;
    for (const [accountId, touched] of Map.groupBy(this.#touched.values(), (one) => one.accountId)) {
      yield* this.#rollups.changed(accountId, touched.map(wholeOf));
      const { triggered } = yield* this.#watchedBy(accountId);
      if (triggered.size === 0) continue;
      const marks = touched.flatMap(({ variableId: inputId, intervals }) =>
        (triggered.get(inputId) ?? []).flatMap((variableId) =>
          intervals.map((interval) => ({ variableId, inputId, ...interval, cause: "input" as const })),
        ),
      );
      if (marks.length === 0) continue;
      yield* markDue(this.#dialect, accountId, marks, nowMs);
      this.#due.add(accountId);
    }
    for (const [index, { calculationId }] of operations.entries()) {
      const outcome = outcomes[index];
      if (calculationId === null || outcome === undefined) continue;
      const { stored, replaced, discarded } = outcome;
      const counts = { stored, replaced, discarded: discarded.reduce((sum, { count }) => sum + count, 0) };
      if (state === "done") yield* applied(calculationId, counts, nowMs);
      else yield* applyFailed(calculationId, discarded[0]?.reason ?? "its outputs could not be stored", nowMs);
    }
    yield* this.#pushOutcomes(operations, outcomes, state);
  }

  /** The effects of the transaction, for the main thread; after the commit. */
  report(): IngestReport {
    return { due: [...this.#due], damaged: this.#damaged };
  }

  *#pushOutcomes(
    operations: readonly QueuedOperation[],
    outcomes: readonly Outcome[],
    state: AppliedState,
  ): Steps<void> {
    const events: NewEvent[] = [];
    for (const [index, operation] of operations.entries()) {
      const outcome = outcomes[index];
      // A calculation has events of its own.
      if (operation.calculationId !== null || outcome === undefined) continue;
      const watched = yield* this.#watchedBy(operation.accountId);
      if (watched.outcomes) events.push(pushOutcomeEvent(operation, outcome, state));
    }
    yield* addEvents(events);
  }

  *#watchedBy(accountId: number): Steps<Watched> {
    const known = this.#watched.get(accountId);
    if (known !== undefined) return known;
    const edges = (yield* graphOf(accountId)).filter(({ isTrigger }) => isTrigger);
    const triggered = new Map(
      Map.groupBy(edges, ({ inputId }) => inputId)
        .entries()
        .map(([inputId, users]) => [inputId, users.map(({ calculatedId }) => calculatedId)] as const),
    );
    const watched = { triggered, outcomes: yield* wantsPushOutcomes(accountId) };
    this.#watched.set(accountId, watched);
    return watched;
  }
}

/** Intervals are in order of date. */
function wholeOf({ variableId, intervals }: Touched): ChangedPoints {
  return { variableId, fromMs: intervals[0]?.fromMs ?? 0, toMs: intervals.at(-1)?.toMs ?? 0 };
}

/** The dates of the readings of these variables, by their positions. */
function datesOf(
  { length, variable, atMs }: ReadingColumns,
  positions: ReadonlySet<number>,
): ReadonlyMap<number, number[]> {
  const dates = new Map<number, number[]>();
  for (const position of positions) dates.set(position, []);
  for (let index = 0; index < length; index += 1) dates.get(variable[index] ?? 0)?.push(atMs[index] ?? 0);
  return dates;
}

/** The variable whose outputs a calculation stores; null: it went with its definition. */
export function* outputOf(accountId: number, calculationId: number): Steps<number | null> {
  const found = yield* row(
    "SELECT variable_id FROM calculation WHERE id = ? AND account_id = ?",
    ...[calculationId, accountId],
  );
  return found === undefined ? null : Number(found["variable_id"]);
}
