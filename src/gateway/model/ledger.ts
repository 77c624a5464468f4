/** Events and counts that the ledger shows. */
import type { FileStanding } from "../states.ts";
import type { DropKind } from "./drops.ts";
import type { Points } from "./runs.ts";
import type { IsoInstant } from "./time.ts";

/** One line of the life of a file. */
export interface LedgerEvent {
  readonly at: IsoInstant;
  readonly arrivalId: number;
  readonly runId: string | null;
  readonly operationId: string | null;
  /** Name of the event, such as `run.claimed`, `batch.accepted`, `source.archived`. */
  readonly what: string;
  readonly detail: string;
}

/** Events that end where a source file was before; those that leave it there are none of them. */
export const PLACE_EVENTS: readonly string[] = [
  "source.archived",
  "source.aside",
  "source.deleted",
  "source.changed",
  "source.gone",
  "source.unwatched",
  "source.returned",
];

/**
 * Where the finish of a file has put it: the result, as the history of the file has it, which may differ from the plan.
 * Null for a file that it moved nowhere, or that has gone from there.
 */
export function finishedPlace(path: string, events: readonly Pick<LedgerEvent, "what" | "detail">[]): string | null {
  const last = events.findLast(({ what }) => PLACE_EVENTS.includes(what));
  if (last?.what !== "source.archived" && last?.what !== "source.aside") return null;
  const before = `${path} → `;
  const place = last.detail.startsWith(before) ? last.detail.slice(before.length) : last.detail;
  if (last.what === "source.archived") return place;
  // The rest of the plan follows. The name of a file that is set aside, in the folder of its path, has no semicolon.
  return place.slice(0, place.indexOf("; ", path.lastIndexOf("/") + 1));
}

/** Printed last by commands that end by themselves (one object with `--json`). */
export interface Summary {
  readonly files: Readonly<Partial<Record<FileStanding, number>>>;
  readonly points: Pick<Points, "mapped" | "accepted" | "stored" | "rejected">;
  readonly drops: Readonly<Record<string, { readonly kind: DropKind; readonly files: number }>>;
}
