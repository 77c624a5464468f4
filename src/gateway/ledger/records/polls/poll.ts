/**
 * One poll of one drop. An entry that the caller knows from an earlier listing is compared with the ids that were at
 * rest when the poll began, any other one through the index of arrivals at the drop; each arrival that was seen is
 * remembered as one bit. A known entry costs one bit or one index query and no write, so a poll with nothing new
 * commits nothing.
 */

import { basename } from "node:path/posix";
import { BitSet } from "#core/bitset.ts";
import { cells, execute, row, rowEach, type Steps } from "#core/sql/statements.ts";
import type { Arrival, FileEntry, IsoInstant } from "../../../model.ts";
import { ARRIVAL_STATES } from "../../../states.ts";
import type { AwaitedArrival, CompletePoll, PollRecord, Sighting } from "../../ledger.ts";
import { brokenInvariant } from "../../transitions.ts";
import { awaitedBefore, awaitMore, settlingIn } from "../awaited.ts";
import { appendEvent, appendOrRenewEvent, leaveDrop } from "../events.ts";
import { noteGrowthPause } from "../finished-files.ts";
import {
  folderOf,
  forgetFolders,
  type ListedFolders,
  listedFolders,
  noteFolders,
  wasThere,
} from "../listed-folders.ts";
import { type ArrivalRow, toArrival } from "../rows.ts";
import type { Store } from "../store.ts";

/** Ids that are read at once. */
const IDS_AT_ONCE = 10_000;

export const AT_DROP: Selection<string> = { where: "gone_at IS NULL AND parent_id IS NULL", key: "path" };
const SETTLING: Selection<number> = {
  where: "state = 'settling' AND gone_at IS NULL AND parent_id IS NULL",
  key: "id",
};
const MISSING: Selection<number> = {
  where: "missing_since IS NOT NULL AND gone_at IS NULL",
  key: "id",
};

/** Arrivals that are marked as gone, or missing, in one transaction. */
const MARKED_AT_ONCE = 500;

/** Nearly all entries need only this query: for an unchanged arrival at rest. */
const RESTING = `SELECT id FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL
  AND parent_id IS NULL AND size = ? AND mtime = ? AND state <> 'settling'`;

export class LedgerPoll implements PollRecord {
  readonly #store: Store;
  readonly #drop: string;
  readonly #startedAt: IsoInstant;
  readonly session: number | null;
  readonly firstContact: boolean;
  readonly archives: readonly string[];
  readonly #onEnd: () => void;
  readonly #seen = new BitSet();
  /** Arrivals at the drop when the poll began. */
  readonly #atDrop: readonly number[];
  /** Ids of arrivals that were then neither settling nor missing. */
  readonly #atRest: BitSet;
  /** Arrivals that the last complete listing did not show. */
  readonly #missing: Set<number>;
  /** For the first contact; empty afterwards. */
  readonly #folders: ListedFolders;
  /** Folders that this listing has shown in full, with their subfolders. */
  readonly #listed = new Map<string, readonly string[]>();
  #ended = false;

  private constructor(
    store: Store,
    drop: string,
    {
      folders,
      archives,
      atDrop,
      settling,
      missing,
    }: Pick<PollRecord, "archives"> & {
      readonly folders: ListedFolders | null;
      readonly atDrop: readonly number[];
      readonly settling: readonly number[];
      readonly missing: readonly number[];
    },
    onEnd: () => void,
  ) {
    this.#store = store;
    this.#drop = drop;
    this.#startedAt = store.now();
    this.session = store.session;
    this.#onEnd = onEnd;
    this.firstContact = folders !== null;
    this.#folders = folders ?? new Map();
    this.#missing = new Set(missing);
    this.archives = archives;
    this.#atDrop = atDrop;
    this.#atRest = new BitSet();
    for (const id of atDrop) this.#atRest.add(id);
    for (const ids of [settling, missing]) for (const id of ids) this.#atRest.delete(id);
  }

