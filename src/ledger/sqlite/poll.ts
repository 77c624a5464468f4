/**
 * One poll of one drop. A listing is compared entry by entry through the index of what lies at the drop; what was seen is
 * remembered as one bit an arrival. An entry that is known costs a look-up and no write, so a poll with nothing new commits nothing.
 */
import { basename } from "node:path/posix";
import type { Arrival, FileEntry, IsoInstant } from "../../model.ts";
import type { PollRecord, Sighting } from "../ledger.ts";
import { brokenInvariant } from "../states.ts";
import { appendEvent, appendOrRenewEvent } from "./events.ts";
import { type ArrivalRow, toArrival } from "./rows.ts";
import { row, type Store } from "./store.ts";

export class SqlitePoll implements PollRecord {
  readonly #store: Store;
  readonly #drop: string;
  readonly #startedAt: IsoInstant;
  readonly firstContact: boolean;
  readonly #onEnd: () => void;
  readonly #seen = new Marks();
  #ended = false;

  constructor(store: Store, drop: string, onEnd: () => void) {
    this.#store = store;
    this.#drop = drop;
    this.#startedAt = store.now();
    this.#onEnd = onEnd;
    this.firstContact = row(store.sql("SELECT 1 FROM drops WHERE name = ?"), drop) === undefined;
  }

  async record(entries: readonly FileEntry[]): Promise<readonly Sighting[]> {
    this.#assertOpen();
    const sightings = await this.#store.write("poll.recorded", () =>
      entries.map((entry) => this.#sight(entry)),
    );
    for (const { arrival } of sightings) this.#seen.add(arrival.id);
    return sightings;
  }

  async complete(): Promise<readonly Arrival[]> {
    this.#assertOpen();
    const gone = await this.#store.write("poll.completed", () => {
      if (this.firstContact)
        this.#store
          .sql("INSERT OR IGNORE INTO drops (name, first_listed_at) VALUES (?, ?)")
          .run(this.#drop, this.#startedAt);
      return this.#markGone();
    });
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

  #sight(entry: FileEntry): Sighting {
    const found = row<ArrivalRow>(
      this.#store.sql(
        "SELECT * FROM arrivals WHERE drop_name = ? AND path = ? AND gone_at IS NULL AND parent_id IS NULL",
      ),
      this.#drop,
      entry.path,
    );
    if (found === undefined) return this.#returned(entry) ?? this.#add(entry);
    if (found.size === entry.size && found.mtime === entry.mtime)
      return { arrival: toArrival(found), seen: "known" };
    if (found.state === "settling" || found.state === "unmatched") return this.#change(found, entry);
    leave(this.#store, found.id, "arrival.superseded", `another version came: ${sizeWords(entry)}`);
    return this.#add(entry);
  }

  /** A listing may still show a file that was finished after the listing had begun: that is the old one, and nothing new. */
  #returned(entry: FileEntry): Sighting | null {
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
    return { arrival: toArrival(last), seen: "known" };
  }

  #add(entry: FileEntry): Sighting {
    const now = this.#store.now();
    const added = row<ArrivalRow>(
      this.#store.sql(`INSERT INTO arrivals (drop_name, path, name, size, mtime, state, reason, seen_at, changed_at)
        VALUES (?, ?, ?, ?, ?, 'settling', 'seen for the first time', ?, ?) RETURNING *`),
      this.#drop,
      entry.path,
      basename(entry.path),
      entry.size,
      entry.mtime,
      now,
      now,
    );
    if (added === undefined) throw brokenInvariant("record poll", entry.path, "no row came back");
    this.#tell(added.id, "arrival.settling", sizeWords(entry));
    return { arrival: toArrival(added), seen: "new" };
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

  #markGone(): readonly Arrival[] {
    const lying = this.#store
      .sql("SELECT id FROM arrivals WHERE drop_name = ? AND gone_at IS NULL AND parent_id IS NULL")
      .iterate(this.#drop) as Iterable<unknown> as Iterable<{ readonly id: number }>;
    const unseen: number[] = [];
    for (const { id } of lying) if (!this.#seen.has(id)) unseen.push(id);
    return unseen
      .sort((a, b) => a - b)
      .map((id) => leave(this.#store, id, "arrival.gone", "it is no longer listed at the drop"));
  }

  #tell(arrivalId: number, what: string, detail: string): void {
    appendEvent(this.#store, { arrivalId, runId: null, operationId: null, what, detail });
  }
}

function leave(store: Store, id: number, what: string, detail: string): Arrival {
  const left = row<ArrivalRow>(
    store.sql("UPDATE arrivals SET gone_at = ? WHERE id = ? RETURNING *"),
    store.now(),
    id,
  );
  if (left === undefined) throw brokenInvariant("record poll", String(id), "no row came back");
  appendEvent(store, { arrivalId: id, runId: null, operationId: null, what, detail });
  return toArrival(left);
}

function sizeWords(entry: FileEntry): string {
  return `${entry.path}, ${entry.size} bytes, time ${entry.mtime}`;
}

/** A set of arrival ids as bits, in pages, so that old ids cost nothing. */
class Marks {
  readonly #pages = new Map<number, Uint32Array>();

  add(id: number): void {
    const number = Math.floor(id / 32_768);
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = new Uint32Array(1024);
      this.#pages.set(number, page);
    }
    const bit = id % 32_768;
    page[bit >>> 5] = (page[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }

  has(id: number): boolean {
    const bit = id % 32_768;
    const word = this.#pages.get(Math.floor(id / 32_768))?.[bit >>> 5] ?? 0;
    return (word & (1 << (bit & 31))) !== 0;
  }
}
