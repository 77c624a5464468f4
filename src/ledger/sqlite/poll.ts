/**
 * One poll of one drop. A listing is compared entry by entry through the index of what lies at the drop; what was seen is
 * remembered as one bit an arrival. An entry that is known costs a look-up and no write, so a poll with nothing new commits nothing.
 */
import { basename } from "node:path/posix";
import type { StatementSync } from "node:sqlite";
import type { FileEntry, IsoInstant } from "../../model.ts";
import { Marks } from "../../support/marks.ts";
import type { PollRecord, Sighting } from "../ledger.ts";
import { brokenInvariant } from "../states.ts";
import { appendEvent, appendOrRenewEvent } from "./events.ts";
import { ARRIVAL_COLUMNS, type ArrivalCells, type ArrivalRow, arrivalOfCells, toArrival } from "./rows.ts";
import { row, type Store } from "./store.ts";

/** Arrivals that are marked as gone in one transaction. */
const GONE_AT_ONCE = 500;
/** Ids that are read at once. */
const IDS_AT_ONCE = 10_000;

export class SqlitePoll implements PollRecord {
  readonly #store: Store;
  readonly #drop: string;
  readonly #startedAt: IsoInstant;
  readonly firstContact: boolean;
  readonly #onEnd: () => void;
  readonly #seen = new Marks();
  readonly #resting: StatementSync;
  #ended = false;

