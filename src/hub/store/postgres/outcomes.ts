/** Records what became of a group of operations, in the transaction that wrote its points. */
import { noticesText } from "../operation-rows.ts";
import type { Outcome, QueuedOperation } from "../store.ts";
import type { CopySql } from "./copy.ts";

interface Numbered {
  readonly sql: CopySql;
  readonly accountId: number;
  /** The last VersionTimestamp of the account. */
  readonly lastUs: number;
  /** Number of the origin of the first operation. */
  readonly firstOrigin: number;
}

/** The outcomes of a group, its operations as origins of points, and the last numbers of its account. */
export async function recordOutcomes(
  { sql, accountId, lastUs, firstOrigin }: Numbered,
  operations: readonly QueuedOperation[],
  outcomes: readonly Outcome[],
  state: "done" | "failed",
): Promise<void> {
  if (outcomes.length !== operations.length) throw new RangeError("an operation of the group has no outcome");
  const seqs = operations.map(({ seq }) => seq);
  const msOf = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
  await sql.run(
    `INSERT INTO outcome (seq, stored, replaced, discarded, notices, started_ms, finished_ms)
      SELECT * FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS JSON[]),
        CAST(? AS TEXT[]), CAST(? AS BIGINT[]), CAST(? AS BIGINT[]))`,
    seqs,
    outcomes.map(({ stored }) => stored),
    outcomes.map(({ replaced }) => replaced),
    outcomes.map(({ discarded }) => JSON.stringify(discarded)),
    outcomes.map(noticesText),
    outcomes.map(({ started }) => msOf(started)),
    outcomes.map(({ finished }) => msOf(finished)),
  );
  await sql.run(
    `UPDATE operation SET state = ?, webhook_state = CASE webhook_state WHEN 'waiting' THEN 'due' ELSE webhook_state END
      WHERE seq = ANY (?)`,
    state,
    seqs,
  );
  await recordOrigins(
    sql,
    operations.flatMap((operation, index) =>
      (outcomes[index]?.stored ?? 0) > 0 ? [{ id: firstOrigin + index, ...operation }] : [],
    ),
  );
  const lastOrigin = firstOrigin + operations.length - 1;
  await sql.run("UPDATE lane SET version_us = ?, origin_id = ? WHERE account_id = ?", lastUs, lastOrigin, accountId);
}

async function recordOrigins(
  { run }: CopySql,
  origins: readonly (QueuedOperation & { readonly id: number })[],
): Promise<void> {
  if (origins.length === 0) return;
  await run(
    `INSERT INTO origin (account_id, id, operation_id, user_id, received_ms, calculation_id, trace_link)
      SELECT * FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]), CAST(? AS BIGINT[]),
        CAST(? AS BIGINT[]), CAST(? AS BIGINT[]), CAST(? AS TEXT[]))`,
    origins.map(({ accountId }) => accountId),
    origins.map(({ id }) => id),
    origins.map(({ operationId }) => operationId),
    origins.map(({ userId }) => userId),
    origins.map(({ acceptedMs }) => acceptedMs),
    origins.map(({ calculationId }) => calculationId),
    origins.map(({ traceLink }) => traceLink),
  );
}
