/** The findings of one poll so far. */
import type { Arrival, FileEntry } from "../model.ts";
import type { ArchivedNames } from "./archived-names.ts";
import type { DoneFiles } from "./done-files.ts";
import type { KnownFiles } from "./known-files.ts";
import type { Oldest } from "./oldest.ts";
import type { Awaited } from "./order-waits.ts";
import type { PickupReport } from "./pickup-report.ts";
import type { UntakenFiles } from "./untaken-files.ts";

export type Tally = { -readonly [Part in keyof Omit<PickupReport, "error">]: PickupReport[Part] };

export interface Found {
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
export async function* notAtRest(
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
