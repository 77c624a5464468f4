/** Finds contradictions in a ledger, and repairs those that the remaining records determine. */

import { execute, rows, type Steps } from "#core/sql/statements.ts";
import { ACCEPTED_STATES, DELIVERABLE_STATES, NOT_ACCEPTED_STATES } from "../../states.ts";
import type { Ledger, LedgerFault } from "../ledger.ts";
import { recountAnswers, recountOutcomes } from "./batches.ts";
import { appendEvent } from "./events.ts";
import { literals } from "./run-indexes.ts";
import { mustFindRun } from "./runs.ts";
import type { Store } from "./store.ts";

/** More faults of one kind add no information. */
const EACH_MAX = 200;

interface Found {
  readonly subject: string | number;
  readonly words: string;
}

interface Question {
  readonly repair: LedgerFault["repair"];
  /** Rows of `subject` and `words`. */
  readonly sql: string;
}

const ACCEPTED_POINTS = "sum(CASE WHEN batches.state = 'accepted' THEN batches.points ELSE 0 END)";

const QUESTIONS: readonly Question[] = [
  {
    repair: null,
    sql: `SELECT id AS subject, 'is ' || state || ', and has no batches' AS words FROM runs
      WHERE state IN (${literals([...DELIVERABLE_STATES, ...ACCEPTED_STATES])})
        AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = runs.id)`,
  },
  {
    repair: null,
    sql: `SELECT runs.id AS subject,
'is ' || runs.state || ', and its batch ' || batches.sequence || ' is ' || batches.state AS words
      FROM runs JOIN batches ON batches.run_id = runs.id
      WHERE runs.state IN (${literals(ACCEPTED_STATES)}) AND batches.state IN (${literals(NOT_ACCEPTED_STATES)})`,
  },
  {
    repair: null,
    sql: `SELECT runs.id AS subject,
'has ' || runs.mapped || ' points mapped, and batches of ' || sum(batches.points) AS words
      FROM runs JOIN batches ON batches.run_id = runs.id AND batches.state <> 'split'
      GROUP BY runs.id HAVING sum(batches.points) <> runs.mapped`,
  },
  {
    repair: "recount",
    sql: `SELECT runs.id AS subject,
'counts ' || runs.accepted || ' points accepted, and its batches ' || ${ACCEPTED_POINTS} AS words
      FROM runs JOIN batches ON batches.run_id = runs.id
      GROUP BY runs.id HAVING ${ACCEPTED_POINTS} <> runs.accepted`,
  },
  {
    repair: "relink",
    sql: `SELECT arrivals.id AS subject,
'names the run ' || coalesce(arrivals.run_id, 'none') || ' as its latest, which is ' || max(runs.id) AS words
      FROM arrivals JOIN runs ON runs.arrival_id = arrivals.id
      GROUP BY arrivals.id HAVING arrivals.run_id IS DISTINCT FROM max(runs.id)`,
  },
  {
    repair: null,
    sql: `SELECT id AS subject, 'is matched, and has no run' AS words FROM arrivals
      WHERE state = 'matched' AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.arrival_id = arrivals.id)`,
  },
];

export function checkingMethods(store: Store): Pick<Ledger, "check" | "repair"> {
  return {
    check: () => store.read(() => check(store)),
    repair: (fault) => store.write("run.noted", () => repair(store, fault)),
  };
}

function* check(store: Store): Steps<readonly LedgerFault[]> {
  const faults = [...(yield* store.dialect.damage(EACH_MAX))];
  for (const { sql, repair } of QUESTIONS)
    for (const { subject, words } of yield* rows<Found>(`${sql} LIMIT ${EACH_MAX}`))
      faults.push({
        subject: typeof subject === "number" ? `arrival ${subject}` : `run ${subject}`,
        words,
        repair,
      });
  return faults;
}

/** For use inside a write. */
function* repair(store: Store, { subject, words, repair: how }: LedgerFault): Steps<boolean> {
  const id = subject.slice(subject.indexOf(" ") + 1);
  if (how === "recount") {
    yield* recountAnswers(store, id);
    yield* recountOutcomes(store, id);
    yield* noteRepair(store, (yield* mustFindRun(id)).arrivalId, words);
  } else if (how === "relink") {
    yield* execute(
      "UPDATE arrivals SET run_id = (SELECT max(id) FROM runs WHERE arrival_id = arrivals.id) WHERE id = ?",
      Number(id),
    );
    yield* noteRepair(store, Number(id), words);
  }
  return how !== null;
}

function noteRepair(store: Store, arrivalId: number, words: string): Steps<void> {
  return appendEvent(store, {
    arrivalId,
    runId: null,
    operationId: null,
    what: "ledger.repaired",
    detail: words,
  });
}
