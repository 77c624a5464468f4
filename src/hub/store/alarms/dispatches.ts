/** Notices of changes of alarms to receivers of webhooks and into variables: written with the change, then taken. */
import { change, type Database, insert, row, type Steps } from "../database.ts";
import type { BusyReceivers } from "../events/deliveries.ts";
import type { SqlValue } from "../filter-sql.ts";
import { number } from "../structure-rows.ts";

export interface NewDispatch {
  readonly accountId: number;
  readonly kind: "webhook" | "variable";
  /** URL of the receiver, or the id of the operation. */
  readonly target: string;
  /** Of the receiver, with its port; empty for a variable. */
  readonly host: string;
  /** JSON. */
  readonly body: string;
  readonly nextMs: number;
}

export interface DueDispatch extends NewDispatch {
  readonly id: number;
  /** Number of earlier attempts. */
  readonly attempts: number;
}

/** Webhooks that have no slot. */
interface Occupied extends BusyReceivers {
  /** No webhook at all has one. */
  readonly isFull: boolean;
}

export interface AlarmDispatchStore {
  /**
   * The one with a slot that is due first of the next account after this one, which no other hub takes before
   * `untilMs`; null when none is due.
   */
  take(afterAccount: number, nowMs: number, untilMs: number, occupied: Occupied): Promise<DueDispatch | null>;
  /** When the next one with a slot is due; null when none waits. */
  nextMs(occupied: Occupied): Promise<number | null>;
  /** It was sent, or given up. */
  remove(id: number): Promise<void>;
  later(id: number, nextMs: number): Promise<void>;
}

/** For use inside a write. */
export function* addDispatch({ accountId, nextMs, ...columns }: NewDispatch): Steps<void> {
  yield* insert("alarm_dispatch", { account_id: accountId, ...columns, next_ms: nextMs });
}

const BEFORE_ALL = -1;

export function createAlarmDispatchStore(database: Database): AlarmDispatchStore {
  const { among } = database.dialect;
  const hasSlot = `${among("kind")} AND (kind = 'variable'
    OR NOT (${among("account_id")}) AND NOT (${among("account_id || ' ' || host")}))`;
  const valuesOf = ({ isFull, accounts, hosts }: Occupied): SqlValue[] => [
    isFull ? ["variable"] : ["variable", "webhook"],
    accounts,
    hosts.map(({ accountId, host }) => `${accountId} ${host}`),
  ];
  const first = `SELECT * FROM alarm_dispatch WHERE next_ms <= ? AND account_id > ? AND ${hasSlot}
    ORDER BY account_id, next_ms, id LIMIT 1`;
  return {
    take: (afterAccount, nowMs, untilMs, occupied) =>
      database.write(function* (): Steps<DueDispatch | null> {
        for (;;) {
          const values = valuesOf(occupied);
          const found =
            (yield* row(first, nowMs, afterAccount, ...values)) ?? (yield* row(first, nowMs, BEFORE_ALL, ...values));
          if (found === undefined) return null;
          const sql = "UPDATE alarm_dispatch SET next_ms = ?, attempts = attempts + 1 WHERE id = ? AND next_ms = ?";
          const [id, nextMs] = [Number(found["id"]), Number(found["next_ms"])];
          if ((yield* change(sql, untilMs, id, nextMs)) === 0) continue;
          return {
            id,
            accountId: Number(found["account_id"]),
            kind: found["kind"] as NewDispatch["kind"],
            target: String(found["target"]),
            host: String(found["host"]),
            body: String(found["body"]),
            nextMs,
            attempts: Number(found["attempts"]),
          };
        }
      }),
    nextMs: (occupied) =>
      database.ask(function* () {
        const sql = `SELECT min(next_ms) AS next FROM alarm_dispatch WHERE ${hasSlot}`;
        return number((yield* row(sql, ...valuesOf(occupied)))?.["next"]);
      }),
    async remove(id) {
      await database.run("DELETE FROM alarm_dispatch WHERE id = ?", id);
    },
    async later(id, nextMs) {
      await database.run("UPDATE alarm_dispatch SET next_ms = ? WHERE id = ?", nextMs, id);
    },
  };
}
