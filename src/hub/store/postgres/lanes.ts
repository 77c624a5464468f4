/** Who changes the points of an account, or what its targets name, agrees with the account's writer of points here. */
import type { Sql } from "./database.ts";

/** Waits for the writer of the account's points, and keeps it waiting until the transaction ends. */
export async function holdLane({ get }: Sql, accountId: number): Promise<void> {
  await get("SELECT 1 FROM lane WHERE account_id = ? FOR UPDATE", accountId);
}

/** Writers forget what they remember of the account's targets. */
export async function noteChange({ run }: Sql, accountId: number): Promise<void> {
  await run("UPDATE structure_change SET changes = changes + 1 WHERE account_id = ?", accountId);
}
