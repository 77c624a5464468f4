/**
 * The states of arrivals, runs and batches, and which may follow which.
 *
 * An **arrival** is `settling` while its size and mtime still change. Once it is still, its name is matched: `unmatched` when
 * no trigger claims it (matched again whenever the triggers change), or `matched` when a run was opened for it. When the
 * bytes turn out to be those of an earlier version that was delivered or is under way, it is a `duplicate`. It is `skipped` when
 * it lay there at the first contact and the drop's rule leaves such files, and when it is the done-file of another. A person may
 * have a duplicate or a skipped file processed, and a file that changed while it was taken settles again.
 *
 * A **run** is `claimed` by a trigger, `fetched` into the spool, and while a worker has it, `mapping`. It is `mapped` when its batches
 * are durable, `delivering` from the first send, `accepted` when the service took every batch, and `confirmed` when it told, or
 * showed, that all is stored. Aside: `empty` when the file held no readings; `held` while structure, a unit or a person is
 * waited for; `discarded` when the service accepted and then dropped something (this may become known late, and a webhook may
 * correct what reading back had found); `unconfirmed` when it was accepted and nobody could say in time whether it is stored: its lane goes
 * on, it is never sent again, and the service is asked about it again; `quarantined` when a person is needed; `cancelled` when it was given up, such as a duplicate.
 * The run of a container is `opened` instead of mapped: each of its entries is an arrival from then on, with a run of its own. When all of
 * them came to a good end its source is finished, and while one did not it rests, to be looked at again when an entry changes.
 * What a crash or a lost spool interrupted goes back to where it can be done again: `mapping → fetched`, and `→ claimed` when the input is lost.
 *
 * A **batch** is `ready` once durable, `sending` from the moment before its first attempt, through all its attempts, and ends `accepted`,
 * `rejected` by an answer, or `split` into children.
 */
import type { ArrivalState, BatchState, RunState } from "../model.ts";
import { InvariantError } from "../support/errors.ts";

type Table<State extends string> = Readonly<Record<State, readonly State[]>>;

export const ARRIVAL_TRANSITIONS: Table<ArrivalState> = {
  // To itself: the same state for another reason.
  settling: ["settling", "unmatched", "duplicate", "skipped", "matched"],
  unmatched: ["unmatched", "settling", "duplicate", "matched"],
  matched: ["duplicate", "settling", "matched"],
  duplicate: ["duplicate", "matched"],
  skipped: ["skipped", "settling", "matched"],
};

export const RUN_TRANSITIONS: Table<RunState> = {
  claimed: ["fetched", "quarantined", "cancelled"],
  fetched: ["mapping", "opened", "empty", "claimed", "quarantined", "cancelled"],
  opened: [],
  mapping: ["mapped", "empty", "fetched", "claimed", "quarantined", "cancelled"],
  mapped: ["delivering", "held", "empty", "fetched", "claimed", "quarantined", "cancelled"],
  delivering: ["accepted", "held", "fetched", "claimed", "quarantined", "cancelled"],
  accepted: ["confirmed", "discarded", "unconfirmed"],
  unconfirmed: ["confirmed", "discarded"],
  confirmed: ["discarded"],
  discarded: ["confirmed"],
  empty: [],
  held: ["mapped", "delivering", "quarantined", "cancelled"],
  quarantined: ["cancelled"],
  cancelled: [],
};

export const BATCH_TRANSITIONS: Table<BatchState> = {
  ready: ["sending"],
  // To itself: one more attempt.
  sending: ["sending", "ready", "accepted", "rejected", "split"],
  accepted: [],
  rejected: [],
  split: [],
};

/** Not yet mapped: what they will deliver is not known. */
export const UNMAPPED_RUN_STATES = ["claimed", "fetched", "mapping"] as const satisfies readonly RunState[];
/** Neither accepted nor at rest: later runs of the lane that share a target wait for these. */
export const OPEN_RUN_STATES = [
  ...UNMAPPED_RUN_STATES,
  "mapped",
  "delivering",
] as const satisfies readonly RunState[];
/** The service took every batch, and nothing of them is known to be lost. */
export const DELIVERED_RUN_STATES = [
  "accepted",
  "confirmed",
  "unconfirmed",
] as const satisfies readonly RunState[];
/** The service took every batch, whatever it did with them. */
export const ACCEPTED_RUN_STATES = [
  ...DELIVERED_RUN_STATES,
  "discarded",
] as const satisfies readonly RunState[];

const TABLES = {
  arrival: ARRIVAL_TRANSITIONS,
  run: RUN_TRANSITIONS,
  batch: BATCH_TRANSITIONS,
} as const;

interface StateOf {
  arrival: ArrivalState;
  run: RunState;
  batch: BatchState;
}

/** Throws `InvariantError` when `to` may not follow `from`. */
export function assertTransition<Kind extends keyof StateOf>(
  kind: Kind,
  subject: string | number,
  from: StateOf[Kind],
  to: StateOf[Kind],
): void {
  const table: Readonly<Record<string, readonly string[]>> = TABLES[kind];
  if (table[from]?.includes(to) === true) return;
  throw brokenInvariant(
    `advance ${kind}`,
    String(subject),
    `${kind} ${subject} may not go from ${from} to ${to}`,
  );
}

export function brokenInvariant(operation: string, subject: string, message: string): InvariantError {
  return new InvariantError("HG-BUG-001", { operation, subject, message });
}

const COMMITS = [
  ...Object.keys(ARRIVAL_TRANSITIONS).map((state) => `arrival.${state}`),
  ...Object.keys(RUN_TRANSITIONS).map((state) => `run.${state}`),
  "run.noted",
  ...Object.keys(BATCH_TRANSITIONS).map((state) => `batch.${state}`),
  "outcome.recorded",
  "event.added",
  "poll.recorded",
  "poll.completed",
  "arrivals.pruned",
  "arrivals.forgotten",
  "pause.changed",
  "finished.changed",
] as const;

/** Every fault point of the ledger: `ledger.<what>.before` the commit, when nothing is durable yet, and `.after` it. */
export const FAULT_POINTS: readonly string[] = COMMITS.flatMap((what) => [
  `ledger.${what}.before`,
  `ledger.${what}.after`,
]);
