/**
 * The states of arrivals, runs and batches, and what each of them means. Every list of states, SQL text,
 * count and label derives from the records in `states/`: a new state is one more record, and the compiler
 * asks for each of its facts.
 *
 * An **arrival** is `settling` while its size and mtime still change. Once it is still, its name is matched:
 * `unmatched` when no trigger claims it (matched again whenever the triggers change), or `matched` when a run
 * was opened for it. When the bytes turn out to be those of an earlier version that was delivered or is in
 * progress, it is a `duplicate`. It is `skipped` when it was there at the first contact and the drop's rule
 * leaves such files, and when it is the done-file of another. A person may have a duplicate or a skipped file
 * processed, and a file that changed while it was taken settles again.
 *
 * A **run** is `claimed` by a trigger, `fetched` into the spool, and while a worker has it, `mapping`. It is
 * `mapped` when its batches are durable, `delivering` from the first send, `accepted` when the service took
 * every batch, and `confirmed` when the service reported, or showed, that all is stored. Aside: `empty` when
 * the file held no readings; `held` while structure, a unit or a person is waited for; `discarded` when the
 * service accepted and then dropped something (this may become known late, and a webhook may correct what
 * reading back had found); `unconfirmed` when it was accepted and it was not known in time whether it is
 * stored: its lane continues, it is never sent again, and the service is asked about it again; `quarantined`
 * when a person is needed; `cancelled` when it was given up, such as a duplicate. The run of a container is
 * `opened` instead of mapped: each of its entries is an arrival from then on, with a run of its own. When all
 * of them came to a good end the source of the container is finished; while one did not, the container rests,
 * and is checked again when an entry changes. What a crash or a lost spool interrupted returns to where it
 * can be done again: `mapping → fetched`, and `→ claimed` when the input is lost.
 *
 * A **batch** is `ready` once durable, `sending` from the moment before its first attempt, through all its
 * attempts, and ends `accepted`, `rejected` by an answer, or `split` into children.
 */
export * from "./states/arrivals.ts";
export * from "./states/batches.ts";
export * from "./states/runs.ts";
