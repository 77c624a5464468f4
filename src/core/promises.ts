/** Work that happens once, and work that is awaited together. */

/** Runs `work` at the first call; every call gets the same promise. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let begun: Promise<T> | undefined;
  return () => {
    begun ??= work();
    return begun;
  };
}

// Lists of which each item has its own result, or its own reason why there is none.

export type Settled<Result> = PromiseSettledResult<Result>;

/** Each by itself, side by side. */
export function settleEach<Item, Result>(
  items: readonly Item[],
  work: (item: Item, at: number) => Promise<Result>,
): Promise<readonly Settled<Result>[]> {
  return Promise.allSettled(items.map(async (item, at) => work(item, at)));
}

/** Of a list with one item. Throws the reason when there is no result. */
export async function onlyOne<Result>(settled: Promise<readonly Settled<Result>[]>): Promise<Result> {
  return resultOf((await settled)[0]);
}

/** Throws the reason when there is no result. */
export function resultOf<Result>(settled: Settled<Result> | undefined): Result {
  if (settled === undefined) throw new Error("an item of a list has no result");
  if (settled.status === "rejected") throw settled.reason;
  return settled.value;
}

/** Items that have a result already keep it, and the others are processed concurrently. */
export function settleRest<Item, Result>(
  items: readonly Item[],
  results: readonly (Result | null)[],
  work: (item: Item, at: number) => Promise<Result>,
): Promise<readonly Settled<Result>[]> {
  return settleEach(items, async (item, at) => results[at] ?? (await work(item, at)));
}
