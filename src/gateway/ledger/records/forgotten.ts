/** Forgets a file at the command of an operator, and keeps a record of it. */
import { basename } from "node:path/posix";
import { RejectedError } from "#core/errors.ts";
import { cells, execute, row, rows, type Steps } from "#core/sql/statements.ts";
import type { IsoInstant, Run } from "../../model.ts";
import { RUN_STATES, runStatesThat } from "../../states.ts";
import type { ForgetSaid, Forgotten, ForgottenFile, Ledger } from "../ledger.ts";
import { type RunCells, type RunRow, SELECT_RUN, toRunRow } from "./rows.ts";
import { literals } from "./run-indexes.ts";
import type { Store } from "./store.ts";

/** Children before parents. Each statement takes the arrival's id. */
const DELETIONS = [
  "DELETE FROM events WHERE arrival_id = ?",
  "UPDATE arrivals SET run_id = NULL WHERE id = ?",
  "DELETE FROM run_targets WHERE run_id IN (SELECT id FROM runs WHERE arrival_id = ?)",
  "DELETE FROM rejected_rows WHERE run_id IN (SELECT id FROM runs WHERE arrival_id = ?)",
  "DELETE FROM batches WHERE run_id IN (SELECT id FROM runs WHERE arrival_id = ?)",
  "DELETE FROM runs WHERE arrival_id = ?",
  "DELETE FROM arrivals WHERE id = ?",
] as const;

/** States of runs whose outcome is unknown, or that need attention. */
const KEPT_STATES = runStatesThat(({ isOpen, needsAttention }) => isOpen || needsAttention);

const SHOWN_MAX = 50;

export function forgettingMethods(store: Store): Pick<Ledger, "forget" | "forgettable" | "forgottenFiles"> {
  return {
    forget: (drop, path, said) => store.write("arrivals.forgotten", () => forget(store, drop, path, said)),
    forgettable: (drop, path) =>
      store.read(function* () {
        return (yield* forgettable(drop, path)).forgotten;
      }),
    forgottenFiles: (query) => store.look(() => forgottenFiles(query)),
  };
}

/** Containers before their entries. */
function* withEntries(drop: string, path: string): Steps<readonly number[]> {
  const found = yield* rows<{ id: number }>(
    `WITH RECURSIVE inside (id) AS (
        SELECT id FROM arrivals WHERE name = ? AND path = ? AND drop_name = ? AND parent_id IS NULL
        UNION ALL SELECT arrivals.id FROM arrivals JOIN inside ON arrivals.parent_id = inside.id)
      SELECT id FROM inside ORDER BY id`,
    basename(path),
    path,
    drop,
  );
  return found.map(({ id }) => id);
}

/**
 * Throws `RejectedError` while one of its runs is in progress. `ids`: its arrivals, containers before their
 * entries.
 */
function* forgettable(
  drop: string,
  path: string,
): Steps<{ readonly ids: readonly number[]; readonly forgotten: Forgotten }> {
  const ids = yield* withEntries(drop, path);
  const runs: RunRow[] = [];
  for (const id of ids) {
    const found = yield* cells<RunCells>(`${SELECT_RUN} WHERE runs.arrival_id = ? ORDER BY runs.id`, id);
    runs.push(...found.map(toRunRow));
  }
  const busy = runs.find(isUnfinished);
  if (busy !== undefined)
    throw new RejectedError("HG-LEDG-006", {
      operation: "forget",
      subject: path,
      message: `run ${busy.run.id} of ${busy.run.path} is in progress (${busy.run.state})`,
    });
  let unanswered = 0;
  for (const { run } of runs) unanswered += yield* unansweredOf(run.id);
  const forgotten = {
    arrivals: ids.length,
    runs: runs.map(({ run }) => run.id),
    acceptedPoints: runs.reduce((sum, { run }) => sum + run.points.accepted, 0),
    unanswered,
  };
  return { ids, forgotten };
}

/** For use inside a write. */
function* forget(store: Store, drop: string, path: string, { by, why }: ForgetSaid): Steps<Forgotten> {
  const { ids, forgotten } = yield* forgettable(drop, path);
  // Entries refer to their containers.
  for (const id of ids.toReversed()) yield* deleteArrival(id);
  if (ids.length > 0)
    yield* execute(
      "INSERT INTO forgotten_files (at, drop_name, path, name, said_by, why, json) VALUES (?, ?, ?, ?, ?, ?, ?)",
      store.now(),
      drop,
      path,
      basename(path),
      by,
      why,
      JSON.stringify(forgotten),
    );
  return forgotten;
}

