/**
 * One poll of one drop. A listing is compared entry by entry through the index of what lies at the drop; what was seen is
 * remembered as one bit an arrival. An entry that is known costs a look-up and no write, so a poll with nothing new commits nothing.
 */
import { basename } from "node:path/posix";
import type { Arrival, FileEntry, IsoInstant } from "../../model.ts";
import { Marks } from "../../support/marks.ts";
import type { PollRecord, Sighting } from "../ledger.ts";
import { brokenInvariant } from "../states.ts";
import { appendEvent, appendOrRenewEvent } from "./events.ts";
import { type ArrivalRow, toArrival } from "./rows.ts";
import { cells, change, execute, row, rowEach, type Steps, type Store } from "./store.ts";

/** Arrivals that are marked as gone in one transaction. */
const GONE_AT_ONCE = 500;
/** Ids that are read at once. */
const IDS_AT_ONCE = 10_000;

/** Of nearly all entries this is all that is asked: the arrival that lies there as it did and waits for nothing. */
const RESTING = `SELECT id FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL
  AND parent_id IS NULL AND size = ? AND mtime = ? AND state <> 'settling'`;

export class LedgerPoll implements PollRecord {
  readonly #store: Store;
  readonly #drop: string;
  readonly #startedAt: IsoInstant;
  readonly #fence: number | null;
  readonly firstContact: boolean;
  readonly #onEnd: () => void;
  readonly #seen = new Marks();
  #ended = false;

  private constructor(store: Store, drop: string, firstContact: boolean, onEnd: () => void) {
    this.#store = store;
    this.#drop = drop;
    this.#startedAt = store.now();
    this.#fence = store.session;
    this.#onEnd = onEnd;
    this.firstContact = firstContact;
  }

  static async begin(store: Store, drop: string, onEnd: () => void): Promise<LedgerPoll> {
    const known = await store.look(() => row("SELECT 1 AS known FROM drops WHERE name = ?", drop));
    return new LedgerPoll(store, drop, known === undefined, onEnd);
  }

  async record(entries: readonly FileEntry[]): Promise<readonly Sighting[]> {
    this.#assertOpen();
    const { seen, settling } = await this.#store.write("poll.recorded", () => this.#recordAll(entries));
    for (const id of seen) this.#seen.add(id);
    for (const { arrival } of settling) this.#seen.add(arrival.id);
    return settling;
  }

