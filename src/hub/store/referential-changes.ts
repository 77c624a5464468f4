/** The report of the migration `referential-ids`, in which ids of units and types changed and names stayed. */
import type { Logger } from "../../support/log.ts";
import { type Database, rows } from "./database.ts";

export interface ReferentialChange {
  readonly accountId: number;
  /** `view`, `fileTrigger`: an expression or settings that named such ids; `oldId` is the id of that itself. */
  readonly field: string;
  readonly oldId: number;
  readonly newId: number;
  readonly entities: number;
}

export interface ReferentialChangeStore {
  list(): Promise<readonly ReferentialChange[]>;
  /** The changes that no hub has logged yet; from now on they count as logged. */
  takeUnlogged(): Promise<readonly ReferentialChange[]>;
}

export function createReferentialChangeStore(database: Database): ReferentialChangeStore {
  const columns = "account_id, field, old_id, new_id, entities";
  return {
    list: () =>
      database.ask(function* () {
        return (yield* rows(`SELECT ${columns} FROM referential_change ORDER BY id`)).map(changeOf);
      }),
    takeUnlogged: () =>
      database.write(function* () {
        const sql = `UPDATE referential_change SET logged = TRUE WHERE NOT logged RETURNING ${columns}`;
        return (yield* rows(sql)).map(changeOf);
      }),
  };
}

function changeOf(row: Readonly<Record<string, unknown>>): ReferentialChange {
  return {
    accountId: Number(row["account_id"]),
    field: String(row["field"]),
    oldId: Number(row["old_id"]),
    newId: Number(row["new_id"]),
    entities: Number(row["entities"]),
  };
}

/** Such as `unitId 51 is 28 now (3)`. */
export function changeWords({ field, oldId, newId, entities }: ReferentialChange): string {
  if (field === "view" || field === "fileTrigger") return `${field} ${oldId} names the new ids`;
  return `${field} ${oldId} is ${newId} now (${entities})`;
}

export async function logReferentialChanges(store: ReferentialChangeStore, log: Logger): Promise<void> {
  const changes = Map.groupBy(await store.takeUnlogged(), ({ accountId }) => accountId);
  for (const [account, own] of changes)
    log.warn(
      { account, changes: own.map(changeWords) },
      "ids of units and types changed to those that public clients write, names stayed: clients that send others of " +
        "these ids are to be adapted (docs/hub-choices.md, Referentials)",
    );
}
