/** Lists ids of arrivals at a drop. */
import { row, type Store } from "../store.ts";

/** Ids that are read at once. */
const IDS_AT_ONCE = 10_000;

/** Arrivals at a drop, ordered by a column behind a value of it. */
export interface Selection<Key extends string | number> {
  readonly where: string;
  readonly key: Key extends string ? "path" : "id";
}

interface IdPart<Key> {
  readonly ids: string;
  readonly last: Key | null;
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

/** Read in parts, each as one text: a row per id would cost more. */
export async function idsBy<Key extends string | number>(
  store: Store,
  drop: string,
  { where, key }: Selection<Key>,
  first: Key,
): Promise<readonly number[]> {
  const sql = `SELECT ${store.dialect.jsonArray("id")} AS ids, max(${key}) AS last FROM (
    SELECT id, path FROM arrivals WHERE drop_name = ? AND ${key} > ? AND ${where}
      ORDER BY ${key} LIMIT ${IDS_AT_ONCE}) AS part`;
  const found: number[] = [];
  for (let last: Key | null = first; last !== null; ) {
    const after: Key = last;
    const read: IdPart<Key> | undefined = await store.look(() => row<IdPart<Key>>(sql, drop, after));
    found.push(...(JSON.parse(read?.ids ?? "[]") as readonly number[]));
    last = read?.last ?? null;
  }
  return found;
}
