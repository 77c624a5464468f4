/** Indexes of a meter only grow, unless a row states that the meter was changed or reset. */
import { RowError } from "headgate/mapper";

interface Known {
  readonly ms: number;
  readonly index: number;
  readonly event: boolean;
}

/** Compares each index with the one before it in the file, whether the file runs forwards or backwards. */
export class Growth {
  readonly #known = new Map<object, Known>();

  /** `target`: one object for all rows of a target. Throws a `RowError`. */
  take(target: object, ms: number, index: number, event: boolean): void {
    const before = this.#known.get(target);
    const now = { ms, index, event };
    if (before !== undefined && before.ms !== ms) {
      const [earlier, later] = before.ms < ms ? [before, now] : [now, before];
      if (later.index < earlier.index && !later.event) throw fallen(now, before);
    }
    this.#known.set(target, now);
  }
}

function fallen(now: Known, before: Known): RowError {
  const relation = now.ms > before.ms ? "lower than the earlier" : "higher than the later";
  const date = new Date(before.ms).toISOString().replace(".000Z", "Z");
  return new RowError(`the index ${now.index} is ${relation} one, ${before.index} of ${date}: an index only grows`, {
    hint:
      "After a change or a reset of the meter, fill the column `event` of its first row (meter-change, reset); " +
      "`falls: accept` in the trigger's metadata takes the file as it is.",
  });
}
