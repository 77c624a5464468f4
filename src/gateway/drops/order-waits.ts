/**
 * The order of a lane while a listing does not show a file, or a part of a drop cannot be listed: later files
 * wait for a file that was seen earlier and has not settled, for a limited time, once for each such file.
 * Afterwards they continue, with a warning. A lane over several drops keeps its order over all of them.
 */
import { posix } from "node:path";
import type { Arrival, IsoInstant } from "../model.ts";
import type { Drop, OnFolder } from "./drop.ts";
import { compareIn, type PickupOrder, timed } from "./pickup-order.ts";

/** A file that later files wait for. */
export interface Awaited extends Aged {
  readonly seenAt: IsoInstant;
  /** When the wait began. */
  readonly since: IsoInstant;
}

/** A file of another drop, whose times may have another format. */
export interface AwaitedElsewhere extends Awaited {
  readonly drop: string;
  /** Unix milliseconds of its last change; where that is unknown, of its first observation. */
  readonly changedMs: number;
}

export interface OrderRule {
  readonly by: PickupOrder;
  /** Milliseconds; 0 disables the wait. */
  readonly wait: number;
}

/**
 * `lanesOf`: the lanes of a file at this path of a drop (this one when absent); none when no trigger claims
 * it.
 */
export interface OrderFacts {
  readonly lanesOf: (path: string, drop?: string) => readonly string[];
  /** Unix milliseconds; null when unknown. */
  readonly modifiedMs: (file: Aged) => number | null;
}

interface Lane<One> {
  /** The first awaited file, by the order of the drop. */
  waiting: One | null;
  /** The first file whose wait is over. */
  over: One | null;
}

/** The verdict on nearly every file. */
const GOES: OrderVerdict = { status: "goes", warning: null };

export class OrderWaits {
  readonly #rule: OrderRule;
  readonly #facts: OrderFacts;
  readonly cutFolders: CutFolders;
  readonly #compare: (one: Aged, other: Aged) => number;
  #own: ReadonlyMap<string, Lane<Awaited>> = new Map();
  #elsewhere: ReadonlyMap<string, Lane<AwaitedElsewhere>> = new Map();
  #nowMs = 0;

  constructor(rule: OrderRule, facts: OrderFacts) {
    this.#rule = rule;
    this.#facts = facts;
    this.cutFolders = new CutFolders(rule.wait);
    const compare = compareIn(rule.by);
    this.#compare = (one, other) => compare(timed(one), timed(other));
  }

  /** Replaces the former files. `nowMs`: Unix milliseconds. */
  set(all: readonly Awaited[], nowMs: number): void {
    this.#nowMs = nowMs;
    this.#own = this.#firsts(all, this.#compare, ({ path }) => this.#facts.lanesOf(path));
  }

  /** The same for other drops. */
  setElsewhere(all: readonly AwaitedElsewhere[], nowMs: number): void {
    this.#nowMs = nowMs;
    const lanesOf = ({ path, drop }: AwaitedElsewhere) => this.#facts.lanesOf(path, drop);
    this.#elsewhere = this.#firsts(all, (one, other) => this.#compareAcross(one, other), lanesOf);
  }

