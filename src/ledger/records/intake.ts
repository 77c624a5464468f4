/** Fetched and mapped in one go: what most files are, and then one record is enough for both. */
import type { ArrivalState, Run, RunState } from "../../model.ts";
import type { IntakeRecord, Ledger } from "../ledger.ts";
import { duplicateOf, unfetchedBefore } from "./arrivals.ts";
import { insertBatches } from "./batches.ts";
import { appendEvents } from "./events.ts";
import { kindsOf, recordTargets } from "./lanes.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, toRun } from "./rows.ts";
import { addRejectedRows, applyChange, assertState, eventOf, missingRun } from "./runs.ts";
import { cells, type Steps, type Store } from "./store.ts";

const STATES: readonly RunState[] = ["fetched", "mapping", "mapped"];

export function intakeMethods(store: Store): Pick<Ledger, "recordIntake"> {
  const passed = STATES.map((state) => `run.${state}`);
  return { recordIntake: (id, record) => store.write(passed, () => recordIntake(store, id, record)) };
}

function* recordIntake(store: Store, id: string, record: IntakeRecord): Steps<Run | null> {
  yield* store.assertRun(id);
  const [found] = yield* cells<RunCells>(SELECT_STANDING, id);
  if (found === undefined) throw missingRun(id);
  const run = toRun(found);
  assertState(run, "claimed");
  if (!(yield* isPlain(store, run, found.slice(RUN_CELLS) as unknown as Standing, record))) return null;
  const { sha256, mapped } = record;
  const { points, rejectedCount, targets } = mapped;
  yield* insertBatches(run, mapped.batches);
  yield* recordTargets(id, targets);
  yield* addRejectedRows(id, mapped.rejected);
  const after = yield* applyChange(
    store,
    run,
    "mapped",
    { sha256, reason: null, points: { mapped: points, accepted: 0, rejected: rejectedCount } },
    { target_kinds: kindsOf(targets), refused: rejectedCount },
  );
  const lines = [
    eventOf(run, "run.fetched", record.fetched),
    eventOf(run, "run.mapping", record.mapping),
    eventOf(run, "run.mapped", mapped.detail),
  ];
  yield* appendEvents(store, lines, run);
  return after;
}

type Standing = readonly [arrival: ArrivalState, mappedBefore: number];

const SELECT_STANDING = `SELECT ${RUN_COLUMNS}, arrivals.state,
    CASE WHEN EXISTS (SELECT 1 FROM batches WHERE batches.run_id = runs.id) THEN 1 ELSE 0 END
  FROM runs JOIN bindings ON bindings.id = runs.binding_id JOIN arrivals ON arrivals.id = runs.arrival_id WHERE runs.id = ?`;

function* isPlain(
  store: Store,
  run: Run,
  [arrival, mappedBefore]: Standing,
  { sha256, duplicates }: IntakeRecord,
): Steps<boolean> {
  if (run.replay !== null || arrival === "duplicate" || mappedBefore === 1) return false;
  const arrivalOf = { ...run, id: run.arrivalId };
  if ((yield* unfetchedBefore(arrivalOf)) !== null) return false;
  const earlier = yield* duplicateOf(store, arrivalOf, sha256);
  if (earlier === null || duplicates !== "process") return earlier === null;
  // Of equal size and time, it may be the earlier version itself that is back: the single step finds out.
  return earlier.size !== run.size || earlier.mtime !== run.mtime;
}
