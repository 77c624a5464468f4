/** Where points came from: the operations that stored them, which are kept longer than their outcomes. */
import { type Database, rows } from "../database.ts";
import { pointOf } from "../point-rows.ts";
import type { PointRow, VariableFacts } from "../store.ts";
import { number, text } from "../structure-rows.ts";

export interface Origin {
  readonly operationId: string;
  readonly userId: number;
  /** The name of a user who still exists; null: the hub itself, or a user who was removed. */
  readonly username: string | null;
  readonly receivedMs: number;
  /** The calculation that made the value; null: a push. */
  readonly calculationId: number | null;
  /** Address at which the sender shows where its readings came from. */
  readonly traceLink: string | null;
}

export interface OriginRow extends PointRow {
  /** Null: an earlier version of the hub stored it. */
  readonly origin: Origin | null;
}

export interface OriginStore {
  /** Every version of the point at that date, the latest first; one row on variables without versions. */
  versionsAt(variable: VariableFacts, atMs: number): Promise<readonly OriginRow[]>;
}

export function createOriginStore({ ask }: Database): OriginStore {
  const sqlOf = (table: string, order: string) => `SELECT stored.*, origin.operation_id, origin.user_id,
      origin.received_ms, origin.calculation_id, origin.trace_link, hub_user.username
    FROM ${table} AS stored
    LEFT JOIN origin ON origin.account_id = ? AND origin.id = stored.origin_id
    LEFT JOIN hub_user ON hub_user.id = origin.user_id
    WHERE stored.variable_id = ? AND stored.at_ms = ? ${order}`;
  return {
    async versionsAt({ id, accountId, isVersioned }, atMs) {
      const versions = isVersioned
        ? await ask(() => rows(sqlOf("point_version", "ORDER BY version_us DESC"), accountId, id, atMs))
        : [];
      const found = versions.length > 0 ? versions : await ask(() => rows(sqlOf("point", ""), accountId, id, atMs));
      return found.map((one) => ({
        ...pointOf(one),
        origin:
          one["operation_id"] === null
            ? null
            : {
                operationId: String(one["operation_id"]),
                userId: Number(one["user_id"]),
                username: text(one["username"]),
                receivedMs: Number(one["received_ms"]),
                calculationId: number(one["calculation_id"]),
                traceLink: text(one["trace_link"]),
              },
      }));
    },
  };
}