  static async begin(store: Store, drop: string, archives: readonly string[], onEnd: () => void): Promise<LedgerPoll> {
    const known = await store.look(() => row("SELECT 1 AS known FROM drops WHERE name = ?", drop));
    const folders = known === undefined ? await store.look(() => listedFolders(drop)) : null;
    const atDrop = await idsBy(store, drop, AT_DROP, "");
    // After the others: what settles since is not at rest.
    const settling = await idsBy(store, drop, SETTLING, 0);
    const missing = await idsBy(store, drop, MISSING, 0);
    return new LedgerPoll(store, drop, { folders, archives, atDrop, settling, missing }, onEnd);
  }

  async ownsRun(id: string): Promise<boolean> {
    const sql = "SELECT drop_name FROM runs WHERE id = ?";
    const found = await this.#store.look(() => row<{ drop_name: string }>(sql, id));
    return found === undefined || found.drop_name === this.#drop;
  }

  wasThere(path: string): boolean {
    return this.firstContact && wasThere(this.#folders, path);
  }

  folderListed(folder: string, below: readonly string[]): void {
    this.#listed.set(folder, below);
  }

  async cutShort(isAwaited: (path: string) => boolean, isRecorded: boolean): Promise<CompletePoll> {
    this.#assertOpen();
    if (!isRecorded) this.#listed.clear();
    if (this.firstContact && this.#listed.size > 0) await this.#store.write("poll.recorded", () => this.#noteFolders());
    const unseen = this.#listed.size === 0 ? [] : await this.#unseenInListed();
    const isUnshown = (id: number, path: string) => !this.#seen.has(id) && isAwaited(path);
    return this.#mark(unseen, () => awaitMore(this.#store, this.#drop, this.session, isUnshown));
  }

  async record(
    entries: readonly FileEntry[],
    onId?: (entry: FileEntry, id: number) => void,
  ): Promise<readonly Sighting[]> {
    this.#assertOpen();
    const sighted = await this.#store.write("poll.recorded", () => this.#recordAll(entries));
    for (const [at, one] of sighted.entries()) {
      const id = idOf(one);
      this.#seen.add(id);
      this.#missing.delete(id);
      const entry = entries[at];
      if (entry !== undefined) onId?.(entry, id);
    }
    return sighted.filter((one) => typeof one !== "number");
  }

  noteAtRest(id: number): boolean {
    if (!this.#atRest.has(id)) return false;
    this.#seen.add(id);
    return true;
  }

  async complete(isAwaited: (path: string) => boolean = () => true): Promise<CompletePoll> {
    this.#assertOpen();
    const completed = await this.#mark(await this.#unseen(), (missing) => this.#awaitMissing(missing, isAwaited));
    if (this.firstContact) await this.#store.write("poll.completed", () => this.#noteContact());
    this.#end();
    return completed;
  }

  /** Marks arrivals as missing, or as gone, that were not shown in fully listed folders. */
  async #mark(
    unseen: readonly number[],
    findAwaited: (missing: ReadonlySet<number>) => Promise<readonly AwaitedArrival[]>,
  ): Promise<CompletePoll> {
    const gone = unseen.filter((id) => this.#missing.has(id));
    const missing = unseen.filter((id) => !this.#missing.has(id));
    for (const some of partsOf(gone)) await this.#store.write("poll.completed", () => this.#leaveAll(some));
    // Recorded before they are missing in the ledger: after a crash in between they are awaited for one
    // listing too many, never for one too few.
    const awaited = await findAwaited(new Set(missing));
    for (const some of partsOf(missing)) await this.#store.write("poll.completed", () => this.#missAll(some));
    return { gone, missing: missing.length, awaited };
  }

  async abandon(): Promise<void> {
    if (!this.#ended) this.#end();
  }

  *#noteContact(): Steps<void> {
    yield* execute(
      "INSERT INTO drops (name, first_listed_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
      this.#drop,
      this.#startedAt,
    );
    yield* forgetFolders(this.#drop);
  }

  *#noteFolders(): Steps<void> {
    yield* this.#store.assertDrop(this.#drop, this.session);
    yield* noteFolders(this.#drop, this.#listed);
  }

  #assertOpen(): void {
    if (this.#ended) throw brokenInvariant("record poll", this.#drop, "this poll has ended");
  }

  #end(): void {
    this.#ended = true;
    this.#onEnd();
  }

  /** For each entry the settling arrival, or the id of one at rest. */
  *#recordAll(entries: readonly FileEntry[]): Steps<readonly (Sighting | number)[]> {
    yield* this.#store.assertDrop(this.#drop, this.session);
    const at = { store: this.#store, drop: this.#drop, startedAt: this.#startedAt };
    const sighted: (Sighting | number)[] = [];
    const resting = yield* rowEach<readonly [number]>(
      RESTING,
      ["text", "text", "bigint", "text"],
      entries.map((entry) => [this.#drop, entry.path, entry.size, entry.mtime]),
    );
    for (const [index, entry] of entries.entries()) sighted.push(resting[index]?.[0] ?? (yield* sight(at, entry)));
    for (const id of sighted.map(idOf))
      if (this.#missing.has(id)) yield* execute("UPDATE arrivals SET missing_since = NULL WHERE id = ?", id);
    return sighted;
  }

  /** Ids of arrivals that were at the drop all the time, and were not in the listing. */
  async #unseen(): Promise<readonly number[]> {
    const unseen = this.#atDrop.filter((id) => !this.#seen.has(id));
    if (unseen.length === 0) return [];
    const now = new Set(await idsBy(this.#store, this.#drop, AT_DROP, ""));
    return unseen.filter((id) => now.has(id)).sort((a, b) => a - b);
  }

  /** The same for settling arrivals in the folders that were shown in full. */
  async #unseenInListed(): Promise<readonly number[]> {
    const found: number[] = [];
    for await (const { id, path } of settlingIn(this.#store, this.#drop))
      if (!this.#seen.has(id) && this.#listed.has(folderOf(path))) found.push(id);
    return found;
  }

  /**
   * A single listing may be wrong, so later arrivals of their lanes wait for them. The settling arrivals are
   * only read when some are missing.
   */
  #awaitMissing(
    missing: ReadonlySet<number>,
    isAwaited: (path: string) => boolean,
  ): Promise<readonly AwaitedArrival[]> {
    if (missing.size === 0) return this.#store.look(() => awaitedBefore(this.#drop));
    const isMissing = (id: number, path: string) => missing.has(id) && isAwaited(path);
    return awaitMore(this.#store, this.#drop, this.session, isMissing);
  }

  *#leaveAll(ids: readonly number[]): Steps<void> {
    yield* this.#store.assertDrop(this.#drop, this.session);
    for (const id of ids) yield* leaveDrop(this.#store, id, "arrival.gone", "two listings in a row did not show it");
  }

  /** No event: a single listing may be wrong. */
  *#missAll(ids: readonly number[]): Steps<void> {
    yield* this.#store.assertDrop(this.#drop, this.session);
    for (const id of ids) yield* execute("UPDATE arrivals SET missing_since = ? WHERE id = ?", this.#startedAt, id);
  }
}

function partsOf(ids: readonly number[]): readonly (readonly number[])[] {
  const count = Math.ceil(ids.length / MARKED_AT_ONCE);
  return Array.from({ length: count }, (_, at) => ids.slice(at * MARKED_AT_ONCE, (at + 1) * MARKED_AT_ONCE));
}

function idOf(sighted: Sighting | number): number {
  return typeof sighted === "number" ? sighted : sighted.arrival.id;
}

// Lists ids of arrivals at a drop.

/** Arrivals at a drop, ordered by a column behind a value of it. */
interface Selection<Key extends string | number> {
  readonly where: string;
  readonly key: Key extends string ? "path" : "id";
}

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

// Records what a listing shows at a path, and finds the arrival of it.

/** A poll of a drop. */
interface SightedAt {
  readonly store: Store;
  readonly drop: string;
  readonly startedAt: IsoInstant;
}

/** The arrival of an entry: a settling one, or the id of one at rest. */
function* sight(at: SightedAt, entry: FileEntry): Steps<Sighting | number> {
  const found = yield* row<ArrivalRow>(
    "SELECT * FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL AND parent_id IS NULL",
    at.drop,
    entry.path,
  );
  if (found === undefined) return (yield* returnedId(at, entry)) ?? (yield* add(at, entry));
  if (found.size === entry.size && found.mtime === entry.mtime) return { arrival: toArrival(found), seen: "known" };
  if (ARRIVAL_STATES[found.state].isUnclaimed) return yield* change(at, found, entry);
  yield* leaveDrop(at.store, found.id, "arrival.superseded", `another version came: ${sizeWords(entry)}`);
  return yield* add(at, entry);
}

/**
 * A listing may still show a file that was finished after the listing had begun: that is the old version,
 * not a new one.
 */
function* returnedId({ drop, startedAt }: SightedAt, entry: FileEntry): Steps<number | null> {
  const last = yield* row<ArrivalRow>(
    "SELECT * FROM arrivals WHERE name = ? AND drop_name = ? AND path = ? AND parent_id IS NULL " +
      "ORDER BY id DESC LIMIT 1",
    basename(entry.path),
    drop,
    entry.path,
  );
  const same = last !== undefined && last.size === entry.size && last.mtime === entry.mtime;
  if (!same || last.gone_at === null || last.gone_at < startedAt) return null;
  return last.id;
}

function* add({ store, drop }: SightedAt, entry: FileEntry): Steps<Sighting> {
  const now = store.now();
  const { path, size, mtime } = entry;
  const state = "settling";
  const reason = "seen for the first time";
  const [added] = yield* cells<readonly [id: number]>(
    `INSERT INTO arrivals (drop_name, path, name, size, mtime, state, reason, seen_at, changed_at)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    drop,
    path,
    basename(path),
    size,
    mtime,
    state,
    reason,
    now,
    now,
  );
  if (added === undefined) throw brokenInvariant("record poll", path, "no row came back");
  const facts = {
    drop,
    path,
    size,
    mtime,
    state,
    reason,
    seenAt: now,
    changedAt: now,
  } as const;
  const arrival: Arrival = { ...facts, id: added[0], parentId: null, sha256: null, goneAt: null };
  const subject = { arrivalId: arrival.id, runId: null, operationId: null };
  yield* appendEvent(store, { ...subject, what: "arrival.settling", detail: sizeWords(entry) }, arrival);
  return { arrival, seen: "new" };
}

function* change({ store, drop }: SightedAt, found: ArrivalRow, entry: FileEntry): Steps<Sighting> {
  if (found.state === "settling" && entry.size > found.size) {
    const pauseMs = Date.parse(store.now()) - Date.parse(found.changed_at);
    yield* noteGrowthPause(store, drop, entry.path, pauseMs);
  }
  const reason = "its size or time has changed";
  const changed = yield* row<ArrivalRow>(
    "UPDATE arrivals SET size = ?, mtime = ?, state = 'settling', reason = ?, changed_at = ? " +
      "WHERE id = ? RETURNING *",
    entry.size,
    entry.mtime,
    reason,
    store.now(),
    found.id,
  );
  yield* appendOrRenewEvent(store, {
    arrivalId: found.id,
    runId: null,
    operationId: null,
    what: "arrival.changed",
    detail: sizeWords(entry),
  });
  return { arrival: toArrival(changed ?? found), seen: "changed" };
}

function sizeWords(entry: FileEntry): string {
  return `${entry.path}, ${entry.size} bytes, time ${entry.mtime}`;
}
