/**
 * Writes of an account's structure. While a form is changed in slices (`form-slices.ts`) the account is held: other
 * writes of its structure, and of values of forms, wait for the last slice.
 */
import { setTimeout as pause } from "node:timers/promises";
import { change, type Database, row, type Steps, type StoreDialect } from "./database.ts";

/** The account was held for longer than a write waits. */
export class StructureHeld extends Error {}

const POLL_MS = 20;
const POLLS_MAX = 1_500;

/**
 * One transaction that changes structure or values of forms. `lane`: it also waits for the writer of the account's
 * points, as `holdLane` does. Throws `StructureHeld`.
 */
export async function writeStructure<T>(
  { dialect, ask, write }: Database,
  accountId: number,
  work: () => Steps<T>,
  lane = true,
): Promise<T> {
  const isHeld = () =>
    ask(function* () {
      return (yield* heldText(accountId)) !== null;
    });
  for (let polls = 0; ; ) {
    try {
      return await write(function* () {
        if (lane) yield* dialect.holdLane(accountId);
        yield* beginChange(accountId);
        return yield* work();
      });
    } catch (thrown) {
      if (!(thrown instanceof StructureHeld) || polls >= POLLS_MAX) throw thrown;
    }
    for (; polls < POLLS_MAX && (await isHeld()); polls += 1) await pause(POLL_MS);
  }
}

/** For use inside a write, before it changes anything: counts it, as `noteChange` does. */
export function* beginChange(accountId: number): Steps<void> {
  const sql = "UPDATE structure_change SET changes = changes + 1 WHERE account_id = ? AND held IS NULL";
  if ((yield* change(sql, accountId)) === 0)
    throw new StructureHeld("a form of the account is changed with all its values");
}

/** Grows with each change of the account's structure. */
export function* changesOf(accountId: number): Steps<number> {
  return Number((yield* row("SELECT changes FROM structure_change WHERE account_id = ?", accountId))?.["changes"]);
}

export function* heldText(accountId: number, dialect?: StoreDialect): Steps<string | null> {
  const lock = dialect?.forUpdate("structure_change") ?? "";
  const found = yield* row(`SELECT held FROM structure_change WHERE account_id = ?${lock}`, accountId);
  return (found?.["held"] ?? null) as string | null;
}

/** For use inside a write. Null: the account is free again. */
export function* putHeld(accountId: number, held: string | null): Steps<void> {
  yield* change("UPDATE structure_change SET held = ? WHERE account_id = ?", held, accountId);
}
