import type pg from "pg";
import type { UsageStore } from "../store.ts";
import { sqlOn } from "./database.ts";

export function createUsageStore(pool: pg.Pool): UsageStore {
  const { run } = sqlOn(pool);
  return {
    async take(accountId, day, { points, bytes }, most) {
      // The row first, so that the test below sees what others took meanwhile.
      const first =
        "INSERT INTO usage (account_id, day, points, bytes) VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING";
      await run(first, accountId, day);
      const within = (column: string) => `coalesce(${column} + CAST(? AS BIGINT) <= CAST(? AS BIGINT), TRUE)`;
      const taken = await run(
        `UPDATE usage SET points = points + ?, bytes = bytes + ? WHERE account_id = ? AND day = ? AND ${within("points")} AND ${within("bytes")}`,
        points,
        bytes,
        accountId,
        day,
        points,
        most.points,
        bytes,
        most.bytes,
      );
      return taken > 0;
    },
    async give(accountId, day, { points, bytes }) {
      const sql = "UPDATE usage SET points = points - ?, bytes = bytes - ? WHERE account_id = ? AND day = ?";
      await run(sql, points, bytes, accountId, day);
    },
    async purge(beforeDay) {
      await run("DELETE FROM usage WHERE day < ?", beforeDay);
    },
  };
}
