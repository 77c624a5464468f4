/** The pushed amounts of accounts with a quota, by day. */
import type { Database } from "./database.ts";

/** For accounts with a quota; days are written `2026-03-01`, in UTC. */
export interface UsageStore {
  /** Atomically adds the amount to the day when it stays within the limits (null: none), or nothing. */
  take(
    accountId: number,
    day: string,
    amount: { readonly points: number; readonly bytes: number },
    most: { readonly points: number | null; readonly bytes: number | null },
  ): Promise<boolean>;
  give(accountId: number, day: string, amount: { readonly points: number; readonly bytes: number }): Promise<void>;
  purge(beforeDay: string): Promise<void>;
}

const within = (column: string) => `coalesce(${column} + CAST(? AS BIGINT) <= CAST(? AS BIGINT), TRUE)`;

const FIRST = "INSERT INTO usage (account_id, day, points, bytes) VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING";
const TAKE = `UPDATE usage SET points = points + ?, bytes = bytes + ?
  WHERE account_id = ? AND day = ? AND ${within("points")} AND ${within("bytes")}`;
const GIVE = "UPDATE usage SET points = points - ?, bytes = bytes - ? WHERE account_id = ? AND day = ?";

export function createUsageStore(database: Database): UsageStore {
  return {
    async take(accountId, day, { points, bytes }, most) {
      // The row first, so that the check of the limits sees the amounts of concurrent pushes.
      await database.run(FIRST, accountId, day);
      const limits = [points, most.points, bytes, most.bytes] as const;
      return (await database.run(TAKE, points, bytes, accountId, day, ...limits)) > 0;
    },
    async give(accountId, day, { points, bytes }) {
      await database.run(GIVE, points, bytes, accountId, day);
    },
    async purge(beforeDay) {
      await database.run("DELETE FROM usage WHERE day < ?", beforeDay);
    },
  };
}
