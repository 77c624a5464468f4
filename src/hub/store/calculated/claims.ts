/** Runs of calculations: what becomes of one when its operations are applied. */
import { change, type Steps } from "../database.ts";

/** Counts of an applied operation. */
export interface AppliedCounts {
  readonly stored: number;
  readonly replaced: number;
  readonly discarded: number;
}

/** For use inside the transaction that applies an operation of the calculation. */
export function* applied(
  calculationId: number,
  { stored, replaced, discarded }: AppliedCounts,
  nowMs: number,
): Steps<void> {
  yield* change(
    `UPDATE calculation SET stored = stored + ?, replaced = replaced + ?, discarded = discarded + ?,
      applied = applied + 1, state = CASE WHEN parts = applied + 1 THEN 'done' ELSE state END,
      finished_ms = CASE WHEN parts = applied + 1 THEN CAST(? AS BIGINT) ELSE finished_ms END
      WHERE id = ? AND state IN ('running', 'waiting', 'storing')`,
    ...[stored, replaced, discarded, nowMs, calculationId],
  );
}

/** For use inside the transaction that records the failure of such an operation. */
export function* applyFailed(calculationId: number, message: string, nowMs: number): Steps<void> {
  yield* change(
    `UPDATE calculation SET state = 'failed', message = ?, finished_ms = ?
      WHERE id = ? AND state IN ('running', 'waiting', 'storing')`,
    ...[message, nowMs, calculationId],
  );
}
