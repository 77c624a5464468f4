import type { DatabaseSync } from "node:sqlite";
import type { UsageStore } from "../store.ts";
import { statements, write } from "./database.ts";

export function createUsageStore(intake: DatabaseSync): UsageStore {
  const { run } = statements(intake);
  return {
    take: (accountId, day, { points, bytes }, most) =>
      write(intake, () => {
        run(
          "INSERT INTO usage (account_id, day, points, bytes) VALUES (?, ?, 0, 0) ON CONFLICT DO NOTHING",
          accountId,
          day,
        );
        const sql = `UPDATE usage SET points = points + ?1, bytes = bytes + ?2 WHERE account_id = ?3 AND day = ?4
          AND (?5 IS NULL OR points + ?1 <= ?5) AND (?6 IS NULL OR bytes + ?2 <= ?6)`;
        return run(sql, points, bytes, accountId, day, most.points, most.bytes).changes > 0;
      }),
    async give(accountId, day, { points, bytes }) {
      const sql = "UPDATE usage SET points = points - ?, bytes = bytes - ? WHERE account_id = ? AND day = ?";
      await write(intake, () => run(sql, points, bytes, accountId, day));
    },
    async purge(beforeDay) {
      await write(intake, () => run("DELETE FROM usage WHERE day < ?", beforeDay));
    },
  };
}
