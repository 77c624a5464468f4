/**
 * Rollups: aggregates of days, by variable, zone and month, which spare reading the points of long periods. They are
 * made of what was read before, outside of a transaction: `begin` notes that a variable is going to have them, writers
 * count changes of its points from then on (`watch.ts`), and `save` stores nothing when there was one.
 */
import { change, type Database, insert, type Row, row, rows, type Steps, type StoreDialect } from "../database.ts";
import type { VariableFacts } from "../records.ts";

/** Days of one month. */
export interface Rollup {
  readonly fromMs: number;
  /** Excluded. A day before it that is not in the list has no points. */
  readonly endMs: number;
  /** `src/hub/data/rollups/days.ts` */
  readonly days: Uint8Array;
}

export interface RollupZone {
  /** IANA. */
  readonly zone: string;
  /** Version of the time-zone data. */
  readonly rules: string;
}

/** A period of whole days that a query has read from points. */
export interface ReadSpan {
  readonly variable: VariableFacts;
  /** IANA. */
  readonly zone: string;
  readonly fromMs: number;
  /** Excluded. */
  readonly endMs: number;
}

export interface RollupAsk extends RollupZone {
  readonly variableIds: readonly number[];
  /** Null: open. */
  readonly fromMs: number | null;
  /** Included; null: open. */
  readonly lastMs: number | null;
}

export interface RollupStore {
  /** By variable, in order of date; those that share a moment with the period. */
  read(ask: RollupAsk): Promise<ReadonlyMap<number, readonly Rollup[]>>;
  /** Before the points are read; the number for `save`. Null: there is no such variable. */
  begin(variableId: number, untilMs: number): Promise<number | null>;
  /** False, and nothing was stored: points before `untilMs` have changed since `begin`. */
  save(variableId: number, writes: number, zone: RollupZone, rollups: readonly Rollup[]): Promise<boolean>;
  /** Queries report here what rollups could spare them the next time. */
  report(span: ReadSpan): void;
  /** Sets who receives the reports; without one they are dropped. */
  listen(listener: (span: ReadSpan) => void): void;
}

/** No month is longer, in any zone. */
const MONTH_MAX_MS = 33 * 86_400_000;
const FAR_MS = 8_640_000_000_000_000;

export function createRollupStore(database: Database): RollupStore {
  const { dialect } = database;
  let report: (span: ReadSpan) => void = () => {};
  return {
    async read({ variableIds, zone, rules, fromMs, lastMs }) {
      const [low, high] = [fromMs ?? -FAR_MS, lastMs ?? FAR_MS];
      const found = await database.ask(() =>
        rows(
          `SELECT variable_id, from_ms, end_ms, days FROM rollup WHERE ${dialect.among("variable_id")} AND zone = ?
            AND from_ms BETWEEN ? AND ? AND end_ms > ? AND rules = ? ORDER BY variable_id, from_ms`,
          ...[variableIds, zone, low - MONTH_MAX_MS, high, low, rules],
        ),
      );
      const rollups = new Map<number, Rollup[]>();
      for (const one of found) {
        const id = Number(one["variable_id"]);
        const known = rollups.get(id);
        if (known === undefined) rollups.set(id, [rollupOf(one)]);
        else known.push(rollupOf(one));
      }
      return rollups;
    },
    begin: (variableId, untilMs) => database.write(() => beginning(dialect, variableId, untilMs)),
    save: (variableId, writes, zone, rollups) =>
      database.write(function* () {
        yield* dialect.holdVariable(variableId);
        const noted = yield* row("SELECT writes FROM rolled_up WHERE variable_id = ?", variableId);
        if (noted === undefined || Number(noted["writes"]) !== writes) return false;
        for (const { fromMs, endMs, days } of rollups)
          yield* change(PUT, variableId, zone.zone, fromMs, endMs, zone.rules, days);
        return true;
      }),
    report: (span) => report(span),
    listen(listener) {
      report = listener;
    },
  };
}

function rollupOf(found: Row): Rollup {
  return {
    fromMs: Number(found["from_ms"]),
    endMs: Number(found["end_ms"]),
    days: found["days"] as Uint8Array,
  };
}

const PUT = `INSERT INTO rollup (variable_id, zone, from_ms, end_ms, rules, days) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (variable_id, zone, from_ms) DO UPDATE
  SET end_ms = excluded.end_ms, rules = excluded.rules, days = excluded.days`;

function* beginning(dialect: StoreDialect, variableId: number, untilMs: number): Steps<number | null> {
  yield* dialect.holdVariable(variableId);
  const variable = yield* row("SELECT account_id FROM variable WHERE id = ?", variableId);
  if (variable === undefined) return null;
  const noted = yield* row("SELECT until_ms, writes FROM rolled_up WHERE variable_id = ?", variableId);
  const writes = Number(noted?.["writes"] ?? 0);
  if (noted !== undefined && Number(noted["until_ms"]) >= untilMs) return writes;
  // Writers read the rows that are newer than those they know.
  yield* change("DELETE FROM rolled_up WHERE variable_id = ?", variableId);
  const accountId = Number(variable["account_id"]);
  yield* insert("rolled_up", { account_id: accountId, variable_id: variableId, until_ms: untilMs, writes });
  return writes;
}
