/** Settling arrivals that a listing did not show, and that later ones of their lanes wait for. */

import { execute, rows, type Steps } from "#core/sql/statements.ts";
import type { AwaitedArrival } from "../ledger.ts";
import type { Store } from "./store.ts";

const READ_AT_ONCE = 1_000;

interface Row {
  readonly id: number;
  readonly path: string;
  readonly mtime: string;
  readonly seen_at: string;
  readonly awaited_since: string | null;
}

const COLUMNS = "id, path, mtime, seen_at, awaited_since";

/** Arrivals that were awaited before and have not settled since. */
export function* awaitedBefore(drop: string): Steps<readonly AwaitedArrival[]> {
  const found = yield* rows<Row>(
    `SELECT ${COLUMNS} FROM arrivals WHERE drop_name = ? AND state = 'settling' AND gone_at IS NULL
      AND awaited_since IS NOT NULL ORDER BY id`,
    drop,
  );
  return found.map((one) => awaited(one, one.awaited_since ?? ""));
}

/** Arrivals that were awaited before, and settling ones that are awaited from now on. */
export async function awaitMore(
  store: Store,
  drop: string,
  fence: number | null,
  isAwaited: (id: number, path: string) => boolean,
): Promise<readonly AwaitedArrival[]> {
  const found: AwaitedArrival[] = [];
  const fresh: number[] = [];
  const now = store.now();
  for await (const one of settlingIn(store, drop)) {
    if (one.awaited_since === null && !isAwaited(one.id, one.path)) continue;
    if (one.awaited_since === null) fresh.push(one.id);
    found.push(awaited(one, one.awaited_since ?? now));
  }
  if (fresh.length > 0) await store.write("poll.recorded", () => noteAwaited(store, drop, fence, fresh, now));
  return found;
}

/** All settling arrivals of the drop, read in parts. */
export async function* settlingIn(store: Store, drop: string): AsyncGenerator<Row> {
  for (let after = 0, more = true; more; ) {
    const some = await store.look(() => settlingAfter(drop, after));
    yield* some;
    after = some.at(-1)?.id ?? after;
    more = some.length === READ_AT_ONCE;
  }
}

function settlingAfter(drop: string, after: number): Steps<readonly Row[]> {
  return rows<Row>(
    `SELECT ${COLUMNS} FROM arrivals
WHERE drop_name = ? AND state = 'settling' AND gone_at IS NULL AND parent_id IS NULL
      AND id > ? ORDER BY id LIMIT ${READ_AT_ONCE}`,
    drop,
    after,
  );
}

function* noteAwaited(
  store: Store,
  drop: string,
  fence: number | null,
  ids: readonly number[],
  now: string,
): Steps<void> {
  yield* store.assertDrop(drop, fence);
  for (const id of ids)
    yield* execute("UPDATE arrivals SET awaited_since = ? WHERE id = ? AND awaited_since IS NULL", now, id);
}

function awaited({ id, path, mtime, seen_at }: Row, since: string): AwaitedArrival {
  return { id, path, mtime, seenAt: seen_at, since };
}