  async complete(): Promise<readonly number[]> {
    this.#assertOpen();
    const unseen = await this.#unseen();
    const gone: number[] = [];
    while (gone.length < unseen.length) {
      const some = unseen.slice(gone.length, gone.length + GONE_AT_ONCE);
      await this.#store.write("poll.completed", () => this.#leaveAll(some));
      gone.push(...some);
    }
    if (this.firstContact)
      await this.#store.write("poll.completed", () =>
        execute(
          "INSERT INTO drops (name, first_listed_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
          this.#drop,
          this.#startedAt,
        ),
      );
    this.#end();
    return gone;
  }

  async abandon(): Promise<void> {
    if (!this.#ended) this.#end();
  }

  #assertOpen(): void {
    if (this.#ended) throw brokenInvariant("record poll", this.#drop, "this poll has ended");
  }

  #end(): void {
    this.#ended = true;
    this.#onEnd();
  }

  *#recordAll(
    entries: readonly FileEntry[],
  ): Steps<{ readonly seen: readonly number[]; readonly settling: readonly Sighting[] }> {
    yield* this.#store.assertDrop(this.#drop, this.#fence);
    const seen: number[] = [];
    const settling: Sighting[] = [];
    const resting = yield* rowEach<readonly [number]>(
      RESTING,
      ["text", "text", "bigint", "text"],
      entries.map((entry) => [this.#drop, entry.path, entry.size, entry.mtime]),
    );
    for (const [index, entry] of entries.entries()) {
      const sighted = resting[index]?.[0] ?? (yield* this.#sight(entry));
      if (typeof sighted === "number") seen.push(sighted);
      else settling.push(sighted);
    }
    return { seen, settling };
  }

  *#sight(entry: FileEntry): Steps<Sighting | number> {
    const found = yield* row<ArrivalRow>(
      "SELECT * FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL AND parent_id IS NULL",
      this.#drop,
      entry.path,
    );
    if (found === undefined) return (yield* this.#returnedId(entry)) ?? (yield* this.#add(entry));
    if (found.size === entry.size && found.mtime === entry.mtime)
      return { arrival: toArrival(found), seen: "known" };
    if (found.state === "settling" || found.state === "unmatched") return yield* this.#change(found, entry);
    yield* leave(this.#store, found.id, "arrival.superseded", `another version came: ${sizeWords(entry)}`);
    return yield* this.#add(entry);
  }

  /** A listing may still show a file that was finished after the listing had begun: that is the old one, and nothing new. */
  *#returnedId(entry: FileEntry): Steps<number | null> {
    const last = yield* row<ArrivalRow>(
      "SELECT * FROM arrivals WHERE name = ? AND drop_name = ? AND path = ? AND parent_id IS NULL ORDER BY id DESC LIMIT 1",
      basename(entry.path),
      this.#drop,
      entry.path,
    );
    const same = last !== undefined && last.size === entry.size && last.mtime === entry.mtime;
    if (!same || last.gone_at === null || last.gone_at < this.#startedAt) return null;
    return last.id;
  }

  *#add(entry: FileEntry): Steps<Sighting> {
    const now = this.#store.now();
    const { path, size, mtime } = entry;
    const state = "settling";
    const reason = "seen for the first time";
    const [added] = yield* cells<readonly [id: number]>(
      `INSERT INTO arrivals (drop_name, path, name, size, mtime, state, reason, seen_at, changed_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      this.#drop,
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
      drop: this.#drop,
      path,
      size,
      mtime,
      state,
      reason,
      seenAt: now,
      changedAt: now,
    } as const;
    const arrival: Arrival = { ...facts, id: added[0], parentId: null, sha256: null, goneAt: null };
    const told = { arrivalId: arrival.id, runId: null, operationId: null };
    yield* appendEvent(this.#store, { ...told, what: "arrival.settling", detail: sizeWords(entry) }, arrival);
    return { arrival, seen: "new" };
  }

  *#change(found: ArrivalRow, entry: FileEntry): Steps<Sighting> {
    const reason = "its size or time has changed";
    const changed = yield* row<ArrivalRow>(
      "UPDATE arrivals SET size = ?, mtime = ?, state = 'settling', reason = ?, changed_at = ? WHERE id = ? RETURNING *",
      entry.size,
      entry.mtime,
      reason,
      this.#store.now(),
      found.id,
    );
    yield* appendOrRenewEvent(this.#store, {
      arrivalId: found.id,
      runId: null,
      operationId: null,
      what: "arrival.changed",
      detail: sizeWords(entry),
    });
    return { arrival: toArrival(changed ?? found), seen: "changed" };
  }

  /** Ids of what lies at the drop by the ledger, and was not in the listing. Read in parts, and these as one text: a row for each would cost more. */
  async #unseen(): Promise<readonly number[]> {
    const sql = `SELECT ${this.#store.dialect.jsonArray("id")} AS ids, max(path) AS last FROM (
      SELECT id, path FROM arrivals WHERE drop_name = ? AND path > ? AND gone_at IS NULL AND parent_id IS NULL
        ORDER BY path LIMIT ${IDS_AT_ONCE}) AS part`;
    const unseen: number[] = [];
    for (let last: string | null = ""; last !== null; ) {
      const after: string = last;
      const read: Part | undefined = await this.#store.look(() => row<Part>(sql, this.#drop, after));
      for (const id of JSON.parse(read?.ids ?? "[]") as readonly number[])
        if (!this.#seen.has(id)) unseen.push(id);
      last = read?.last ?? null;
    }
    return unseen.sort((a, b) => a - b);
  }

  *#leaveAll(ids: readonly number[]): Steps<void> {
    yield* this.#store.assertDrop(this.#drop, this.#fence);
    for (const id of ids) yield* leave(this.#store, id, "arrival.gone", "it is no longer listed at the drop");
  }
}

interface Part {
  readonly ids: string;
  readonly last: string | null;
}

/** Inside a write. What has gone meanwhile stays as it is. */
function* leave(store: Store, id: number, what: string, detail: string): Steps<void> {
  const left = yield* change(
    "UPDATE arrivals SET gone_at = ? WHERE id = ? AND gone_at IS NULL",
    store.now(),
    id,
  );
  if (left > 0) yield* appendEvent(store, { arrivalId: id, runId: null, operationId: null, what, detail });
}

function sizeWords(entry: FileEntry): string {
  return `${entry.path}, ${entry.size} bytes, time ${entry.mtime}`;
}
