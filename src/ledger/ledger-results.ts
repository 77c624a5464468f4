/** What the ledger's queries return, beside the nouns of `model.ts`. */
import type {
  Arrival,
  Batch,
  FileStanding,
  IsoInstant,
  LedgerEvent,
  RejectedRow,
  Run,
  RunState,
} from "../model.ts";

export interface RestingRun {
  readonly run: Run;
  readonly arrival: Arrival;
}

export interface LedgerFault {
  /** `file`, `run <id>` or `arrival <id>`. */
  readonly subject: string;
  /** Such as `is accepted, and has no batches`. */
  readonly words: string;
  /** Null when a backup has to be restored. */
  readonly repair: "recount" | "relink" | null;
}

/** What the ledger knew until it forgot it. */
/** Who has a file forgotten, and why. */
export interface ForgetSaid {
  readonly by: string;
  readonly why: string;
}

/** What stays of a file that was forgotten. */
export interface ForgottenFile extends Forgotten, ForgetSaid {
  readonly drop: string;
  readonly path: string;
  readonly at: IsoInstant;
}

export interface Forgotten {
  readonly arrivals: number;
  readonly runs: readonly string[];
  readonly acceptedPoints: number;
  /** Batches that were sent and never answered. */
  readonly unanswered: number;
}

/** A container is followed by its entries. */
export interface TracedFile {
  readonly arrival: Arrival;
  readonly runs: readonly {
    readonly run: Run;
    readonly batches: readonly Batch[];
    readonly rejected: readonly RejectedRow[];
  }[];
  readonly events: readonly LedgerEvent[];
}

/** Runs of one state that belong together. */
export interface Backlog {
  readonly drop: string;
  readonly trigger: string;
  readonly mapper: string;
  readonly service: string;
  readonly state: RunState;
  readonly runs: number;
  /** When the first of them was opened. */
  readonly oldest: IsoInstant;
}

export interface Tally {
  readonly files: Readonly<Partial<Record<FileStanding, number>>>;
  readonly points: {
    readonly mapped: number;
    readonly accepted: number;
    readonly stored: number;
    readonly rejected: number;
  };
  /** Delivered files (accepted or confirmed) by drop. */
  readonly drops: ReadonlyMap<string, number>;
}
