/**
 * Quotas of an account for a day (UTC): points and bytes pushed (specification, *Limits*: customer-level,
 * configurable).
 */

import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";

const DAY_MS = 86_400_000;

export interface Amount {
  readonly points: number;
  readonly bytes: number;
}

/**
 * Takes the amount from the rest of today's quota; the result returns it. Throws a 429 until tomorrow, a 413 when a
 * whole day is not enough.
 */
export async function takeQuota(
  { options, store, clock }: HubContext,
  accountId: number,
  amount: Amount,
): Promise<() => Promise<void>> {
  const own = options.accounts.find(({ id }) => id === accountId)?.limits;
  const points = own?.pointsPerDay ?? options.customerLimits.pointsPerDay ?? null;
  const bytes = own?.bytesPerDay ?? options.customerLimits.bytesPerDay ?? null;
  if (points === null && bytes === null) return async () => {};
  if (amount.points > (points ?? Number.POSITIVE_INFINITY) || amount.bytes > (bytes ?? Number.POSITIVE_INFINITY))
    throw new HttpProblem(
      413,
      "too-large",
      `${amount.points} points in ${amount.bytes} bytes are more than the account may push in a day ` +
        `(${words(points, bytes)}): send less at a time`,
    );
  const nowMs = clock.now().epochMilliseconds;
  const day = new Date(nowMs).toISOString().slice(0, 10);
  if (!(await store.usage.take(accountId, day, amount, { points, bytes })))
    throw new HttpProblem(
      429,
      "quota-exceeded",
      `the account has used up what it may push in a day (${words(points, bytes)}); the next day begins at 00:00 UTC`,
      undefined,
      Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1_000),
    );
  return () => store.usage.give(accountId, day, amount);
}

function words(points: number | null, bytes: number | null): string {
  return [...(points === null ? [] : [`${points} points`]), ...(bytes === null ? [] : [`${bytes} bytes`])].join(", ");
}
