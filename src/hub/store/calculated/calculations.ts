/** Calculations as people see them: those that ran, and the dates that wait. */
import { apartFor, change, type Database, listed, type Row, row, rows, type Steps } from "../database.ts";
import { inSteps, PURGE_ROWS } from "../queue.ts";
import type { Listing, Page } from "../records.ts";
import { number } from "../structure-rows.ts";
import { Where } from "../where.ts";
import { type Calculation, type CalculationState, calculationOfRow } from "./calculation-rows.ts";
import type { DueCause } from "./marks.ts";

export interface CalculationsFilter {
  readonly ids?: readonly number[] | undefined;
  readonly variableIds?: readonly number[] | undefined;
  readonly states?: readonly CalculationState[] | undefined;
  /** Started then or later. */
  readonly sinceMs?: number | undefined;
}

/** Dates that wait to be calculated. */
export interface DueInterval {
  readonly variableId: number;
  /** Null: they are dates of the calculated variable itself. */
  readonly inputId: number | null;
  readonly fromMs: number;
  readonly toMs: number;
  readonly markedMs: number;
  readonly cause: DueCause;
}

/** Of all accounts. */
export interface CalculationCounts {
  /** Intervals. */
  readonly waiting: number;
  /** When the longest waiting one was marked; null when none waits. */
  readonly oldestMs: number | null;
  readonly running: number;
  /** Variables with dates that a failed calculation left as they were. */
  readonly failed: number;
}

export interface CalculationsStore {
  /** The newest first. */
  list(accountId: number, filter: CalculationsFilter, page: Page): Promise<Listing<Calculation>>;
  /** By variable, in order of dates. */
  due(accountId: number, variableIds?: readonly number[]): Promise<readonly DueInterval[]>;
  counts(): Promise<CalculationCounts>;
  /** Removes calculations that ended before, except the last one of each variable. In small transactions. */
  purge(beforeMs: number): Promise<void>;
}

const NEWEST_FIRST = { columns: "*", from: "calculation", order: "id DESC" };

export function createCalculationsStore(database: Database): CalculationsStore {
  const { dialect } = database;
  return {
    list(accountId, { ids, variableIds, states, sinceMs }, page) {
      const where = new Where(dialect)
        .equal("account_id", accountId)
        .among("id", ids)
        .among("variable_id", variableIds)
        .among("state", states);
      if (sinceMs !== undefined) where.condition({ sql: "started_ms >= ?", values: [sinceMs] });
      return listed(apartFor(database, accountId, [states, sinceMs]), NEWEST_FIRST, where, page, calculationOfRow);
    },
    due: (accountId, variableIds) =>
      database.ask(function* () {
        const where = new Where(dialect).equal("account_id", accountId).among("variable_id", variableIds);
        const sql = `SELECT * FROM calculation_due ${where.sql} ORDER BY variable_id, from_ms, id`;
        return (yield* rows(sql, ...where.values)).map(dueOf);
      }),
    counts: () => database.ask(countsOf),
    purge: (beforeMs) => inSteps(database, () => change(FORGET, beforeMs)),
  };
}

const LATER = `SELECT 1 FROM calculation AS later WHERE later.account_id = calculation.account_id
  AND later.variable_id = calculation.variable_id AND later.id > calculation.id`;
const FORGET = `DELETE FROM calculation WHERE id IN (SELECT id FROM calculation
  WHERE state IN ('done', 'failed') AND finished_ms < ? AND EXISTS (${LATER}) LIMIT ${PURGE_ROWS})`;

function* countsOf(): Steps<CalculationCounts> {
  const found = yield* row(
    `SELECT (SELECT count(*) FROM calculation_due) AS waiting,
      (SELECT min(marked_ms) FROM calculation_due) AS oldest,
      (SELECT count(*) FROM calculation WHERE state IN ('running', 'waiting', 'storing')) AS running,
      (SELECT count(*) FROM (SELECT variable_id FROM calculation_missed UNION
        SELECT variable_id FROM calculation WHERE state = 'failed' AND NOT EXISTS (${LATER})) AS left_over) AS failed`,
  );
  const count = (name: string) => Number(found?.[name]);
  const [waiting, running, failed] = [count("waiting"), count("running"), count("failed")];
  return { waiting, running, failed, oldestMs: number(found?.["oldest"]) };
}

function dueOf(one: Row): DueInterval {
  return {
    variableId: Number(one["variable_id"]),
    inputId: number(one["input_id"]),
    fromMs: Number(one["from_ms"]),
    toMs: Number(one["to_ms"]),
    markedMs: Number(one["marked_ms"]),
    cause: String(one["cause"]) as DueCause,
  };
}
