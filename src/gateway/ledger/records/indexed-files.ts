/** Files that indexes find at once, however many there are. */
import type { Arrival } from "../../model.ts";
import type { UnmatchedCount } from "../file-list.ts";
import { type ArrivalRow, toArrival } from "./rows.ts";
import { row, rows, type Steps } from "./store.ts";

/** More names than these begin so often that the newest files have enough of them. */
const NAMED_MAX = 1_000;
const LAST_CHARACTER = "\u{10ffff}";

/** Files whose names begin with the text, letters as they are; none where there are very many. */
export function* namedIds(text: string): Steps<readonly number[]> {
  const found = yield* rows<{ id: number }>(
    "SELECT id FROM arrivals WHERE name >= ? AND name < ? LIMIT ?",
    text,
    text + LAST_CHARACTER,
    NAMED_MAX + 1,
  );
  return found.length > NAMED_MAX ? [] : found.map(({ id }) => id);
}

// The condition of the index `arrivals_unmatched`.
const UNMATCHED = "drop_name = ? AND gone_at IS NULL AND state = 'unmatched' AND expected = 0";

export function* unmatchedCount(drop: string, most: number): Steps<UnmatchedCount> {
  const counted = yield* row<{ count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM arrivals WHERE ${UNMATCHED} LIMIT ?) AS listed`,
    drop,
    most,
  );
  const end = (order: string) =>
    `SELECT changed_at AS at FROM arrivals WHERE ${UNMATCHED} ORDER BY id ${order} LIMIT 1`;
  const oldest = yield* row<{ at: string }>(end("ASC"), drop);
  const newest = yield* row<{ at: string }>(end("DESC"), drop);
  return { count: Number(counted?.count ?? 0), oldest: oldest?.at ?? null, newest: newest?.at ?? null };
}

export function* unmatched(drop: string, limit: number, before: number): Steps<readonly Arrival[]> {
  const found = yield* rows<ArrivalRow>(
    `SELECT * FROM arrivals WHERE ${UNMATCHED} AND id < ? ORDER BY id DESC LIMIT ?`,
    drop,
    before,
    limit,
  );
  return found.map(toArrival);
}
