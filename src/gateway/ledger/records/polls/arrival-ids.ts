/** Lists ids of arrivals at a drop. */
import { row, type Store } from "../store.ts";

/** Ids that are read at once. */
const IDS_AT_ONCE = 10_000;

/** Arrivals at a drop, ordered by a column behind a value of it. */
export interface Selection<Key extends string | number> {
  readonly where: string;
  readonly key: Key extends string ? "path" : "id";
}

export const AT_DROP: Selection<string> = { where: "gone_at IS NULL AND parent_id IS NULL", key: "path" };
export const SETTLING: Selection<number> = {
  where: "state = 'settling' AND gone_at IS NULL AND parent_id IS NULL",
  key: "id",
};
export const MISSING: Selection<number> = {
  where: "missing_since IS NOT NULL AND gone_at IS NULL",
  key: "id",
};

/**
 * Read in parts, each as one text: a row per id would cost more, and so would the last key as an aggregate, which is
 * only needed behind a full part.
 */
export async function idsBy<Key extends string | number>(
  store: Store,
  drop: string,
  { where, key }: Selection<Key>,
  first: Key,
): Promise<readonly number[]> {
  const from = `FROM arrivals WHERE drop_name = ? AND ${key} > ? AND ${where} ORDER BY ${key} LIMIT ${IDS_AT_ONCE}`;
  const idsAfter = `SELECT ${store.dialect.jsonArray("id")} AS ids FROM (SELECT id ${from}) AS part`;
  const found: number[] = [];
  for (let after: Key | undefined = first; after !== undefined; ) {
    const behind: Key = after;
    const read = await store.look(() => row<{ readonly ids: string }>(idsAfter, drop, behind));
    const ids = JSON.parse(read?.ids ?? "[]") as readonly number[];
    const last = ids.length < IDS_AT_ONCE ? undefined : await lastRecorded(store, key, ids);
    for (const id of last === undefined ? ids : ids.slice(0, last.place + 1)) found.push(id);
    after = last?.place === -1 ? behind : last?.key;
  }
  return found;
}

/** The last of these arrivals that was not removed meanwhile; at the place -1 when all were. */
async function lastRecorded<Key extends string | number>(
  store: Store,
  key: Selection<Key>["key"],
  ids: readonly number[],
): Promise<{ readonly place: number; readonly key?: Key }> {
  const sql = `SELECT ${key} AS last FROM arrivals WHERE id = ?`;
  for (let place = ids.length - 1; place >= 0; place -= 1) {
    const found = await store.look(() => row<{ readonly last: Key }>(sql, ids[place] ?? 0));
    if (found !== undefined) return { place, key: found.last };
  }
  return { place: -1 };
}
