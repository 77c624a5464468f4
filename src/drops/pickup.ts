/** One poll of one drop: list, record what was seen, settle, and hand what is ready to the gateway. */
import type { Arrival, ArrivalState, FileEntry } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import type { Drop } from "./drop.ts";
import type { DropOptions } from "./options.ts";
import { Settling } from "./settling.ts";

/** What pick-up needs of the ledger; `Ledger` has this shape. */
export interface PickupJournal {
  beginPoll(drop: string): Promise<PickupPoll>;
  advanceArrival(id: number, to: ArrivalState, reason: string): Promise<Arrival>;
  arrivalsIn(drop: string, states: readonly ArrivalState[], limit?: number): Promise<readonly Arrival[]>;
}

export interface PickupPoll {
  record(
    entries: readonly FileEntry[],
  ): Promise<readonly { readonly arrival: Arrival; readonly seen: "new" | "changed" | "known" }[]>;
  complete(): Promise<readonly Arrival[]>;
  abandon(): Promise<void>;
}

/**
 * Matches a settled arrival against the triggers, and opens its run or marks it unmatched; afterwards the
 * arrival is no longer `settling`. Called one after another. What it throws ends the poll; the arrival is offered again.
 */
export type Claim = (arrival: Arrival) => Promise<void>;

export interface PickupReport {
  /** Files in the listing. */
  readonly listed: number;
  /** Files whose size or time may still change. */
  readonly settling: number;
  /** Files under temporary names. */
  readonly temporary: number;
  /** Files that were handed to `claim`. */
  readonly claimed: number;
  /** Settled files beyond the limit of one poll; the next poll goes on with them. */
  readonly left: number;
  /** Arrivals that have gone from the listing. */
  readonly gone: number;
  /** Why the listing broke off or a claim failed; then the poll is not complete. */
  readonly error?: unknown;
}

/** For `runs --waiting`: a file that is not taken yet, and why. */
export interface WaitingFile {
  readonly path: string;
  readonly reason: string;
  readonly waitingMs: number;
}

export interface PickupFacts {
  readonly drop: Drop;
  readonly options: Pick<DropOptions, "settle" | "temporaryNames" | "perPollMax">;
  readonly journal: PickupJournal;
  readonly claim: Claim;
  readonly clock: Clock;
}

/** Entries recorded in one transaction. */
const CHUNK = 500;
/** Waiting files whose reasons are kept for people. */
const WAITING_SHOWN = 100;

interface Tally {
  listed: number;
  settling: number;
  temporary: number;
  claimed: number;
  left: number;
  gone: number;
}

export class Pickup {
  readonly #facts: PickupFacts;
  readonly #settling: Settling;
  #waiting: WaitingFile[] = [];
  #busy: Promise<unknown> = Promise.resolve();

  constructor(facts: PickupFacts) {
    this.#facts = facts;
    this.#settling = new Settling({
      observations: facts.options.settle.observations,
      intervalMs: facts.options.settle.interval,
      temporaryNames: facts.options.temporaryNames,
    });
  }

  /** Never throws for faults of the drop or the ledger: they are in the report. Polls and re-matches wait for each other. */
  poll(signal: AbortSignal): Promise<PickupReport> {
    return this.#inTurn(() => this.#poll(signal));
  }

  /** Offers the unmatched arrivals again, after the triggers changed. Answers how many were offered. */
  rematch(signal: AbortSignal): Promise<number> {
    return this.#inTurn(async () => {
      const { drop, journal, claim } = this.#facts;
      let offered = 0;
      for (const arrival of await journal.arrivalsIn(drop.name, ["unmatched"])) {
        if (signal.aborted) break;
        await claim(arrival);
        offered += 1;
      }
      return offered;
    });
  }

  /** As of the last poll. */
  waiting(): readonly WaitingFile[] {
    return this.#waiting;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#busy.then(work);
    this.#busy = turn.catch(() => undefined); // Its caller hears of it.
    return turn;
  }

  async #poll(signal: AbortSignal): Promise<PickupReport> {
    const tally = { listed: 0, settling: 0, temporary: 0, claimed: 0, left: 0, gone: 0 };
    const ready = new Oldest(this.#facts.options.perPollMax);
    const error = await this.#listAndSettle(tally, ready, signal);
    tally.left = ready.beyond;
    try {
      // A settled file is settled, also when another folder of the drop could not be listed.
      for (const arrival of ready.take()) {
        if (signal.aborted) break;
        await this.#facts.claim(arrival);
        this.#settling.forget(arrival.id);
        tally.claimed += 1;
      }
    } catch (thrown) {
      return { ...tally, error: error ?? thrown };
    }
    return error === null ? tally : { ...tally, error };
  }

  /** Answers what went wrong, or null when the listing was complete. */
  async #listAndSettle(tally: Tally, ready: Oldest, signal: AbortSignal): Promise<unknown> {
    const { drop, journal } = this.#facts;
    const waiting: WaitingFile[] = [];
    let poll: PickupPoll | null = null;
    try {
      poll = await journal.beginPoll(drop.name);
      let chunk: FileEntry[] = [];
      for await (const entry of drop.list(signal)) {
        chunk.push(entry);
        if (chunk.length < CHUNK) continue;
        await this.#recordChunk(poll, chunk, { tally, ready, waiting });
        chunk = [];
      }
      if (chunk.length > 0) await this.#recordChunk(poll, chunk, { tally, ready, waiting });
      const gone = await poll.complete();
      for (const arrival of gone) this.#settling.forget(arrival.id);
      tally.gone = gone.length;
      return null;
    } catch (thrown) {
      await poll?.abandon();
      return thrown;
    } finally {
      this.#waiting = waiting;
    }
  }

  async #recordChunk(
    poll: PickupPoll,
    entries: readonly FileEntry[],
    into: { readonly tally: Tally; readonly ready: Oldest; readonly waiting: WaitingFile[] },
  ): Promise<void> {
    into.tally.listed += entries.length;
    const nowMs = this.#facts.clock.monotonicMs();
    for (const { arrival, seen } of await poll.record(entries)) {
      if (arrival.state !== "settling") continue;
      const verdict = this.#settling.observe(arrival, nowMs);
      // Such a file may lie there for ever, so the ledger tells why; the other reasons pass with the next polls.
      if (!verdict.settled && verdict.temporary && seen !== "changed" && arrival.reason !== verdict.reason)
        await this.#facts.journal.advanceArrival(arrival.id, "settling", verdict.reason);
      if (verdict.settled) {
        into.ready.add(arrival);
        continue;
      }
      if (verdict.temporary) into.tally.temporary += 1;
      else into.tally.settling += 1;
      if (into.waiting.length < WAITING_SHOWN)
        into.waiting.push({
          path: arrival.path,
          reason: verdict.reason,
          waitingMs: nowMs - verdict.sinceMs,
        });
    }
  }
}

/** Keeps the oldest arrivals up to a limit, in bounded memory, and counts the others. */
class Oldest {
  readonly #max: number;
  #kept: Arrival[] = [];
  #added = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get beyond(): number {
    return Math.max(0, this.#added - this.#max);
  }

  add(arrival: Arrival): void {
    this.#added += 1;
    this.#kept.push(arrival);
    if (this.#kept.length >= this.#max * 2) this.#kept = this.take();
  }

  take(): Arrival[] {
    return this.#kept.toSorted((one, other) => one.id - other.id).slice(0, this.#max);
  }
}
