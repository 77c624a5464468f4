/** A journal in memory by the rules that the ledger documents (`PollRecord`, identity of arrivals). */

import type { PickupJournal, PickupPoll } from "#gateway/drops/pickup.ts";
import type { Arrival, ArrivalState, FileEntry } from "#gateway/model.ts";

export class MemoryJournal implements PickupJournal {
  /** Every arrival that was ever recorded. */
  readonly known: Arrival[] = [];
  /** Largest number of entries recorded at once. */
  chunkMax = 0;
  /** Calls of `advanceArrival`. */
  advances = 0;
  #polling = false;
  readonly #listed = new Set<string>();
  /** Ids of what the last complete listing did not show. */
  readonly #missing = new Set<number>();

  async beginPoll(drop: string): Promise<PickupPoll> {
    if (this.#polling) throw new Error("one poll at a time");
    this.#polling = true;
    const seen = new Set<number>();
    const atRest = new Set(
      this.known
        .filter((one) => one.drop === drop && one.goneAt === null && one.state !== "settling")
        .map(({ id }) => id)
        .filter((id) => !this.#missing.has(id)),
    );
    const end = () => {
      if (!this.#polling) throw new Error("the poll has ended");
      this.#polling = false;
    };
    return {
      archives: [],
      session: null,
      noteAtRest: (id) => {
        if (atRest.has(id)) seen.add(id);
        return atRest.has(id);
      },
      ownsRun: async () => false,
      wasThere: () => !this.#listed.has(drop),
      folderListed: () => undefined,
      cutShort: async () => ({ gone: [], missing: 0, awaited: [] }),
      record: async (entries, onId) => {
        this.chunkMax = Math.max(this.chunkMax, entries.length);
        const sightings = entries.map((entry) => this.#sight(drop, entry));
        for (const { arrival } of sightings) {
          seen.add(arrival.id);
          this.#missing.delete(arrival.id);
          onId?.(arrival, arrival.id);
        }
        return sightings.filter(({ arrival }) => arrival.state === "settling");
      },
      complete: async () => {
        end();
        this.#listed.add(drop);
        const unseen = this.known.filter((one) => one.drop === drop && one.goneAt === null && !seen.has(one.id));
        const went = unseen.filter(({ id }) => this.#missing.has(id));
        for (const { id } of unseen) this.#missing.add(id);
        const gone = went.map((one) => this.#put({ ...one, goneAt: "now" }).id);
        return { gone, missing: unseen.length - went.length, awaited: [] };
      },
      abandon: async () => {
        this.#polling = false;
      },
    };
  }

  async awaited(): Promise<readonly []> {
    return [];
  }

  async arrivals(ids: readonly number[]): Promise<readonly Arrival[]> {
    return ids.flatMap((id) => this.known[id - 1] ?? []);
  }

  async arrivalsIn(
    drop: string,
    states: readonly ArrivalState[],
    limit?: number,
    after = 0,
  ): Promise<readonly Arrival[]> {
    const found = this.known.filter(
      (one) => one.drop === drop && one.goneAt === null && states.includes(one.state) && one.id > after,
    );
    return found.slice(0, limit);
  }

  settlingAges(drop: string, limit: number, after: number): Promise<readonly Arrival[]> {
    return this.arrivalsIn(drop, ["settling"], limit, after);
  }

  async advanceArrival(id: number, state: ArrivalState, reason: string): Promise<Arrival> {
    const arrival = this.known.find((one) => one.id === id);
    if (arrival === undefined) throw new Error(`no arrival ${id}`);
    this.advances += 1;
    return this.#put({ ...arrival, state, reason });
  }

  #sight(drop: string, entry: FileEntry): { arrival: Arrival; seen: "new" | "changed" | "known" } {
    const at = this.known.findLast((one) => one.drop === drop && one.path === entry.path && one.goneAt === null);
    if (at !== undefined && at.size === entry.size && at.mtime === entry.mtime) return { arrival: at, seen: "known" };
    if (at !== undefined && (at.state === "settling" || at.state === "unmatched"))
      return { arrival: this.#put({ ...at, ...entry, state: "settling" }), seen: "changed" };
    if (at !== undefined) this.#put({ ...at, goneAt: "now" });
    const arrival: Arrival = {
      id: this.known.length + 1,
      drop,
      ...entry,
      parentId: null,
      sha256: null,
      state: "settling",
      reason: "",
      seenAt: "now",
      changedAt: "now",
      goneAt: null,
    };
    this.known.push(arrival);
    return { arrival, seen: "new" };
  }

  #put(arrival: Arrival): Arrival {
    this.known[arrival.id - 1] = arrival;
    return arrival;
  }
}
