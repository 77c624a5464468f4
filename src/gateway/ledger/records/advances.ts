/**
 * Runs that pass one or several states: a list of them is one transaction, in which each passes all of its
 * states or none.
 */

import { RejectedError } from "#core/errors.ts";
import { cells, execute, type Steps } from "#core/sql/statements.ts";
import type { ArrivalState, BatchSlice, Run } from "../../model.ts";
import { MAY_BE_STORED_STATES } from "../../states.ts";
import type { Advanced, Ledger, MappedRecord, RunAdvance, RunPassage } from "../ledger.ts";
import { brokenInvariant } from "../transitions.ts";
import { duplicateOf, repeatedOfOlderCopy, unfetchedBefore } from "./arrivals.ts";
import { batchesOf, insertBatches, type Keyed, keyOrigin, recountAnswers } from "./batches.ts";
import { forgottenLast } from "./forgotten.ts";
import { kindsOf, recordTargets } from "./lanes.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, toRun } from "./rows.ts";
import { literals } from "./run-indexes.ts";
import { addRejectedRows, advanceThrough, assertOwn, assertState, missingRun, mustFindRun } from "./runs.ts";
import type { Store } from "./store.ts";

export function advanceMethods(store: Store): Pick<Ledger, "advanceRuns" | "recordMapped"> {
  return {
    // Requested at once, they share a commit, and one that fails does not affect the others.
    advanceRuns: (advances) => Promise.all(advances.map((advance) => advanceOne(store, advance))),
    recordMapped: (id, mapped) =>
      store.write("run.mapped", () => mustAdvance(store, { id, from: "mapping", through: [{ to: "mapped" }], mapped })),
  };
}

async function advanceOne(store: Store, advance: RunAdvance): Promise<Advanced> {
  const passed = advance.through.map(({ to }) => `run.${to}`);
  try {
    return await store.write(passed, () => advanceRun(store, advance));
  } catch (thrown) {
    return { run: null, why: "fault", thrown };
  }
}

function* mustAdvance(store: Store, advance: RunAdvance): Steps<Run> {
  const { run } = yield* advanceRun(store, advance);
  if (run === null) throw brokenInvariant("advance run", advance.id, "nothing was recorded of it");
  return run;
}

type Standing = readonly [
  arrival: ArrivalState,
  mappedBefore: number,
  occurrence: number,
  forgets: number,
  olderCopies: number,
];

/**
 * Once a file was forgotten, each is sought among those. An earlier arrival of which nothing was sent is no occurrence:
 * another ledger may not know it.
 */
const SELECT_STANDING = `SELECT ${RUN_COLUMNS}, arrivals.state,
    CASE WHEN EXISTS (SELECT 1 FROM batches WHERE batches.run_id = runs.id) THEN 1 ELSE 0 END,
    (SELECT count(*) FROM arrivals AS earlier
      WHERE earlier.sha256 = coalesce(?, runs.sha256) AND earlier.path = runs.path
        AND earlier.drop_name = runs.drop_name AND earlier.size = runs.size AND earlier.mtime = runs.mtime
        AND earlier.id < runs.arrival_id
        AND EXISTS (SELECT 1 FROM runs AS sent JOIN batches ON batches.run_id = sent.id
          WHERE sent.arrival_id = earlier.id AND batches.state IN (${literals(MAY_BE_STORED_STATES)}))),
    CASE WHEN EXISTS (SELECT 1 FROM forgotten_files) THEN 1 ELSE 0 END,
    CASE WHEN EXISTS (SELECT 1 FROM older_copies) THEN 1 ELSE 0 END
  FROM runs JOIN bindings ON bindings.id = runs.binding_id JOIN arrivals ON arrivals.id = runs.arrival_id
WHERE runs.id = ?`;