  constructor(store: Store, drop: string, onEnd: () => void) {
    this.#store = store;
    this.#drop = drop;
    this.#startedAt = store.now();
    this.#onEnd = onEnd;
    this.#resting = store.sql(`SELECT id FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL
      AND parent_id IS NULL AND size = ? AND mtime = ? AND state <> 'settling'`);
    // Asked for each entry of each listing, and a row as an object costs several times as much memory.
    this.#resting.setReturnArrays(true);
    this.firstContact = row(store.sql("SELECT 1 FROM drops WHERE name = ?"), drop) === undefined;
  }

  async record(entries: readonly FileEntry[]): Promise<readonly Sighting[]> {
    this.#assertOpen();
    const seen: number[] = [];
    const sightings = await this.#store.write("poll.recorded", () => {
      const settling: Sighting[] = [];
      for (const entry of entries) {
        const sighted = this.#restingId(entry) ?? this.#sight(entry);
        if (typeof sighted === "number") seen.push(sighted);
        else settling.push(sighted);
      }
      return settling;
    });
    for (const id of seen) this.#seen.add(id);
    for (const { arrival } of sightings) this.#seen.add(arrival.id);
    return sightings;
  }

  async complete(): Promise<readonly number[]> {
    this.#assertOpen();
    const unseen = this.#unseen();
    const gone: number[] = [];
    while (gone.length < unseen.length) {
      const some = unseen.slice(gone.length, gone.length + GONE_AT_ONCE);
      await this.#store.write("poll.completed", () => {
        for (const id of some) leave(this.#store, id, "arrival.gone", "it is no longer listed at the drop");
      });
      gone.push(...some);
    }
    if (this.firstContact)
      await this.#store.write("poll.completed", () =>
        this.#store
          .sql("INSERT OR IGNORE INTO drops (name, first_listed_at) VALUES (?, ?)")
          .run(this.#drop, this.#startedAt),
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

  /** The arrival that lies there as it did and waits for nothing; of nearly all entries this is all that is asked. */
  #restingId(entry: FileEntry): number | undefined {
    const found = row<readonly [number]>(this.#resting, this.#drop, entry.path, entry.size, entry.mtime);
    return found?.[0];
  }

  #sight(entry: FileEntry): Sighting | number {
    const found = row<ArrivalRow>(
      this.#store.sql(
        "SELECT * FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL AND parent_id IS NULL",
      ),
      this.#drop,
      entry.path,
    );
    if (found === undefined) return this.#returnedId(entry) ?? this.#add(entry);
    if (found.size === entry.size && found.mtime === entry.mtime)
      return { arrival: toArrival(found), seen: "known" };
    if (found.state === "settling" || found.state === "unmatched") return this.#change(found, entry);
    leave(this.#store, found.id, "arrival.superseded", `another version came: ${sizeWords(entry)}`);
    return this.#add(entry);
  }

  /** A listing may still show a file that was finished after the listing had begun: that is the old one, and nothing new. */
  #returnedId(entry: FileEntry): number | null {
    const last = row<ArrivalRow>(
      this.#store.sql(
        "SELECT * FROM arrivals WHERE name = ? AND drop_name = ? AND path = ? AND parent_id IS NULL ORDER BY id DESC LIMIT 1",
      ),
      basename(entry.path),
      this.#drop,
      entry.path,
    );
    const same = last !== undefined && last.size === entry.size && last.mtime === entry.mtime;
    if (!same || last.gone_at === null || last.gone_at < this.#startedAt) return null;
    return last.id;
  }

  #add(entry: FileEntry): Sighting {
    const now = this.#store.now();
    const statement =
      this.#store.sql(`INSERT INTO arrivals (drop_name, path, name, size, mtime, state, reason, seen_at, changed_at)
        VALUES (?, ?, ?, ?, ?, 'settling', 'seen for the first time', ?, ?) RETURNING ${ARRIVAL_COLUMNS}`);
    statement.setReturnArrays(true);
    const added = row<ArrivalCells>(
      statement,
      this.#drop,
      entry.path,
      basename(entry.path),
      entry.size,
      entry.mtime,
      now,
      now,
    );
    if (added === undefined) throw brokenInvariant("record poll", entry.path, "no row came back");
    const arrival = arrivalOfCells(added);
    this.#tell(arrival.id, "arrival.settling", sizeWords(entry));
    return { arrival, seen: "new" };
  }

  #change(found: ArrivalRow, entry: FileEntry): Sighting {
    const reason = "its size or time has changed";
    const changed = row<ArrivalRow>(
      this.#store.sql(
        "UPDATE arrivals SET size = ?, mtime = ?, state = 'settling', reason = ?, changed_at = ? WHERE id = ? RETURNING *",
      ),
      entry.size,
      entry.mtime,
      reason,
      this.#store.now(),
      found.id,
    );
    appendOrRenewEvent(this.#store, {
      arrivalId: found.id,
      runId: null,
      operationId: null,
      what: "arrival.changed",
      detail: sizeWords(entry),
    });
    return { arrival: toArrival(changed ?? found), seen: "changed" };
  }

  /** Ids of what lies at the drop by the ledger, and was not in the listing. Read in parts, and these as one text: a row for each would cost more. */
  #unseen(): readonly number[] {
    const part = this.#store.sql(`SELECT json_group_array(id) AS ids, max(path) AS last FROM (
      SELECT id, path FROM arrivals WHERE drop_name = ? AND path > ? AND gone_at IS NULL AND parent_id IS NULL
        ORDER BY path LIMIT ${IDS_AT_ONCE})`);
    const unseen: number[] = [];
    for (let last: string | null = ""; last !== null; ) {
      const read: { readonly ids: string; readonly last: string | null } | undefined = row(
        part,
        this.#drop,
        last,
      );
      for (const id of JSON.parse(read?.ids ?? "[]") as readonly number[])
        if (!this.#seen.has(id)) unseen.push(id);
      last = read?.last ?? null;
    }
    return unseen.sort((a, b) => a - b);
  }

  #tell(arrivalId: number, what: string, detail: string): void {
    appendEvent(this.#store, { arrivalId, runId: null, operationId: null, what, detail });
  }
}

/** Inside a write. What has gone meanwhile stays as it is. */
function leave(store: Store, id: number, what: string, detail: string): void {
  const left = store
    .sql("UPDATE arrivals SET gone_at = ? WHERE id = ? AND gone_at IS NULL")
    .run(store.now(), id);
  if (left.changes > 0) appendEvent(store, { arrivalId: id, runId: null, operationId: null, what, detail });
}

function sizeWords(entry: FileEntry): string {
  return `${entry.path}, ${entry.size} bytes, time ${entry.mtime}`;
}
