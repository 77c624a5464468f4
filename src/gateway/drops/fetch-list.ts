/** Fetches several files into one local file, each at a place of its own. */

import { type Settled, settleRest } from "#core/promises.ts";
import type { FetchedFile, FileEntry } from "../model.ts";
import type { FetchedPart } from "./drop.ts";
import { insideDrop } from "./paths.ts";
import { type Destination, makeDestination } from "./receive.ts";

/** Concurrently fetches the entries that have no result yet. */
export async function fetchEach(
  drop: { readonly name: string },
  entries: readonly FileEntry[],
  path: string,
  fetch: (entry: FileEntry, destination: Destination) => Promise<FetchedFile>,
  results: readonly (FetchedPart | null)[] = [],
): Promise<readonly Settled<FetchedPart>[]> {
  const isShared = entries.length > 1;
  const present = results.filter((result) => result !== null);
  const made = isShared && present.length === 0 ? makeDestination(drop.name, path) : Promise.resolve();
  let end = Math.max(0, ...present.map(({ offset, bytes }) => offset + bytes));
  const offsets = entries.map(({ size }, at) => {
    if ((results[at] ?? null) !== null) return 0;
    end += size;
    return end - size;
  });
  return settleRest(entries, results, async (entry, at) => {
    insideDrop(drop.name, entry.path);
    await made;
    const offset = offsets[at] ?? 0;
    return { ...(await fetch(entry, { path, offset, isShared })), offset };
  });
}
