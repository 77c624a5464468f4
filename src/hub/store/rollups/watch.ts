/** Removes rollups in the transactions that change points. All of these hold the lane of the account. */
import { change, rows, type Steps, type StoreDialect } from "../database.ts";

/** From the first to the last changed date, both included. */
export interface ChangedPoints {
  readonly variableId: number;
  readonly fromMs: number;
  readonly toMs: number;
}

/** For use inside a write. */
export function* dropRollups(dialect: StoreDialect, changed: readonly ChangedPoints[]): Steps<void> {
  if (changed.length === 0) return;
  const ids = changed.map(({ variableId }) => variableId);
  const fromMs = changed.reduce((least, one) => Math.min(least, one.fromMs), Number.POSITIVE_INFINITY);
  const toMs = changed.reduce((most, one) => Math.max(most, one.toMs), Number.NEGATIVE_INFINITY);
  yield* change(`UPDATE rolled_up SET writes = writes + 1 WHERE ${dialect.among("variable_id")}`, ids);
  yield* change(
    `DELETE FROM rollup WHERE ${dialect.among("variable_id")} AND from_ms <= ? AND end_ms > ?`,
    ...[ids, toMs, fromMs],
  );
}

/** For use inside the write that removes these variables. */
export function* forgetRollups(dialect: StoreDialect, variableIds: readonly number[]): Steps<void> {
  for (const table of ["rollup", "rolled_up"])
    yield* change(`DELETE FROM ${table} WHERE ${dialect.among("variable_id")}`, variableIds);
}

/**
 * Remembers until when variables have rollups, so that a transaction of new points, which are nearly all later, costs
 * one query of an index for each of its accounts.
 */
export class RollupWatch {
  readonly #dialect: StoreDialect;
  /** By account, the newest row of `rolled_up` that is known. */
  readonly #newest = new Map<number, number>();
  /** By variable. */
  readonly #untilMs = new Map<number, number>();

  constructor(dialect: StoreDialect) {
    this.#dialect = dialect;
  }

  /** For use inside the write of these points, which are all of one account. */
  *changed(accountId: number, points: readonly ChangedPoints[]): Steps<void> {
    const news = yield* rows(
      "SELECT id, variable_id, until_ms FROM rolled_up WHERE account_id = ? AND id > ? ORDER BY id",
      ...[accountId, this.#newest.get(accountId) ?? 0],
    );
    for (const one of news) {
      this.#newest.set(accountId, Number(one["id"]));
      this.#untilMs.set(Number(one["variable_id"]), Number(one["until_ms"]));
    }
    if (this.#untilMs.size === 0) return;
    const isLate = ({ variableId, fromMs }: ChangedPoints) => fromMs < (this.#untilMs.get(variableId) ?? -Infinity);
    yield* dropRollups(this.#dialect, points.filter(isLate));
  }
}
