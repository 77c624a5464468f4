/** One poll of one drop: lists, records, settles, and passes the ready files to the gateway. */
import { posix } from "node:path";
import { BitSet } from "#core/bitset.ts";
import { isoInstant } from "#core/clock.ts";
import type { Arrival, FileEntry, UntakenFile } from "../model.ts";
import { ArchivedNames } from "./archived-names.ts";
import { whySkipped } from "./initial.ts";
import { KnownFiles } from "./known-files.ts";
import { type Aged, type Awaited, awaitedElsewhere, Oldest, OrderWaits } from "./order-waits.ts";
import { archiveFolders } from "./paths.ts";
import type { ListingEnd, PickupFacts, PickupPoll } from "./pickup-contract.ts";
import { type Group, inPickupOrder } from "./pickup-order.ts";
import { Settling, temporaryPattern } from "./settle.ts";

export type { PickupFacts, PickupJournal, PickupPoll } from "./pickup-contract.ts";

export const NOTHING: PickupReport = {
  listed: 0,
  settling: 0,
  temporary: 0,
  skipped: 0,
  overdue: 0,
  claimed: 0,
  left: 0,
  orderWaitMs: null,
  gone: 0,
  missing: 0,
};

const SHOWN = 100;

/** Arrivals that share a claim, and so its commits and syncs: few after a listing, so that work on them begins. */
const CLAIMED_AT_ONCE = { first: 50, max: 1_600 };
/**
 * Entries recorded in one transaction. More would be no faster, and outlive the young generation of the heap.
 */
const CHUNK = 200;
/** Arrivals read in one query. */
const READ_AT_ONCE = 100;
/**
 * Settled files whose ages are kept for later pickups: reading them again would read every file that is left.
 */
const AGES_KEPT = 20_000;

export class Pickup {
  readonly #facts: PickupFacts;
  readonly #settling: Settling;
  readonly #doneFiles: DoneFiles | null;
  readonly #orderWaits: OrderWaits;
  readonly #known: KnownFiles;
  /** Arrivals that were reported as overdue. */
  readonly #reportedOverdue = new Set<number>();
  #waiting = new UntakenFiles();
  /** Ids of the arrivals that the last listing showed as settled and that were not picked up yet. */
  #ready = new BitSet();
  #readyCount = 0;
  /** The oldest of these, oldest first. */
  #left: readonly Aged[] = [];
  /** The result of the last listing. */
  #listed: PickupReport = NOTHING;
  #busy: Promise<unknown> = Promise.resolve();

