/**
 * The order of a lane while a listing does not show a file, or a part of a drop cannot be listed: later files
 * wait for a file that was seen earlier and has not settled, for a limited time, once for each such file.
 * Afterwards they continue, with a warning. A lane over several drops keeps its order over all of them.
 */
import type { IsoInstant } from "../model.ts";
import { CutFolders } from "./cut-folders.ts";
import type { Drop } from "./drop.ts";
import type { Aged } from "./oldest.ts";
import { GOES, type OrderVerdict } from "./order-verdict.ts";
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
