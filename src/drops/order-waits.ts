/**
 * The order of a lane while a listing does not show a file, or a part of a drop cannot be listed: what came later waits for a file that was seen earlier and has not settled, for a
 * limited time, once for each such file. Afterwards it goes, with a warning.
 */
import type { IsoInstant } from "../model.ts";
import type { Aged } from "./oldest.ts";
import { compareIn, type TakeOrder, timed } from "./pickup-order.ts";

/** A file that is waited for. */
export interface Awaited extends Aged {
  readonly seenAt: IsoInstant;
  /** Since when it is waited for. */
  readonly since: IsoInstant;
}

export interface OrderRule {
  readonly by: TakeOrder;
  /** Milliseconds; 0 for not at all. */
  readonly wait: number;
}

export type OrderVerdict =
  | { readonly status: "goes"; readonly warning: string | null }
  | { readonly status: "waits"; readonly reason: string; readonly leftMs: number };

interface Lane {
  /** The first, by the order of the drop, that is still waited for. */
  waiting: Awaited | null;
  /** The first whose time is over. */
  over: Awaited | null;
}

export class OrderWaits {
  readonly #rule: OrderRule;
  /** The lanes that a file at this path comes to; none when no trigger claims it. */
  readonly #lanesOf: (path: string) => readonly string[];
  readonly #compare: (one: Aged, other: Aged) => number;
  readonly #lanes = new Map<string, Lane>();
  #nowMs = 0;

  constructor(rule: OrderRule, lanesOf: (path: string) => readonly string[]) {
    this.#rule = rule;
    this.#lanesOf = lanesOf;
    const compare = compareIn(rule.by);
    this.#compare = (one, other) => compare(timed(one), timed(other));
  }

  /** In place of those before. `nowMs`: Unix milliseconds. */
  set(all: readonly Awaited[], nowMs: number): void {
    this.#nowMs = nowMs;
    this.#lanes.clear();
    for (const awaited of all) {
      const kind = this.#leftMs(awaited) > 0 ? "waiting" : "over";
      for (const name of this.#lanesOf(awaited.path)) {
        const lane = this.#lanes.getOrInsert(name, { waiting: null, over: null });
        const first = lane[kind];
        if (first === null || this.#compare(awaited, first) < 0) lane[kind] = awaited;
      }
    }
  }

  judge(file: Aged, nowMs: number): OrderVerdict {
    if (this.#lanes.size === 0) return { status: "goes", warning: null };
    this.#nowMs = nowMs;
    const lanes = this.#lanesOf(file.path).flatMap((name) => this.#lanes.get(name) ?? []);
    const before = lanes
      .flatMap(({ waiting, over }) => [waiting, over])
      .filter((one) => this.#isBefore(one, file));
    const waiting = before.find((one) => this.#leftMs(one) > 0);
    if (waiting !== undefined) {
      const until = Temporal.Instant.from(waiting.since).add({ milliseconds: this.#rule.wait });
      const reason = `waits for ${waiting.path}, which was seen earlier, has not settled, and was not in a listing since; until ${until} at the latest (\`order.wait\`)`;
      return { status: "waits", reason, leftMs: this.#leftMs(waiting) };
    }
    const [over] = before;
    if (over === undefined) return { status: "goes", warning: null };
    return {
      status: "goes",
      warning: `it goes before ${over.path}, which was seen at ${over.seenAt}, was not in a listing since, and has not settled: ${this.#rule.wait / 1000} s (\`order.wait\`) are over; what both bring stands as ${over.path} has it once that is delivered`,
    };
  }

  #isBefore(awaited: Awaited | null, file: Aged): awaited is Awaited {
    return awaited !== null && awaited.id !== file.id && this.#compare(awaited, file) < 0;
  }

  #leftMs({ since }: Awaited): number {
    return Date.parse(since) + this.#rule.wait - this.#nowMs;
  }
}
