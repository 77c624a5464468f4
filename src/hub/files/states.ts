/**
 * The states of stored files. A file is `received` until the triggers were asked about it, and then `processing` when
 * one claimed it, or `unclaimed`. What was processed ends as its push did: `stored`, `partly-discarded` or `discarded`.
 * It is `quarantined` when it could not be mapped or delivered, or when the virus scan found it infected. A file that
 * was removed has no record.
 */
import type { FileState } from "#wire/index.ts";

export interface FileStateFacts {
  readonly next: readonly FileState[];
  /** A person may offer it to the triggers again. */
  readonly mayBeOffered: boolean;
}

/** The outcome of a push may be corrected late, and an operator may replay or retry its run. */
const AFTER_RUN = ["processing", "stored", "partly-discarded", "discarded", "quarantined"] as const;

export const FILE_STATES = {
  received: { next: ["unclaimed", "processing", "quarantined"], mayBeOffered: false },
  unclaimed: { next: ["received"], mayBeOffered: true },
  // Back to received: the trigger was removed, or its run was lost before anything was delivered.
  processing: { next: [...AFTER_RUN, "received", "unclaimed"], mayBeOffered: false },
  stored: { next: AFTER_RUN, mayBeOffered: false },
  "partly-discarded": { next: AFTER_RUN, mayBeOffered: false },
  discarded: { next: AFTER_RUN, mayBeOffered: false },
  quarantined: { next: [...AFTER_RUN, "received"], mayBeOffered: true },
} as const satisfies Readonly<Record<FileState, FileStateFacts>>;

const ALL = Object.entries<FileStateFacts>(FILE_STATES) as readonly (readonly [FileState, FileStateFacts])[];

/** States from which a file may be offered to the triggers again. */
export const OFFERED_FROM: readonly FileState[] = ALL.filter(([, { mayBeOffered }]) => mayBeOffered).map(
  ([name]) => name,
);

/** States from which a file may change to this one. */
export function statesBefore(state: FileState): readonly FileState[] {
  return ALL.filter(([, { next }]) => next.includes(state)).map(([name]) => name);
}