  constructor(facts: PickupFacts, known = new KnownFiles()) {
    [this.#facts, this.#known] = [facts, known];
    const { doneFile } = facts.options.settle;
    this.#doneFiles = doneFile === undefined ? null : new DoneFiles(doneFile);
    const { order = { by: "modified", wait: 0 } } = facts.options;
    const modifiedMs = (file: Aged) => facts.drop.modifiedMs({ ...file, size: 0 });
    this.#orderWaits = new OrderWaits(order, { lanesOf: facts.lanesOf ?? (() => []), modifiedMs });
    this.#settling = new Settling({
      observations: facts.options.settle.observations,
      intervalMs: facts.options.settle.interval,
      pauseMaxMs: facts.options.settle.limit,
      temporaryNames: facts.options.temporaryNames,
    });
  }

  /**
   * Never throws for faults of the drop or the ledger: they are in the report. Polls and re-matches wait for
   * each other.
   */
  poll(signal: AbortSignal): Promise<PickupReport> {
    return this.#inTurn(() => this.#poll(signal));
  }

  /**
   * Picks up files that the last listing showed as settled and that are left, without a new listing.
   * Otherwise as `poll`.
   */
  takeLeft(signal: AbortSignal): Promise<PickupReport> {
    return this.#inTurn(async () => {
      const found = { ...this.#listed, claimed: 0, left: 0, orderWaitMs: null, gone: 0, missing: 0 };
      try {
        if (this.#left.length === 0 && this.#readyCount > 0) await this.#readLeft();
      } catch (error) {
        return { ...found, error };
      }
      return this.#take(found, null, CLAIMED_AT_ONCE.max, signal);
    });
  }

  /** Offers the unmatched arrivals again, after the triggers changed. Returns how many were offered. */
  rematch(signal: AbortSignal): Promise<number> {
    return this.#inTurn(() => rematch(this.#facts, CLAIMED_AT_ONCE.first, signal));
  }

  /** As of the last poll. */
  waiting(): readonly UntakenFile[] {
    return this.#waiting.list;
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#busy.then(work);
    this.#busy = turn.catch(() => undefined); // The caller of the poll handles it.
    return turn;
  }

  async #readLeft(): Promise<void> {
    const { drop, journal } = this.#facts;
    const oldest = this.#newOldest();
    for (let after = 0, more = true; more; ) {
      const some = await journal.settlingAges(drop.name, READ_AT_ONCE, after);
      for (const age of some) if (this.#ready.has(age.id)) oldest.add(age);
      after = some.at(-1)?.id ?? after;
      more = some.length === READ_AT_ONCE;
    }
    this.#keep(oldest);
  }

  #newOldest(): Oldest {
    const { perPollMax, order } = this.#facts.options;
    return new Oldest(Math.max(perPollMax, this.#facts.agesKept ?? AGES_KEPT), order?.by);
  }

  #keep(oldest: Oldest): void {
    this.#left = oldest.take();
    this.#readyCount = this.#left.length + oldest.beyond;
  }

  async #poll(signal: AbortSignal): Promise<PickupReport> {
    const tally: Tally = { ...NOTHING };
    const oldest = this.#newOldest();
    this.#ready = new BitSet();
    const unordered = (thrown: unknown) => ({ error: thrown, isOrdered: false });
    const { error, isOrdered } = await this.#listAndSettle(tally, oldest, signal).catch(unordered);
    // It is unknown which files it would overtake: the next poll offers it again.
    if (!isOrdered) this.#ready = new BitSet();
    this.#keep(isOrdered ? oldest : this.#newOldest());
    this.#listed = { ...tally };
    // A settled file is picked up even when another folder of the drop could not be listed.
    return this.#take(tally, error, CLAIMED_AT_ONCE.first, signal);
  }

  async #take(found: PickupReport, error: unknown, first: number, signal: AbortSignal): Promise<PickupReport> {
    const { journal, options } = this.#facts;
    const tally: Tally = { ...found };
    try {
      await this.#lookElsewhere();
    } catch (thrown) {
      return { ...tally, left: this.#readyCount, error: error ?? thrown };
    }
    const warnings = this.#keepOrder(tally);
    const batch = this.#left.slice(0, options.perPollMax);
    tally.left = this.#readyCount - batch.length;
    let done = 0;
    try {
      for (let atOnce = first; done < batch.length && !signal.aborted; atOnce *= 2) {
        const some = batch.slice(done, done + Math.min(atOnce, CLAIMED_AT_ONCE.max));
        const arrivals = await journal.arrivals(some.map(({ id }) => id));
        const settled = arrivals.filter(({ state }) => state === "settling");
        if (settled.length > 0) await this.#facts.claim(settled, warnings);
        tally.claimed += settled.length;
        for (const { id } of settled) this.#forget(id);
        for (const { id } of some) this.#ready.delete(id);
        done += some.length;
      }
    } catch (thrown) {
      return { ...tally, error: error ?? thrown };
    } finally {
      // The remaining files are offered again.
      this.#left = this.#left.slice(done);
      this.#readyCount -= done;
    }
    return error === null ? tally : { ...tally, error };
  }

  /** A lane may wait for a file of another drop. */
  async #lookElsewhere(): Promise<void> {
    const { journal, clock, laneMates } = this.#facts;
    if (laneMates === undefined || this.#left.length === 0) return;
    const found = await awaitedElsewhere(laneMates(), journal);
    this.#orderWaits.setElsewhere(found, clock.now().epochMilliseconds);
  }

  /**
   * Files that must wait for an earlier one are offered by a later listing. Returns the warnings of the
   * others, by their ids.
   */
  #keepOrder(tally: Tally): ReadonlyMap<number, string> {
    const nowMs = this.#facts.clock.now().epochMilliseconds;
    const warnings = new Map<number, string>();
    const going: Aged[] = [];
    const verdicts = this.#orderWaits.judge(this.#left, nowMs);
    for (const [at, file] of this.#left.entries()) {
      const verdict = verdicts[at];
      if (verdict?.status !== "waits") {
        going.push(file);
        if (verdict !== undefined && verdict.warning !== null) warnings.set(file.id, verdict.warning);
        continue;
      }
      this.#ready.delete(file.id);
      tally.settling += 1;
      tally.orderWaitMs = Math.min(tally.orderWaitMs ?? Number.POSITIVE_INFINITY, verdict.leftMs);
      this.#showWaiting(file, verdict.reason);
    }
    this.#readyCount -= this.#left.length - going.length;
    this.#left = going;
    return warnings;
  }

  #showWaiting({ path }: Aged, reason: string): void {
    const since = isoInstant(this.#facts.clock.now());
    this.#waiting.add({ path, reason, waitingMs: 0, since, overdue: false });
  }

  /**
   * `error`: the fault, or null when the listing was complete. `isOrdered`: it is known which files later
   * ones must wait for.
   */
  async #listAndSettle(
    tally: Tally,
    oldest: Oldest,
    signal: AbortSignal,
  ): Promise<{ readonly error: unknown; readonly isOrdered: boolean }> {
    const { clock, drop, journal, options } = this.#facts;
    const waiting = new UntakenFiles();
    let poll: PickupPoll | null = null;
    let found: Found | null = null;
    let isRecorded = true;
    let awaited: readonly Awaited[] | null = null;
    try {
      poll = await journal.beginPoll(drop.name, options.finish === undefined ? [] : archiveFolders(options.finish));
      const open = poll;
      const wasThere = (path: string) => open.wasThere(path);
      const archived = new ArchivedNames(poll);
      found = { tally, oldest, waiting, wasThere, archived, done: new Set(), undecided: [], unsettled: [] };
      const onFolder = this.#orderWaits.cutFolders.begin((folder, below) => open.folderListed(folder, below));
      this.#known.begin(poll);
      const listing = notAtRest(drop.list(signal, onFolder), this.#known, this.#doneFiles, found);
      for await (const chunk of inPickupOrder(listing, CHUNK, clock, options.order?.by)) {
        // Thousands may be listed and not recorded; a stop does not wait for them.
        signal.throwIfAborted();
        isRecorded = false;
        await this.#recordChunk(poll, chunk, found);
        isRecorded = true;
      }
      signal.throwIfAborted(); // A drop may end its listing early then, as if it were complete.
      this.#orderWaits.cutFolders.end();
      this.#known.complete();
      awaited = this.#endListing(await poll.complete(this.#mayBeAwaited), tally);
      await this.#decideByDoneFiles(found);
      this.#setAwaited(awaited, found.unsettled);
      return { error: null, isOrdered: true };
    } catch (thrown) {
      if (poll === null || signal.aborted) return { error: thrown, isOrdered: false };
      this.#orderWaits.cutFolders.broke(isRecorded);
      // The listing broke off: later files wait for those that it did not reach.
      awaited ??= this.#endListing(await poll.cutShort(this.#mayBeAwaited, isRecorded), tally);
      // A done-file that was listed counts, also when another folder could not be.
      if (found !== null) await this.#decideByDoneFiles(found);
      this.#setAwaited(awaited, found?.unsettled ?? []);
      return { error: thrown, isOrdered: true };
    } finally {
      this.#waiting = waiting;
      await poll?.abandon();
    }
  }

  #endListing({ gone, missing, awaited }: ListingEnd, tally: Tally): readonly Awaited[] {
    for (const id of gone) this.#forget(id);
    tally.gone = gone.length;
    tally.missing = missing;
    return awaited;
  }

  /** No file waits for one under a temporary name, which may never get its final name. */
  readonly #mayBeAwaited = (path: string): boolean =>
    temporaryPattern(path, this.#facts.options.temporaryNames) === null;

  /** An awaited file that has settled is offered with the files that wait for it, and comes first. */
  #setAwaited(awaited: readonly Awaited[], unsettled: readonly Awaited[]): void {
    const settling = [...awaited, ...unsettled].filter(({ id }) => !this.#ready.has(id));
    this.#orderWaits.set(settling, this.#facts.clock.now().epochMilliseconds);
    this.#orderWaits.cutFolders.setUnsettled(unsettled.map(({ path }) => path));
  }

  #forget(id: number): void {
    this.#settling.forget(id);
    this.#reportedOverdue.delete(id);
  }

  async #recordChunk(poll: PickupPoll, { entries, listedMs }: Group, found: Found): Promise<void> {
    const nowMs = this.#facts.clock.monotonicMs();
    const noted: Promise<unknown>[] = [];
    for (const { arrival, seen } of await this.#known.record(poll, entries)) {
      const doneFile = found.done.has(arrival.path);
      const skipped = doneFile
        ? "it is a done-file: it marks another file as complete"
        : ((await found.archived.whyArchived(arrival.path)) ?? this.#whySkipped(arrival, found));
      if (skipped !== null) {
        found.tally.skipped += 1;
        this.#forget(arrival.id);
        noted.push(this.#facts.journal.advanceArrival(arrival.id, "skipped", skipped));
        continue;
      }
      const verdict = this.#settling.observe(arrival, nowMs, listedMs);
      if (verdict.settled && this.#doneFiles !== null) found.undecided.push({ arrival, sinceMs: verdict.sinceMs });
      else if (verdict.settled) this.#offer(arrival, found);
      else {
        const sinceMs = this.#orderWaits.cutFolders.awaitedSinceMs(arrival.path);
        if (sinceMs !== null && this.#mayBeAwaited(arrival.path))
          found.unsettled.push({
            ...arrival,
            since: isoInstant(Temporal.Instant.fromEpochMilliseconds(sinceMs)),
          });
        noted.push(this.#wait(arrival, verdict, seen === "changed", found));
      }
    }
    await Promise.all(noted);
  }

  #offer(arrival: Arrival, { oldest }: Found): void {
    this.#ready.add(arrival.id);
    oldest.add(arrival);
  }

  #whySkipped(arrival: Arrival, found: Found): string | null {
    if (!found.wasThere(arrival.path)) return null;
    return whySkipped(this.#facts.options.initial, this.#facts.drop.modifiedMs(arrival));
  }

  /** After the listing, since a done-file may be listed after its file. */
  async #decideByDoneFiles(found: Found): Promise<void> {
    const noted: Promise<unknown>[] = [];
    for (const { arrival, sinceMs } of found.undecided) {
      const doneFile = this.#doneFiles?.of(arrival.path) ?? "";
      if (found.done.has(doneFile)) {
        this.#offer(arrival, found);
        continue;
      }
      const verdict = { reason: `waits for its done-file ${doneFile}`, sinceMs, temporary: true };
      noted.push(this.#wait(arrival, verdict, false, found));
    }
    await Promise.all(noted);
  }

  async #wait(
    arrival: Arrival,
    verdict: { readonly reason: string; readonly sinceMs: number; readonly temporary: boolean },
    changed: boolean,
    { tally, waiting }: Found,
  ): Promise<void> {
    const { clock, journal, onOverdue, options } = this.#facts;
    const waitingMs = clock.monotonicMs() - verdict.sinceMs;
    const overdue = waitingMs >= options.settle.limit;
    const reason = overdue ? `has not settled for a long time: ${verdict.reason}` : verdict.reason;
    const file = { path: arrival.path, reason, waitingMs, since: arrival.seenAt, overdue };
    if (verdict.temporary) tally.temporary += 1;
    else tally.settling += 1;
    if (overdue) tally.overdue += 1;
    if (overdue && !this.#reportedOverdue.has(arrival.id)) {
      this.#reportedOverdue.add(arrival.id);
      onOverdue?.(file);
    }
    waiting.add(file);
    // Such a file may stay for ever, so the ledger records why; the other reasons pass with the next polls.
    if ((verdict.temporary || overdue) && !changed && arrival.reason !== reason)
      await journal.advanceArrival(arrival.id, "settling", reason);
  }
}

// The findings of one poll so far.

type Tally = { -readonly [Part in keyof Omit<PickupReport, "error">]: PickupReport[Part] };

interface Found {
  readonly tally: Tally;
  readonly oldest: Oldest;
  readonly waiting: UntakenFiles;
  /** Whether a file was there at the first contact. */
  readonly wasThere: (path: string) => boolean;
  readonly archived: ArchivedNames;
  /** Paths of the done-files in the listing. */
  readonly done: Set<string>;
  /**
   * Files that have not settled, in folders whose listing had broken off: later ones of their lanes wait for
   * them.
   */
  readonly unsettled: Awaited[];
  /** Settled files that wait for the decision about their done-file. */
  readonly undecided: { readonly arrival: Arrival; readonly sinceMs: number }[];
}

/** The entries of a listing that the ledger is asked for. Nothing is to be done about the others. */
async function* notAtRest(
  listing: AsyncIterable<readonly FileEntry[]>,
  known: Pick<KnownFiles, "notAtRest">,
  doneFiles: DoneFiles | null,
  found: Pick<Found, "done" | "archived" | "tally">,
): AsyncGenerator<readonly FileEntry[]> {
  for await (const entries of listing) {
    if (doneFiles !== null) for (const { path } of entries) if (doneFiles.isDoneFile(path)) found.done.add(path);
    const outside = found.archived.outside(entries);
    found.tally.listed += outside.length;
    const asked = known.notAtRest(outside);
    if (asked.length > 0) yield asked;
  }
}

/** Files that one poll did not pick up, for operators. The number is limited; the overdue come first. */
class UntakenFiles {
  readonly #files: UntakenFile[] = [];

  get list(): readonly UntakenFile[] {
    return this.#files;
  }

  add(file: UntakenFile): void {
    if (this.#files.length < SHOWN) {
      this.#files.push(file);
      return;
    }
    if (!file.overdue) return;
    const at = this.#files.findIndex((one) => !one.overdue);
    if (at >= 0) this.#files[at] = file;
  }
}

/** Done-files: second files by which a sender marks a file as complete. */
class DoneFiles {
  readonly #template: string;
  readonly #pattern: RegExp;

  /** `template` contains `{name}` or `{stem}` once, such as `{name}.done`. */
  constructor(template: string) {
    this.#template = template;
    const [before = "", after = ""] = template.split(/\{(?:name|stem)\}/);
    this.#pattern = new RegExp(`^${RegExp.escape(before)}.+${RegExp.escape(after)}$`, "s");
  }

  /** Whether the name of a file is that of a done-file. */
  isDoneFile(path: string): boolean {
    return this.#pattern.test(posix.basename(path));
  }

  /** Path of the done-file of a file. */
  of(path: string): string {
    const { dir, base, name } = posix.parse(path);
    // By a function, since a dollar sign has a meaning in a replacement text.
    return posix.join(
      dir,
      this.#template.replace(/\{(name|stem)\}/, (_, which) => (which === "name" ? base : name)),
    );
  }
}

/** The result of one poll of a drop. */
export interface PickupReport {
  /** Files in the listing. */
  readonly listed: number;
  /** Files whose size or time may still change. */
  readonly settling: number;
  /** Files under temporary names, or without their done-file: they wait for their sender. */
  readonly temporary: number;
  /** Files left alone: at first contact by the drop's rule, and done-files. */
  readonly skipped: number;
  /** Settling and temporary files that wait longer than the drop's limit. */
  readonly overdue: number;
  /** Files that were passed to `claim`. */
  readonly claimed: number;
  /** Settled files beyond the limit of one poll; the next poll continues with them. */
  readonly left: number;
  /**
   * Milliseconds until a file no longer waits for one that cannot be listed; null when none waits for that.
   */
  readonly orderWaitMs: number | null;
  /** Arrivals that have gone: two complete listings in a row did not show them. */
  readonly gone: number;
  /** Arrivals that this listing did not show and the previous one did. */
  readonly missing: number;
  /** The error of an interrupted listing or a failed claim; then the poll is not complete. */
  readonly error?: unknown;
}

// Offers the unmatched arrivals of a drop again, after the triggers changed.

/** Returns how many were offered. `atOnce`: arrivals that are claimed together. */
async function rematch(
  facts: Pick<PickupFacts, "drop" | "journal" | "claim">,
  atOnce: number,
  signal: AbortSignal,
): Promise<number> {
  let offered = 0;
  let some: Arrival[] = [];
  for await (const arrival of unmatched(facts)) {
    if (signal.aborted) break;
    some.push(arrival);
    offered += 1;
    if (some.length < atOnce) continue;
    await facts.claim(some);
    some = [];
  }
  if (some.length > 0) await facts.claim(some);
  return offered;
}

async function* unmatched({ drop, journal }: Pick<PickupFacts, "drop" | "journal">): AsyncGenerator<Arrival> {
  for (let after = 0, more = true; more; ) {
    const some = await journal.arrivalsIn(drop.name, ["unmatched"], READ_AT_ONCE, after);
    yield* some;
    after = some.at(-1)?.id ?? after;
    more = some.length === READ_AT_ONCE;
  }
}