  /**
   * Judges settled files, given in the order of pickup. A file that waits, for whatever reason, holds back the later
   * ones of its lanes.
   */
  judge(files: readonly Aged[], nowMs: number): readonly OrderVerdict[] {
    this.#nowMs = nowMs;
    const held = new Map<string, { readonly path: string; readonly leftMs: number }>();
    return files.map((file) => {
      const own = [this.cutFolders.judge(file.path, nowMs), this.#judgeLane(file)];
      let verdict = own.find(({ status }) => status === "waits");
      if (verdict === undefined && held.size === 0) return joined(own);
      const lanes = this.#facts.lanesOf(file.path);
      const [before] = lanes.flatMap((lane) => held.get(lane) ?? []);
      if (before !== undefined)
        verdict ??= {
          status: "waits",
          reason: `waits for ${before.path}, which comes before it in its lane and waits too`,
          leftMs: before.leftMs,
        };
      if (verdict?.status !== "waits") return joined(own);
      for (const lane of lanes) held.getOrInsert(lane, { path: file.path, leftMs: verdict.leftMs });
      return verdict;
    });
  }

  #judgeLane(file: Aged): OrderVerdict {
    if (this.#own.size + this.#elsewhere.size === 0) return GOES;
    const lanes = this.#facts.lanesOf(file.path);
    const before = lanes.flatMap((lane) => this.#before(file, lane));
    const waiting = before.find((one) => this.#leftMs(one) > 0);
    if (waiting !== undefined) {
      const until = Temporal.Instant.from(waiting.since).add({ milliseconds: this.#rule.wait });
      const reason =
        `waits for ${nameOf(waiting)}, which was seen earlier, has not settled, and was not in a listing since; ` +
        `until ${until} at the latest (\`order.wait\`)`;
      return { status: "waits", reason, leftMs: this.#leftMs(waiting) };
    }
    const [over] = before;
    if (over === undefined) return GOES;
    return {
      status: "goes",
      warning:
        `it goes before ${nameOf(over)}, which was seen at ${over.seenAt}, was not in a listing since, and has ` +
        `not settled: ${this.#rule.wait / 1000} s (\`order.wait\`) are over; readings that both contain keep the ` +
        `values of ${over.path} once that is delivered`,
    };
  }

  #firsts<One extends Awaited>(
    all: readonly One[],
    compare: (one: One, other: One) => number,
    lanesOf: (one: One) => readonly string[],
  ): ReadonlyMap<string, Lane<One>> {
    const lanes = new Map<string, Lane<One>>();
    for (const awaited of all) {
      const kind = this.#leftMs(awaited) > 0 ? "waiting" : "over";
      for (const name of lanesOf(awaited)) {
        const lane = lanes.getOrInsert(name, { waiting: null, over: null });
        const first = lane[kind];
        if (first === null || compare(awaited, first) < 0) lane[kind] = awaited;
      }
    }
    return lanes;
  }

  /** Awaited files of a lane that come before the file. */
  #before(file: Aged, lane: string): readonly Awaited[] {
    const own = this.#own.get(lane);
    const found: Awaited[] = [];
    for (const one of [own?.waiting, own?.over])
      if (isThere(one) && one.id !== file.id && this.#compare(one, file) < 0) found.push(one);
    const elsewhere = this.#elsewhere.get(lane);
    for (const one of [elsewhere?.waiting, elsewhere?.over])
      if (isThere(one) && this.#compareAcross(one, this.#dated(file)) < 0) found.push(one);
    return found;
  }

  /** A file without a time waits for all of them. */
  #dated(file: Aged): Dated {
    return { ...file, changedMs: this.#facts.modifiedMs(file) ?? Number.POSITIVE_INFINITY };
  }

  #compareAcross(one: Dated, other: Dated): number {
    if (this.#rule.by === "name") return this.#compare(one, other) || one.id - other.id;
    if (one.changedMs !== other.changedMs) return one.changedMs < other.changedMs ? -1 : 1;
    return one.id - other.id;
  }

  #leftMs({ since }: Awaited): number {
    return Date.parse(since) + this.#rule.wait - this.#nowMs;
  }
}

/** The files that other drops await. */
export async function awaitedElsewhere(
  drops: readonly Pick<Drop, "name" | "modifiedMs">[],
  journal: { awaited(drop: string): Promise<readonly Awaited[]> },
): Promise<readonly AwaitedElsewhere[]> {
  const found: AwaitedElsewhere[] = [];
  for (const drop of drops)
    for (const one of await journal.awaited(drop.name)) {
      const changedMs = drop.modifiedMs({ ...one, size: 0 }) ?? Date.parse(one.seenAt);
      found.push({ ...one, drop: drop.name, changedMs });
    }
  return found;
}

/** The verdict of several, none of which is to wait. */
function joined(verdicts: readonly OrderVerdict[]): OrderVerdict {
  const warnings = verdicts.flatMap((one) => (one.status === "goes" ? (one.warning ?? []) : []));
  return warnings.length === 0 ? GOES : { status: "goes", warning: warnings.join("; ") };
}

type Dated = Aged & Pick<AwaitedElsewhere, "changedMs">;

function isThere<One>(one: One | null | undefined): one is One {
  return one !== null && one !== undefined;
}

function nameOf(awaited: Awaited | AwaitedElsewhere): string {
  return "drop" in awaited ? `${awaited.path} at the drop ${awaited.drop}` : awaited.path;
}

/**
 * Folders whose listing broke off. A file that was not listed may be older than those that were, so the
 * listed files of such a folder wait until it is listed completely, for at most `order.wait`; afterwards they
 * go, with a warning.
 */
class CutFolders {
  readonly #waitMs: number;
  /** Folders of the latest listing of which every file was listed. */
  #complete = new Set<string>();
  #isCut = false;
  /** Unix milliseconds since which each folder has not been listed completely. */
  readonly #since = new Map<string, number>();
  /**
   * Folders that had waiting files, with the Unix milliseconds since then, until a complete listing shows all
   * of their files settled.
   */
  readonly #unsettled = new Map<string, number>();

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * Begins a listing, and returns the function that the drop calls with each folder whose files were all
   * listed.
   */
  begin(onFolder: OnFolder): OnFolder {
    this.#complete = new Set();
    this.#isCut = true;
    return (folder, below) => {
      this.#complete.add(folder);
      this.#since.delete(folder);
      onFolder(folder, below);
    };
  }

  /** The listing is complete. */
  end(): void {
    this.#isCut = false;
    this.#since.clear();
  }

  /**
   * The listing broke off. Without `isRecorded` some of the listed files are not in the ledger, in whichever
   * folder.
   */
  broke(isRecorded: boolean): void {
    if (!isRecorded) this.#complete = new Set();
  }

  /**
   * For a file that has not settled and may be one that an earlier listing of its folder did not reach: the
   * Unix milliseconds since which later files wait for it. Null for other files.
   */
  awaitedSinceMs(path: string): number | null {
    return this.#unsettled.get(folderOf(path)) ?? null;
  }

  /** Called after a listing with the files that have not settled. */
  setUnsettled(paths: readonly string[]): void {
    if (this.#isCut) return;
    const folders = new Set(paths.map(folderOf));
    for (const folder of this.#unsettled.keys()) if (!folders.has(folder)) this.#unsettled.delete(folder);
  }

  /** Judges a file of the latest listing. `nowMs`: Unix milliseconds. */
  judge(path: string, nowMs: number): OrderVerdict {
    if (!this.#isCut) return GOES;
    const folder = folderOf(path);
    if (this.#complete.has(folder)) return GOES;
    const since = this.#since.getOrInsert(folder, nowMs);
    const leftMs = since + this.#waitMs - nowMs;
    const name = folder === "" ? "the drop's own folder" : folder;
    if (leftMs > 0) {
      const until = Temporal.Instant.fromEpochMilliseconds(since + this.#waitMs);
      const reason =
        `the listing of ${name} broke off, and an earlier file may not have been listed; it waits for a complete ` +
        `listing, until ${until} at the latest (\`order.wait\`)`;
      this.#unsettled.getOrInsert(folder, nowMs);
      return { status: "waits", reason, leftMs };
    }
    const warning =
      `it goes although the listing of ${name} has broken off for ${this.#waitMs / 1000} s (\`order.wait\`): an ` +
      "earlier file that was not listed would be delivered after it";
    return { status: "goes", warning };
  }
}

function folderOf(path: string): string {
  const folder = posix.dirname(path);
  return folder === "." ? "" : folder;
}

/** Whether a settled file goes now, or waits for the order of its lane. */
type OrderVerdict =
  | { readonly status: "goes"; readonly warning: string | null }
  | { readonly status: "waits"; readonly reason: string; readonly leftMs: number };

// Keeps the first arrivals in the order of pickup (the oldest, or the first by name) up to a limit, in
// bounded memory, and counts the others.

/** The facts of an arrival that determine its age. */
export type Aged = Pick<Arrival, "id" | "path" | "mtime">;

type Kept = ReturnType<typeof timed<Aged>>;

export class Oldest {
  readonly #max: number;
  readonly #compare: (one: Kept, other: Kept) => number;
  #kept: Kept[] = [];
  /** The youngest kept arrival once the limit was reached; a younger one need not be kept. */
  #youngest: Kept | null = null;
  #added = 0;

  constructor(max: number, order: PickupOrder = "modified") {
    this.#max = max;
    const compare = compareIn(order);
    this.#compare = (one, other) => compare(one, other) || one.id - other.id;
  }

  get beyond(): number {
    return Math.max(0, this.#added - this.#max);
  }

  add(arrival: Aged): void {
    this.#added += 1;
    const { id, path, mtime } = arrival;
    const kept = timed({ id, path, mtime });
    if (this.#youngest !== null && this.#compare(kept, this.#youngest) > 0) return;
    this.#kept.push(kept);
    if (this.#kept.length < this.#max * 2) return;
    this.#kept = this.take();
    this.#youngest = this.#kept.at(-1) ?? null;
  }

  take(): Kept[] {
    return this.#kept.toSorted(this.#compare).slice(0, this.#max);
  }
}
