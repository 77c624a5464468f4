/** Short lists that are the same for all nodes: triggers of services, and approved host keys. */
import type { ApprovedKeys } from "../approved-keys.ts";
import type { TriggerList, TriggerLists } from "../trigger-lists.ts";
import { execute, row, rows, type Store } from "./store.ts";

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

export function approvedKeys(store: Store): ApprovedKeys {
  return {
    list: () =>
      store.look(function* () {
        const found = yield* rows<{ drop_name: string; lines: string; approved_at: string }>(
          "SELECT drop_name, lines, approved_at FROM approved_keys ORDER BY approved_at, drop_name, lines",
        );
        return found.map(({ drop_name: drop, lines, approved_at: approvedAt }) => ({ drop, lines, approvedAt }));
      }),
    keep: ({ drop, lines, approvedAt }) =>
      store.write("key.approved", function* () {
        yield* execute(
          `INSERT INTO approved_keys (drop_name, lines, approved_at) VALUES (?, ?, ?)
            ON CONFLICT (drop_name, lines) DO NOTHING`,
          ...[drop, lines, approvedAt],
        );
      }),
  };
}