function* advanceRun(store: Store, advance: RunAdvance): Steps<Advanced> {
  const { id, from, through, duplicates, mapped } = advance;
  yield* assertOwn(store, id, from);
  const fetched = through.find(({ change }) => change?.sha256 !== undefined)?.change?.sha256 ?? null;
  const [found] = yield* cells<RunCells>(SELECT_STANDING, fetched, id);
  if (found === undefined) throw missingRun(id);
  const [arrival, mappedBefore, occurrence, forgets, olderCopies] = found.slice(RUN_CELLS) as unknown as Standing;
  const run = toRun(found);
  assertState(run, from);
  if (duplicates !== undefined) {
    const why = arrival === "duplicate" ? "known" : yield* whyKept(store, run, fetched ?? "", duplicates);
    if (why !== null) return { run: null, why };
  }
  if ((through.at(-1)?.to === "mapped") !== (mapped !== undefined))
    throw brokenInvariant("advance run", id, "a run is mapped with its batches, and only then");
  if (mapped === undefined) return { run: yield* advanceThrough(store, run, from, through) };
  if (mappedBefore > 0) return { run: yield* advanceMapped(store, run, from, through, { mapped, keys: "kept" }) };
  const sha256 = fetched ?? run.sha256;
  const forgottenAt = forgets === 0 ? null : yield* forgottenLast(run);
  const origin = sha256 === null ? null : keyOrigin(run, sha256, { occurrence, forgottenAt });
  const asks = olderCopies > 0 && sha256 !== null && run.replay === null;
  const repeats = asks ? yield* repeatedOfOlderCopy(store, { ...run, id: run.arrivalId }, sha256) : undefined;
  return { run: yield* advanceMapped(store, run, from, through, { mapped, keys: { origin, repeats } }) };
}

/** Returns why a run with this content is not recorded, or null. */
function* whyKept(
  store: Store,
  run: Run,
  sha256: string,
  duplicates: NonNullable<RunAdvance["duplicates"]>,
): Steps<"known" | "unfetched" | null> {
  const arrival = { ...run, id: run.arrivalId };
  if ((yield* unfetchedBefore(arrival)) !== null) return "unfetched";
  const earlier = yield* duplicateOf(store, arrival, sha256);
  if (earlier === null) return null;
  // With equal size and time, it may be the earlier version itself, back at the drop.
  const mayBeBack = earlier.size === run.size && earlier.mtime === run.mtime;
  return duplicates === "process" && !mayBeBack ? null : "known";
}

/**
 * For a first mapping, or a repeated one after the segment was lost: a repeated one must have the same result
 * (invariant 10).
 */
function* advanceMapped(
  store: Store,
  run: Run,
  from: RunAdvance["from"],
  through: readonly RunPassage[],
  { mapped, keys }: { readonly mapped: MappedRecord; readonly keys: Keyed | "kept" },
): Steps<Run> {
  const { id } = run;
  if (keys !== "kept") yield* insertBatches(run, mapped.batches, keys);
  else yield* clearMapped(id, mapped);
  yield* recordTargets(id, mapped.targets);
  yield* addRejectedRows(id, mapped.rejected);
  const { points, rejectedCount, findings, targets, detail } = mapped;
  const change = { points: { mapped: points, accepted: 0, rejected: rejectedCount }, findings, detail };
  const hidden = { target_kinds: kindsOf(targets), refused: rejectedCount };
  const passages = [...through.slice(0, -1), { to: "mapped" as const, change }];
  const after = yield* advanceThrough(store, run, from, passages, hidden);
  if (keys !== "kept") return after;
  yield* recountAnswers(store, id);
  return yield* mustFindRun(id);
}

/** Keeps the batches, and deletes the other mapping records, which are recorded again. */
function* clearMapped(id: string, { batches }: MappedRecord): Steps<void> {
  const before = (yield* batchesOf(id)).filter((batch) => !batch.sequence.includes("."));
  if (!sameSlices(before, batches))
    throw new RejectedError("HG-LEDG-005", { operation: "record mapped batches", subject: id });
  yield* execute("DELETE FROM run_targets WHERE run_id = ?", id);
  yield* execute("DELETE FROM rejected_rows WHERE run_id = ?", id);
}

function sameSlices(before: readonly BatchSlice[], after: readonly BatchSlice[]): boolean {
  const words = (slice: BatchSlice) =>
    [slice.sequence, slice.offset, slice.length, slice.points, slice.digest].join(" ");
  const known = new Set(before.map(words));
  return before.length === after.length && after.every((slice) => known.has(words(slice)));
}
