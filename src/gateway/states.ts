/**
 * The states of arrivals, runs and batches. Every list of states, SQL text, count and label derives from the records in
 * `states/`: a new state is one more record, and the compiler asks for each of its facts.
 *
 * An **arrival** is `settling` while its size and mtime still change. Once it is still, its name is matched:
 * `unmatched` when no trigger claims it (matched again whenever the triggers change), or `matched` when a run
 * was opened for it. When the bytes turn out to be those of an earlier version that was delivered or is in
 * progress, it is a `duplicate`. It is `skipped` when it was there at the first contact and the drop's rule
 * leaves such files, and when it is the done-file of another. A person may have a duplicate or a skipped file
 * processed, and a file that changed while it was taken settles again.
 *
 * A **batch** is `ready` once durable, `sending` from the moment before its first attempt, through all its
 * attempts, and ends `accepted`, `rejected` by an answer, or `split` into children.
 */
export * from "./states/arrivals.ts";
export * from "./states/batches.ts";
export * from "./states/run-lists.ts";
export * from "./states/runs.ts";
