/** Offers the unmatched arrivals of a drop again, after the triggers changed. */
import type { Arrival } from "../model.ts";
import type { PickupFacts } from "./pickup.ts";

/** Arrivals read at once. */
const READ_AT_ONCE = 100;

/** Returns how many were offered. `atOnce`: arrivals that are claimed together. */
export async function rematch(
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
