import type { TriggerList, TriggerLists } from "../trigger-lists.ts";
import { execute, row, type Store } from "./store.ts";

export function triggerLists(store: Store): TriggerLists {
  return {
    find: (source) =>
      store.look(function* () {
        const found = yield* row<{ listed_at: string; triggers: string }>(
          "SELECT listed_at, triggers FROM trigger_lists WHERE source = ?",
          source,
        );
        return found === undefined ? null : { source, listedAt: found.listed_at, triggers: found.triggers };
      }),
    keep: ({ source, listedAt, triggers }: TriggerList) =>
      store.write("triggers.listed", function* () {
        yield* execute(
          `INSERT INTO trigger_lists (source, listed_at, triggers) VALUES (?, ?, ?)
            ON CONFLICT (source) DO UPDATE SET listed_at = excluded.listed_at, triggers = excluded.triggers`,
          source,
          listedAt,
          triggers,
        );
      }),
  };
}
