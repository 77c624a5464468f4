/** Fetched and mapped in one go: what most files are, and then one record is enough for both. */
import type { Run, RunState } from "../../model.ts";
import type { IntakeRecord, Ledger } from "../ledger.ts";
import { duplicateOf, findArrival } from "./arrivals.ts";
import { insertBatches } from "./batches.ts";
import { kindsOf, recordTargets } from "./lanes.ts";
import { addRejectedRows, applyChange, assertState, mustFindRun, tell } from "./runs.ts";
import { row, type Steps, type Store } from "./store.ts";

const STATES: readonly RunState[] = ["fetched", "mapping", "mapped"];

export function intakeMethods(store: Store): Pick<Ledger, "recordIntake"> {
  const passed = STATES.map((state) => `run.${state}`);
  return { recordIntake: (id, record) => store.write(passed, () => recordIntake(store, id, record)) };
}

function* recordIntake(store: Store, id: string, record: IntakeRecord): Steps<Run | null> {
  yield* store.assertRun(id);
  const run = yield* mustFindRun(id);
  assertState(run, "claimed");
  if (!(yield* isPlain(store, run, record))) return null;
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
  yield* tell(store, run, "run.fetched", { detail: record.fetched });
  yield* tell(store, run, "run.mapping", { detail: record.mapping });
  yield* tell(store, run, "run.mapped", { detail: mapped.detail });
  return after;
}

function* isPlain(store: Store, run: Run, { sha256, duplicates }: IntakeRecord): Steps<boolean> {
  if (run.replay !== null) return false;
  const before = yield* row("SELECT 1 FROM batches WHERE run_id = ? LIMIT 1", run.id);
  if (before !== undefined) return false;
  const arrival = yield* findArrival(run.arrivalId);
  if (arrival === null || arrival.state === "duplicate") return false;
  return duplicates === "process" || (yield* duplicateOf(store, arrival, sha256)) === null;
}
