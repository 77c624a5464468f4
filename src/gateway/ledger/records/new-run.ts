/** Opens runs for arrivals, which become matched: a list of them in one transaction. */

import { HeadgateError, RejectedError } from "#core/errors.ts";
import { cells, execute, row, type Steps } from "#core/sql/statements.ts";
import type { Arrival, Binding, Replay, Run } from "../../model.ts";
import { RUN_STATES } from "../../states.ts";
import type { Ledger, Opened, RunOpening } from "../ledger.ts";
import { assertTransition } from "../transitions.ts";
import { missingArrival } from "./arrivals.ts";
import { addContainerLanes, placedRunId, releaseContainerLanes } from "./container-lanes.ts";
import { appendEvents } from "./events.ts";
import { ARRIVAL_COLUMNS, type ArrivalCells, arrivalOfCells } from "./rows.ts";
import { advance, bindingId, jsonOf, sharedJsonOf } from "./runs.ts";
import { reopenContainer, type Store } from "./store.ts";

const WHAT = ["arrival.matched", "run.claimed"];

export function openingMethods(store: Store): Pick<Ledger, "openRun" | "openRuns"> {
  return {
    openRun: (arrivalId, binding, lane, start = {}) =>
      store.write(WHAT, () => openRun(store, { arrivalId, binding, lane, ...start })),
    openRuns: (openings) => store.write(WHAT, () => openRuns(store, openings)),
  };
}

type NewRun = Omit<RunOpening, "lanes">;

/** For use inside a write. `id`: where it is decided already. */
export function* openRun(store: Store, given: NewRun, id?: string): Steps<Run> {
  return yield* recordRun(store, given, yield* findToOpen(store, given), id);
}

function* openRuns(store: Store, openings: readonly RunOpening[]): Steps<readonly Opened[]> {
  const held = new Set<string>();
  const opened: Opened[] = [];
  for (const opening of openings) {
    if (held.size > 0 && opening.lanes.some((lane) => held.has(lane))) {
      opened.push({ run: null, why: "behind" });
      continue;
    }
    let found: ToOpen;
    try {
      found = yield* findToOpen(store, opening);
    } catch (thrown) {
      // Nothing was changed for it so far. Any other fault ends the whole transaction.
      if (!(thrown instanceof HeadgateError)) throw thrown;
      for (const lane of opening.lanes) held.add(lane);
      opened.push({ run: null, why: "fault", thrown });
      continue;
    }
    opened.push({ run: yield* recordRun(store, opening, found) });
  }
  return opened;
}

/** With the id of the binding, which nearly always exists already. */
type ArrivalToOpen = readonly [bindingId: number | null, ...ArrivalCells];

const SELECT_TO_OPEN = `SELECT (SELECT bindings.id FROM bindings WHERE bindings.json = ?), ${ARRIVAL_COLUMNS}
  FROM arrivals WHERE id = ?`;

interface ToOpen {
  readonly arrival: Arrival;
  readonly knownBinding: number | null;
}

/** Throws when no run may be opened for the arrival. Changes nothing. */
function* findToOpen(store: Store, { arrivalId, binding, replay }: NewRun): Steps<ToOpen> {
  const [found] = yield* cells<ArrivalToOpen>(SELECT_TO_OPEN, sharedJsonOf(binding), arrivalId);
  if (found === undefined) throw missingArrival(arrivalId);
  const [knownBinding, ...ofArrival] = found;
  const arrival = arrivalOfCells(ofArrival);
  if (replay !== undefined) yield* assertAtRest(arrival);
  else if (arrival.parentId === null) yield* store.assertDrop(arrival.drop, store.session);
  assertTransition("arrival", arrivalId, arrival.state, "matched");
  return { arrival, knownBinding };
}

