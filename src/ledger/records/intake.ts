/** Fetched and mapped in one go: what most files are, and then one record is enough for both. */
import type { ArrivalState, Run, RunState } from "../../model.ts";
import type { IntakeRecord, Ledger } from "../ledger.ts";
import { duplicateOf } from "./arrivals.ts";
import { insertBatches } from "./batches.ts";
import { kindsOf, recordTargets } from "./lanes.ts";
import { addRejectedRows, applyChange, assertState, mustFindRun, tell } from "./runs.ts";
import { cells, type Steps, type Store } from "./store.ts";

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

type Standing = readonly [arrival: ArrivalState, mappedBefore: number];

const SELECT_STANDING = `SELECT arrivals.state, CASE WHEN EXISTS (SELECT 1 FROM batches WHERE run_id = ?) THEN 1 ELSE 0 END
  FROM arrivals WHERE arrivals.id = ?`;

function* isPlain(store: Store, run: Run, { sha256, duplicates }: IntakeRecord): Steps<boolean> {
  if (run.replay !== null) return false;
  const [standing] = yield* cells<Standing>(SELECT_STANDING, run.id, run.arrivalId);
  if (standing === undefined || standing[0] === "duplicate" || standing[1] === 1) return false;
  if (duplicates === "process") return true;
  return (yield* duplicateOf(store, { ...run, id: run.arrivalId }, sha256)) === null;
}
