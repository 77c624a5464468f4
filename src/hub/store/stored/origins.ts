/** Where points came from: the operations that stored them, which are kept longer than their outcomes. */
import { blocksWithin, partOf } from "../blocks/blocks.ts";
import { type Database, type Row, row, rows, type Steps } from "../database.ts";
import { pointOf } from "../point-rows.ts";
import type { PointRow, VariableFacts } from "../records.ts";
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
  readonly origin: Origin;
}

export interface OriginStore {
  /** Every version of the point at that date, the latest first; one row on variables without versions. */
  versionsAt(variable: VariableFacts, atMs: number): Promise<readonly OriginRow[]>;
}

/** Parameters: account, variable and date. */
const sqlOf = (table: string, order: string) => `SELECT stored.*, ${ORIGIN}
  FROM ${table} AS stored
  JOIN origin ON origin.account_id = ? AND origin.id = stored.origin_id
  LEFT JOIN hub_user ON hub_user.id = origin.user_id
  WHERE stored.variable_id = ? AND stored.at_ms = ? ${order}`;
const ORIGIN = `origin.operation_id, origin.user_id, origin.received_ms, origin.calculation_id, origin.trace_link,
  hub_user.username`;

export function createOriginStore({ snapshot }: Database): OriginStore {
  return {
    async versionsAt({ id, accountId, isVersioned }, atMs) {
      const found = await snapshot(function* () {
        const versions = isVersioned
          ? yield* rows(sqlOf("point_version", "ORDER BY version_us DESC"), accountId, id, atMs)
          : [];
        if (versions.length > 0) return versions;
        const points = yield* rows(sqlOf("point", ""), accountId, id, atMs);
        return points.length > 0 ? points : yield* inBlocks(accountId, id, atMs);
      });
      return found.map((one) => ({
        ...pointOf(one),
        origin: {
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

function* inBlocks(accountId: number, id: number, atMs: number): Steps<readonly Row[]> {
  const [block] = yield* blocksWithin(id, atMs, atMs);
  if (block === undefined) return [];
  const { values, origins } = partOf(block, atMs, atMs);
  if (values.length === 0) return [];
  const origin = yield* row(
    `SELECT ${ORIGIN} FROM origin LEFT JOIN hub_user ON hub_user.id = origin.user_id
      WHERE origin.account_id = ? AND origin.id = ?`,
    ...[accountId, origins[0] ?? 0],
  );
  return [{ at_ms: atMs, value: values[0], ...origin }];
}