function* recordRun(store: Store, given: NewRun, { arrival, knownBinding }: ToOpen, decided?: string): Steps<Run> {
  const { arrivalId, binding, lane, replay, refusal } = given;
  const placed = replay === undefined ? yield* placedRunId(arrival) : null;
  const id = decided ?? placed ?? (yield* store.nextRunId());
  const now = store.now();
  const run = newRun(id, { arrival, binding, lane, replay: replay ?? null, now });
  yield* insertRun(run, knownBinding ?? (yield* bindingId(binding)));
  const reason = `claimed by trigger ${binding.trigger}`;
  yield* execute(
    "UPDATE arrivals SET state = 'matched', reason = ?, changed_at = ?, run_id = ? WHERE id = ?",
    reason,
    now,
    id,
    arrivalId,
  );
  if (given.feeds !== undefined) yield* addContainerLanes(id, given.feeds);
  yield* reopenContainer(arrivalId, run.path);
  if (arrival.parentId !== null) yield* releaseContainerLanes(arrival.parentId);
  const subject = { arrivalId, operationId: null };
  const matched = { ...subject, runId: null, what: "arrival.matched", detail: reason };
  const claimed = { ...subject, runId: id, what: "run.claimed", detail: claimWords(binding, replay) };
  const warned =
    given.warning === undefined ? [] : [{ ...subject, runId: id, what: "run.warned", detail: given.warning }];
  yield* appendEvents(store, [...(arrival.state === "matched" ? [] : [matched]), claimed, ...warned], run);
  if (refusal === undefined) return run;
  return yield* advance(store, run, "claimed", "quarantined", { reason: refusal, detail: refusal.message });
}

/** Two operators may send the same command at once. */
function* assertAtRest({ id, path }: Arrival): Steps<void> {
  const latest = yield* row<Pick<Run, "id" | "state">>(
    "SELECT id, state FROM runs WHERE arrival_id = ? ORDER BY id DESC LIMIT 1",
    id,
  );
  if (latest === undefined || !RUN_STATES[latest.state].isInProgress) return;
  throw new RejectedError("HG-LEDG-006", {
    operation: "replay",
    subject: path,
    message: `run ${latest.id} of ${path} is in progress (${latest.state})`,
  });
}

function claimWords({ trigger, mapper }: Binding, replay: Replay | undefined): string {
  const claimed = `by trigger ${trigger} for mapper ${mapper.name} ${mapper.version}`.trimEnd();
  if (replay === undefined) return claimed;
  if (replay.continues !== undefined) return `continues run ${replay.of}: ${replay.why ?? ""}; ${claimed}`;
  const how = [replay.rejectedOnly ? "only what was not accepted" : "", replay.overwrite ? "overwriting" : ""];
  const words = how.filter((word) => word !== "").join(", ");
  const why = replay.why === undefined ? "" : `: ${replay.why}`;
  return `replay of run ${replay.of}, ordered by ${replay.by}${words === "" ? "" : ` (${words})`}${why}; ${claimed}`;
}

function newRun(
  id: string,
  {
    arrival,
    now,
    ...given
  }: Pick<Run, "binding" | "lane" | "replay"> & { readonly arrival: Arrival; readonly now: string },
): Run {
  return {
    ...given,
    id,
    arrivalId: arrival.id,
    drop: arrival.drop,
    path: arrival.path,
    size: arrival.size,
    mtime: arrival.mtime,
    sha256: arrival.sha256,
    state: "claimed",
    reason: null,
    points: { mapped: 0, accepted: 0, stored: 0, rejected: 0, discarded: 0 },
    findings: [],
    finishPlan: null,
    finishedAt: null,
    node: null,
    confirmClock: null,
    createdAt: now,
    changedAt: now,
  };
}

function insertRun(run: Run, bindingId: number): Steps<void> {
  const { binding } = run;
  return execute(
    `INSERT INTO runs (id, arrival_id, drop_name, path, size, mtime, sha256, binding_id, lane, state,
replay, created_at, changed_at, sender, operation_prefix)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'claimed', ?, ?, ?, ?, ?)`,
    run.id,
    run.arrivalId,
    run.drop,
    run.path,
    run.size,
    run.mtime,
    run.sha256,
    bindingId,
    run.lane,
    jsonOf(run.replay),
    run.createdAt,
    run.changedAt,
    binding.sender ?? null,
    binding.operationPrefix ?? null,
  );
}