/** When the file of a run, or the container that it is in, was last forgotten. For use inside a write. */
export function* forgottenLast({ drop, path }: Pick<Run, "drop" | "path">): Steps<IsoInstant | null> {
  const [outermost = path] = path.split("!/", 1);
  const found = yield* row<{ at: string | null }>(
    "SELECT max(at) AS at FROM forgotten_files WHERE name = ? AND path = ? AND drop_name = ?",
    basename(outermost),
    outermost,
    drop,
  );
  return found?.at ?? null;
}

interface ForgottenRow {
  readonly at: string;
  readonly drop_name: string;
  readonly path: string;
  readonly said_by: string;
  readonly why: string;
  readonly json: string;
}

function* forgottenFiles(query: string): Steps<readonly ForgottenFile[]> {
  const found = yield* rows<ForgottenRow>(
    "SELECT * FROM forgotten_files WHERE name = ? ORDER BY id DESC LIMIT ?",
    basename(query),
    SHOWN_MAX,
  );
  return found
    .filter(({ path }) => !query.includes("/") || path === query)
    .map(({ at, drop_name: drop, path, said_by: by, why, json }) => ({
      ...(JSON.parse(json) as Forgotten),
      ...{ at, drop, path, by, why },
    }));
}

function* unansweredOf(runId: string): Steps<number> {
  const found = yield* row<{ n: number }>(
    "SELECT count(*) AS n FROM batches WHERE run_id = ? AND state = 'sending'",
    runId,
  );
  return found?.n ?? 0;
}

/**
 * An accepted run that expects outcomes is not at rest, nor is a run whose source is still to be finished.
 */
function isUnfinished({ run, settled }: RunRow): boolean {
  const { isInProgress: isToDeliver, isClosing } = RUN_STATES[run.state];
  if (isToDeliver) return true;
  if (isClosing) return !settled;
  // Only an outcome is awaited, which may never arrive.
  if (run.state === "unconfirmed") return false;
  return run.finishedAt === null;
}

// Forgets arrivals that left the drops long ago, so that the ledger does not grow for ever.

export function pruningMethods(store: Store): Pick<Ledger, "prune"> {
  return {
    prune: (goneBefore, limit) => store.write("arrivals.pruned", () => prune(goneBefore, limit)),
  };
}

/** For use inside a write: deletes every record of an arrival. */
function* deleteArrival(id: number): Steps<void> {
  for (const deletion of DELETIONS) yield* execute(deletion, id);
}

/**
 * For use inside a write. An accepted run that expects outcomes is not at rest; after a replay only the
 * replay has to be good.
 */
function* prune(goneBefore: IsoInstant, limit: number): Steps<number> {
  const due = yield* rows<{ id: number }>(
    `SELECT id FROM arrivals WHERE gone_at < ?
      AND NOT EXISTS (SELECT 1 FROM arrivals AS present
        WHERE present.drop_name = arrivals.drop_name AND present.path = arrivals.path
AND present.gone_at IS NULL AND present.parent_id IS NULL)
      AND NOT EXISTS (SELECT 1 FROM arrivals AS inside
        WHERE inside.drop_name = arrivals.drop_name AND inside.path = arrivals.path
AND inside.gone_at IS NULL AND inside.parent_id IS NOT NULL)
      AND NOT EXISTS (SELECT 1 FROM arrivals AS entry WHERE entry.parent_id = arrivals.id)
      AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.arrival_id = arrivals.id AND (runs.finished_at IS NULL
        OR (runs.state = 'accepted' AND runs.settled = 0)
        OR (runs.state IN (${literals(KEPT_STATES)}) AND runs.id = arrivals.run_id)))
      ORDER BY gone_at LIMIT ?`,
    goneBefore,
    limit,
  );
  for (const { id } of due) yield* deleteArrival(id);
  yield* execute("DELETE FROM forgotten_files WHERE at < ?", goneBefore);
  if (due.length > 0)
    yield* execute("DELETE FROM bindings WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.binding_id = bindings.id)");
  return due.length;
}
