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

/** Printed last by commands that end by themselves (one object with `--json`). */
export interface Summary {
  readonly files: Readonly<Partial<Record<FileStanding, number>>>;
  readonly points: Pick<Points, "mapped" | "accepted" | "stored" | "rejected">;
  readonly drops: Readonly<Record<string, { readonly kind: DropKind; readonly files: number }>>;
}
