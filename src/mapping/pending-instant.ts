/**
 * Instants that are not known yet: those of a series in a repeated hour, until it has left the hour. A mapper passes
 * them on; reading the value of one throws a `RowError`, since any value could be wrong by an hour.
 */
import { RowError } from "./readers/row-error.ts";

type Known = number | RowError;

export class PendingDate {
  /** The text in the file. */
  readonly text: string;
  #known: Known | undefined;
  #waiting: ((known: Known) => void)[] = [];

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Calls `take` with the epoch milliseconds, or with the reason why they are not known; immediately when that is
   * settled.
   */
  whenKnown(take: (known: Known) => void): void {
    if (this.#known === undefined) this.#waiting.push(take);
    else take(this.#known);
  }

  settle(known: Known): void {
    this.#known = known;
    for (const take of this.#waiting.splice(0)) take(known);
  }

  /** A date that depends on this one. */
  derive(change: (ms: number) => number): PendingDate {
    const derived = new PendingDate(this.text);
    this.whenKnown((known) => derived.settle(typeof known === "number" ? change(known) : known));
    return derived;
  }
}

const dates = new WeakMap<object, PendingDate>();

/** A prototype for instants that are not known yet: `refuse` is called for their value, and throws. */
export function refusingPrototype(refuse: () => never): Temporal.Instant {
  const members = Object.entries(Object.getOwnPropertyDescriptors(Temporal.Instant.prototype));
  const refusals = members.flatMap(([name, one]) => {
    if (name === "constructor") return [];
    return [[name, one.get === undefined ? { value: refuse } : { get: refuse }]];
  });
  return Object.create(Temporal.Instant.prototype, Object.fromEntries(refusals)) as Temporal.Instant;
}

const prototype = refusingPrototype(() => {
  throw new RowError("the instant is in a repeated hour, and its pass is known only when the series has left it", {
    hint:
      "Pass the instant to `emit`, `time.addMinutes` or `time.addDays` as it is; with the policies " +
      "earlier and later it is known at once.",
  });
});

/** The instant that represents it for a mapper. */
export function pendingInstant(date: PendingDate): Temporal.Instant {
  const instant = Object.create(prototype) as Temporal.Instant;
  dates.set(instant, date);
  return instant;
}

export function pendingDateOf(instant: unknown): PendingDate | undefined {
  return typeof instant === "object" && instant !== null ? dates.get(instant) : undefined;
}
