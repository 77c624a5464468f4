/** Implements the contract of the ledger over a store, except opening and closing. */

import { continuationRunId } from "#core/run-id.ts";
import { cells, execute, row, rows, type Steps } from "#core/sql/statements.ts";
import { counted } from "#core/text.ts";
import type { ArrivalState, BatchState, Binding, FileStanding, Outcome, Reason, Run, RunState } from "../../model.ts";
import {
  ALL_RUN_STATES,
  ASIDE_STATES,
  DELIVERABLE_STATES,
  LEAVES_LANE_STATES,
  NOT_ACCEPTED_STATES,
  standingOf,
} from "../../states.ts";
import type {
  ApprovedKeys,
  Backlog,
  BegunDelivery,
  HeldReplacement,
  LaneHead,
  LaneHeads,
  Ledger,
  PollRecord,
  Replaced,
  Tally,
  TriggerList,
  TriggerLists,
  WholeRun,
} from "../ledger.ts";
import { assertTransition, brokenInvariant } from "../transitions.ts";
import { advanceMethods } from "./advances.ts";
import { arrivalMethods } from "./arrivals.ts";
import { assertState, batchesOf, batchMethods, findBatch, missingBatch, recountOutcomes } from "./batches.ts";
import { checkingMethods } from "./consistency.ts";
import { containerMethods } from "./containers.ts";
import { appendEvent, appendEvents, eventMethods } from "./events.ts";
import { fileList } from "./file-list.ts";
import { finishedFiles } from "./finished-files.ts";
import { forgettingMethods, pruningMethods } from "./forgotten.ts";
import { historyMethods } from "./history.ts";
import { blockedBy, inTheWayOf } from "./lanes.ts";
import { openingMethods, openRun } from "./new-run.ts";
import { laterDeliverers, operatorMethods } from "./operator.ts";
import { LedgerPoll } from "./polls/poll.ts";
import { RUN_CELLS, RUN_COLUMNS, type RunCells, toRunRow } from "./rows.ts";
import { literals, RESTING, TO_DELIVER, UNMAPPED } from "./run-indexes.ts";
import { advance, applyChange, eventOf, findRun, missingRun, moveRun, mustFindRun, runMethods } from "./runs.ts";
import { perDialect, type Store } from "./store.ts";
import { traceMethods } from "./trace.ts";

/** An index for each part of the runs that are in progress, held or unconfirmed, and its condition. */
const UNDER_WAY = [
  ["runs_intake", UNMAPPED],
  ["runs_delivery", TO_DELIVER],
  ["runs_unsettled", "runs.settled = 0 AND runs.state = 'accepted'"],
  ["runs_resting", "runs.state = 'unconfirmed'"],
] as const;

/** The same for all runs that changed since. */
const CHANGED = [
  ["runs_intake", UNMAPPED],
  ["runs_delivery", TO_DELIVER],
  ["runs_changed", RESTING],
] as const;

const SELECT_RUN_OF_BATCH = `SELECT ${RUN_COLUMNS}, batches.state, batches.points,
    CASE WHEN EXISTS (SELECT 1 FROM batches AS other
      WHERE other.run_id = runs.id AND other.operation_id <> batches.operation_id) THEN 1 ELSE 0 END
  FROM batches JOIN runs ON runs.id = batches.run_id JOIN bindings ON bindings.id = runs.binding_id
WHERE batches.operation_id = ?`;

/** Batches are sent in their order, so that one that is left is found at the end, without reading all before it. */
const SELECT_LEFT = `SELECT 1 FROM batches
  WHERE run_id = ? AND operation_id <> ? AND state IN (${literals(NOT_ACCEPTED_STATES)})
  ORDER BY place DESC LIMIT 1`;

const SELECT_OTHERS = `SELECT coalesce(sum(CASE WHEN state = 'accepted' THEN points END), 0),
    coalesce(sum(CASE WHEN state = 'rejected' THEN points END), 0),
    coalesce(sum(CASE WHEN state = 'accepted' AND repeats IS NOT NULL THEN points END), 0),
    min(CASE WHEN state = 'accepted' THEN repeats END)
  FROM batches WHERE run_id = ? AND operation_id <> ?`;

const ALONE: OthersCells = [0, 0, 0, null];

/** Number of earlier runs of a lane that are checked: those that changed last. */
const EARLIER_MAX = 20;

const selectHeads = perDialect(({ indexedBy }) => {
  const group = (index: string, which: string, waiting: string) =>
    `SELECT lane, min(id) AS head, ${waiting} AS waiting FROM runs ${indexedBy(index)} WHERE ${which} GROUP BY lane`;
  const inState = (state: RunState) =>
    group("runs_delivery", `runs.state = '${state}'`, state === "delivering" ? "0" : "count(*)");
  return `SELECT fronts.lane, fronts.head, fronts.waiting, (SELECT min(container_lanes.run_id) FROM container_lanes
      WHERE container_lanes.lane = fronts.lane AND container_lanes.run_id < fronts.head) AS container
    FROM (SELECT lane, min(head) AS head, CAST(sum(waiting) AS bigint) AS waiting
      FROM (${group("runs_unmapped", UNMAPPED, "count(*)")}
        ${DELIVERABLE_STATES.map((state) => `UNION ALL ${inState(state)}`).join("\n        ")}) AS parts
      GROUP BY lane) AS fronts ORDER BY fronts.head`;
});

const STATES_COME = ALL_RUN_STATES.map((state) => `'run.${state}'`);

const MOVED_AT = `SELECT max(at) AS at FROM events
  WHERE arrival_id = ? AND run_id = ? AND what IN (${STATES_COME.join(", ")}, 'batch.accepted')`;

/** The events by which a run leaves the front of its lane. */
const LEAVES = LEAVES_LANE_STATES.map((state) => `'run.${state}'`);

/** A run also changes after it left, such as when it is confirmed, so its events determine when it left. */
const selectLeft = perDialect(({ indexedBy }) => {
  const latest = (index: string, which: string) =>
    `SELECT * FROM (SELECT id, arrival_id FROM runs ${indexedBy(index)}
      WHERE ${which} AND lane = ? AND id < ? AND changed_at > ? ORDER BY changed_at DESC LIMIT ${EARLIER_MAX})`;
  const aside = ASIDE_STATES.map((state) => `${latest("runs_delivery", `runs.state = '${state}'`)} AS ${state}`);
  return `SELECT max(events.at) AS at
    FROM (${[`${latest("runs_changed", RESTING)} AS rested`, ...aside].join("\nUNION ALL ")}) AS earlier
    JOIN events ON events.arrival_id = earlier.arrival_id AND events.run_id = earlier.id
    WHERE events.at > ? AND events.what IN (${LEAVES.join(", ")})`;
});

export function ledgerMethods(store: Store): Omit<Ledger, "close" | "fleet" | "shared"> {
  const polls = new Set<string>();
  return {
    beginPoll: (drop, archives) => beginPoll(store, polls, drop, archives ?? []),
    ...arrivalMethods(store),
    ...pruningMethods(store),
    ...openingMethods(store),
    ...runMethods(store),
    ...containerMethods(store),
    ...advanceMethods(store),
    ...batchMethods(store),
    ...acceptanceMethods(store),
    ...orderMethods(store),
    ...outcomeMethods(store),
    ...eventMethods(store),
    ...traceMethods(store),
    ...tallyMethods(store),
    ...historyMethods(store),
    ...operatorMethods(store),
    ...forgettingMethods(store),
    ...checkingMethods(store),
    approvedKeys: approvedKeys(store),
    finishedFiles: finishedFiles(store),
    files: fileList(store),
    laneHeads: laneHeads(store),
    triggerLists: triggerLists(store),
  };
}

async function beginPoll(
  store: Store,
  polls: Set<string>,
  drop: string,
  archives: readonly string[],
): Promise<PollRecord> {
  if (polls.has(drop)) throw brokenInvariant("begin poll", drop, `a poll of drop ${drop} is in progress already`);
  polls.add(drop);
  try {
    const known = await finishedFiles(store).archives(drop, archives);
    return await LedgerPoll.begin(store, drop, known, () => polls.delete(drop));
  } catch (thrown) {
    polls.delete(drop);
    throw thrown;
  }
}

// Short lists that are the same for all nodes: triggers of services, and approved host keys.

function triggerLists(store: Store): TriggerLists {
  return {
    find: (source) =>
      store.look(function* () {
        const found = yield* row<{ listed_at: string; triggers: string }>(
          "SELECT listed_at, triggers FROM trigger_lists WHERE source = ?",
          source,
        );
        return found === undefined ? null : { source, listedAt: found.listed_at, triggers: found.triggers };
      }),
    keep: ({ source, listedAt, triggers }: TriggerList) =>
      store.write("triggers.listed", function* () {
        yield* execute(
          `INSERT INTO trigger_lists (source, listed_at, triggers) VALUES (?, ?, ?)
            ON CONFLICT (source) DO UPDATE SET listed_at = excluded.listed_at, triggers = excluded.triggers`,
          source,
          listedAt,
          triggers,
        );
      }),
  };
}

function approvedKeys(store: Store): ApprovedKeys {
  return {
    list: () =>
      store.look(function* () {
        const found = yield* rows<{ drop_name: string; lines: string; approved_at: string }>(
          "SELECT drop_name, lines, approved_at FROM approved_keys ORDER BY approved_at, drop_name, lines",
        );
        return found.map(({ drop_name: drop, lines, approved_at: approvedAt }) => ({ drop, lines, approvedAt }));
      }),
    keep: ({ drop, lines, approvedAt }) =>
      store.write("key.approved", function* () {
        yield* execute(
          `INSERT INTO approved_keys (drop_name, lines, approved_at) VALUES (?, ?, ?)
            ON CONFLICT (drop_name, lines) DO NOTHING`,
          ...[drop, lines, approvedAt],
        );
      }),
  };
}

/**
 * The transitions at which the order of a lane is decided (invariant 7). Each queries the runs in the way
 * once more, in the transaction that changes the state: they may have changed while the guard queried the
 * service.
 */
function orderMethods(store: Store): Pick<Ledger, "beginDelivery" | "resumeHeld" | "replaceHeld"> {
  return {
    beginDelivery: (id, detail) => store.write("run.delivering", () => beginDelivery(store, id, detail)),
    resumeHeld: (id, to, seen, detail) => store.write(`run.${to}`, () => resumeHeld(store, id, to, seen, detail)),
    replaceHeld: (id, reason, next) =>
      store.write(["run.cancelled", "run.claimed"], () => replaceHeld(store, id, reason, next)),
  };
}

function* beginDelivery(store: Store, id: string, detail: string): Steps<BegunDelivery> {
  const found = yield* inTheWayOf(store, id);
  if (found === null) throw missingRun(id);
  if (found.before !== null) return { run: null, blockedBy: found.before };
  yield* store.assertRun(id);
  const run = yield* advance(store, found.run, "mapped", "delivering", { detail });
  return { run, blockedBy: null, batches: yield* batchesOf(id) };
}

function* resumeHeld(
  store: Store,
  id: string,
  to: "mapped" | "delivering",
  seen: readonly string[] | null,
  detail: string,
): Steps<Run | null> {
  const run = yield* mustFindRun(id);
  // A run that resumes as `mapped` is checked again before its delivery.
  if (to === "delivering" && (yield* blockedBy(store, run)) !== null) return null;
  const [delivering] = yield* laterDeliverers(store, run, 1, ["delivering"]);
  if (delivering !== undefined) return null;
  if (seen !== null) {
    const later = yield* laterDeliverers(store, run, seen.length + 1);
    if (later.some(({ id: other }) => !seen.includes(other))) return null;
  }
  return yield* moveRun(store, id, "held", to, { reason: null, detail });
}

function* replaceHeld(store: Store, id: string, reason: Reason, next: HeldReplacement): Steps<Replaced> {
  const after = next.replay.continues === undefined ? yield* store.nextRunId() : continuationRunId(id);
  const message = `${reason.message}; its file is run ${after} now`;
  const held = yield* moveRun(store, id, "held", "cancelled", { reason: { ...reason, message }, detail: message });
  return { held, run: yield* openRun(store, { arrivalId: held.arrivalId, ...next }, after) };
}

function laneHeads(store: Store): LaneHeads {
  return {
    list: () => store.read(() => listHeads(store)),
    movedAt: (run) =>
      store.look(function* () {
        const found = yield* row<{ at: string | null }>(MOVED_AT, run.arrivalId, run.id);
        return found?.at ?? run.createdAt;
      }),
    aheadLeftAt: ({ lane, run }, since) =>
      store.look(function* () {
        const earlier = Array.from({ length: 1 + ASIDE_STATES.length }, () => [lane, run.id, since]).flat();
        const found = yield* row<{ at: string | null }>(selectLeft(store), ...earlier, since);
        return found?.at ?? null;
      }),
  };
}

function* listHeads(store: Store): Steps<readonly LaneHead[]> {
  const fronts = yield* rows<{ lane: string; head: string; waiting: number; container: string | null }>(
    selectHeads(store),
  );
  const heads: LaneHead[] = [];
  for (const { lane, head, waiting, container } of fronts) {
    const run = yield* findRun(container ?? head);
    if (run === null) continue;
    const isCounted = container === null && run.state !== "delivering";
    heads.push({ lane, run, behind: waiting - (isCounted ? 1 : 0) });
  }
  return heads;
}

/**
 * Outcomes of operations. They may arrive before the response to the push was recorded, several times, and in
 * any order.
 */
function outcomeMethods(store: Store): Pick<Ledger, "runOfOperation" | "recordOutcome"> {
  return {
    runOfOperation: (operationId) => store.look(() => runOfOperation(operationId)),
    recordOutcome: (outcome) => store.write("outcome.recorded", () => recordOutcome(store, outcome)),
  };
}

function* runOfOperation(operationId: string): Steps<Run | null> {
  const batch = yield* findBatch(operationId);
  return batch === null ? null : yield* findRun(batch.runId);
}

/**
 * `counts` decides whether the outcome is recorded; an outcome that does not count is still an event, unless
 * it is a repetition.
 */
function* recordOutcome(store: Store, outcome: Outcome): Steps<string | null> {
  const batch = yield* findBatch(outcome.operationId);
  if (batch === null) return null;
  const known = batch.outcome;
  const note = function* (detail: string): Steps<void> {
    yield* appendEvent(store, {
      arrivalId: (yield* mustFindRun(batch.runId)).arrivalId,
      runId: batch.runId,
      operationId: outcome.operationId,
      what: `outcome.${outcome.by}`,
      detail,
    });
  };
  if (known !== null && !counts(outcome, known)) {
    const isNews = outcome.by === "webhook" && outcome.at < known.at && !(yield* wasReportedBefore(outcome));
    if (isNews) yield* note(`${outcomeWords(outcome)}; of ${outcome.at}, so that the newer one of ${known.at} stands`);
    return batch.runId;
  }
  yield* execute("UPDATE batches SET outcome = ? WHERE operation_id = ?", JSON.stringify(outcome), outcome.operationId);
  yield* execute("UPDATE runs SET settled = 0 WHERE id = ?", batch.runId);
  yield* recountOutcomes(store, batch.runId);
  yield* note(outcomeWords(outcome));
  return batch.runId;
}

/**
 * The newest counts by its time, whatever the order of arrival: a service that applies a failed operation
 * again reports another outcome of it. The service's own report overrides the finding of a read-back, unless
 * the read-back is newer and found everything.
 */
function counts(newer: Outcome, known: Outcome): boolean {
  if (newer.by === known.by) return newer.at > known.at;
  const [own, read] = newer.by === "webhook" ? [newer, known] : [known, newer];
  const isProven = read.discarded.length === 0 && read.stored === read.received && read.at > own.at;
  return (newer === read) === isProven;
}

/** The same outcome was reported before, and stood until a newer one came, or did not count even then. */
function* wasReportedBefore(outcome: Outcome): Steps<boolean> {
  const found = yield* row<{ n: number }>(
    `SELECT count(*) AS n FROM events
      WHERE arrival_id = (
  SELECT runs.arrival_id FROM runs JOIN batches ON batches.run_id = runs.id WHERE batches.operation_id = ?)
        AND operation_id = ? AND what = ? AND (detail = ? OR detail LIKE ?)`,
    outcome.operationId,
    outcome.operationId,
    `outcome.${outcome.by}`,
    outcomeWords(outcome),
    `%; of ${outcome.at}, so that %`,
  );
  return (found?.n ?? 0) > 0;
}

function outcomeWords(outcome: Outcome): string {
  const dropped = outcome.discarded.map(({ target, reason, points }) => `${points} of ${target} discarded: ${reason}`);
  return [`${outcome.stored} of ${outcome.received} stored`, ...dropped].join("; ");
}

/** Accepts a batch, and with the last one its run, in the same transaction. */
function acceptanceMethods(store: Store): Pick<Ledger, "acceptBatch"> {
  return {
    acceptBatch: (operationId, answer, whole, repeats) =>
      store.write(["batch.accepted", "run.accepted"], () =>
        acceptBatch(store, operationId, { answer, repeats }, whole),
      ),
  };
}

/** The columns behind the cells of the run: one of its batches, and whether it has others. */
type BatchCells = readonly [state: BatchState, points: number, hasOthers: number];

/** The points of the other leaves of a run, and one of the earlier operations that delivered some of them. */
type OthersCells = readonly [accepted: number, rejected: number, repeated: number, repeats: string | null];

function* acceptBatch(
  store: Store,
  operationId: string,
  { answer, repeats }: { readonly answer: string; readonly repeats: string | undefined },
  { service, finishPlan }: WholeRun,
): Steps<Run | null> {
  const [found] = yield* cells<RunCells>(SELECT_RUN_OF_BATCH, operationId);
  if (found === undefined) throw missingBatch(operationId);
  const { run, refused } = toRunRow(found);
  const [state, own, hasOthers] = found.slice(RUN_CELLS) as unknown as BatchCells;
  yield* store.assertRun(run.id);
  assertState({ operationId, state }, "sending");
  const left = hasOthers === 0 ? [] : yield* cells(SELECT_LEFT, run.id, operationId);
  yield* execute(
    `UPDATE batches SET state = 'accepted', answer = ?, repeats = ?, accepted_at = coalesce(accepted_at, ?)
      WHERE operation_id = ?`,
    answer,
    repeats ?? null,
    store.now(),
    operationId,
  );
  const batchAccepted = { ...eventOf(run, "batch.accepted", answer), operationId };
  if (run.state !== "delivering" || left.length > 0) {
    // Each answer counts in its own transaction, so that the points before it are known.
    const points = { accepted: run.points.accepted + own };
    yield* applyChange(store, run, run.state, { points }, {});
    yield* appendEvent(store, batchAccepted, run);
    return null;
  }
  const [others = ALONE] = hasOthers === 0 ? [] : yield* cells<OthersCells>(SELECT_OTHERS, run.id, operationId);
  const accepted = others[0] + own;
  const points = { accepted, rejected: refused + others[1] };
  assertTransition("run", run.id, run.state, "accepted");
  const plan = finishPlan === undefined || run.finishPlan !== null ? {} : { finishPlan };
  const after = yield* applyChange(store, run, "accepted", { points, reason: null, ...plan }, {});
  const repeated = others[2] + (repeats === undefined ? 0 : own);
  const words = `${counted(accepted, "point")} accepted by ${service}${repeatedWords(repeated, repeats ?? others[3])}`;
  const runAccepted = eventOf(run, "run.accepted", words);
  yield* appendEvents(store, [batchAccepted, runAccepted], run);
  return after;
}

/** Of a run: how many of its points an earlier operation had delivered. */
function repeatedWords(points: number, repeats: string | null): string {
  if (points === 0) return "";
  const by = repeats === null || repeats === "" ? "an earlier operation" : repeats;
  return `, ${points} of which were already delivered by ${by}`;
}

interface Group {
  readonly drop_name: string;
  readonly arrival: ArrivalState;
  readonly run: RunState | null;
  readonly files: number;
}

function tallyMethods(store: Store): Pick<Ledger, "tally" | "backlog"> {
  return {
    tally: (since) => store.read(() => tally(store, since)),
    backlog: () => store.look(() => backlog(store)),
  };
}

function* backlog({ dialect }: Store): Steps<readonly Backlog[]> {
  const found = yield* rows<{
    readonly drop_name: string;
    readonly binding: string;
    readonly state: RunState;
    readonly runs: number;
    readonly oldest: string;
  }>(
    `SELECT counted.drop_name, bindings.json AS binding, counted.state, counted.runs, counted.oldest
      FROM (${UNDER_WAY.map(
        ([index, which]) => `SELECT drop_name, binding_id, state, count(*) AS runs, min(created_at) AS oldest
          FROM runs ${dialect.indexedBy(index)} WHERE ${which} GROUP BY 1, 2, 3`,
      ).join(" UNION ALL ")}) AS counted
      JOIN bindings ON bindings.id = counted.binding_id`,
  );
  return found.map(({ drop_name: drop, binding, state, runs, oldest }) => {
    const { trigger, mapper, service } = JSON.parse(binding) as Binding;
    return { drop, trigger, mapper: mapper.name, service, state, runs, oldest };
  });
}

/** Takes the instant once for each part. */
function changedSince(columns: string, { dialect }: Store): string {
  return CHANGED.map(
    ([index, which]) => `SELECT ${columns} FROM runs ${dialect.indexedBy(index)} WHERE ${which} AND changed_at >= ?`,
  ).join(" UNION ALL ");
}

function* tally(store: Store, since: string): Steps<Tally> {
  const files: Partial<Record<FileStanding, number>> = {};
  const drops = new Map<string, number>();
  for (const group of yield* groups(store, since)) {
    const standing = standingOf(group.arrival, group.run) ?? "pending";
    files[standing] = (files[standing] ?? 0) + group.files;
    if (standing === "delivered") drops.set(group.drop_name, (drops.get(group.drop_name) ?? 0) + group.files);
  }
  return { files, points: yield* pointsSince(store, since), drops };
}

/**
 * An arrival that was only seen and left again, still settling, was never worked on. For an opened container
 * its entries count. An unconfirmed run counts until its outcome is known, wherever its file is.
 */
function* groups(store: Store, since: string): Steps<readonly Group[]> {
  const { dialect } = store;
  return yield* rows<Group>(
    `SELECT arrivals.drop_name, arrivals.state AS arrival, runs.state AS run, count(*) AS files
      FROM arrivals LEFT JOIN runs ON runs.id = arrivals.run_id
      WHERE arrivals.id IN (
        SELECT id FROM arrivals ${dialect.indexedBy("arrivals_lying")} WHERE gone_at IS NULL AND parent_id IS NULL
        UNION ALL SELECT id FROM arrivals ${dialect.indexedBy("arrivals_inside")}
WHERE gone_at IS NULL AND parent_id IS NOT NULL
        UNION ALL SELECT id FROM arrivals WHERE changed_at >= ? AND state <> 'settling'
        UNION ALL SELECT arrival_id FROM runs ${dialect.indexedBy("runs_resting")} WHERE runs.state = 'unconfirmed'
        UNION ALL ${changedSince("arrival_id", store)})
        AND runs.state IS DISTINCT FROM 'opened'
      GROUP BY 1, 2, 3`,
    since,
    ...CHANGED.map(() => since),
  );
}

function* pointsSince(store: Store, since: string): Steps<Tally["points"]> {
  const sums = yield* row<Tally["points"]>(
    `SELECT coalesce(sum(mapped), 0) AS mapped, coalesce(sum(accepted), 0) AS accepted,
      coalesce(sum(stored), 0) AS stored, coalesce(sum(rejected), 0) AS rejected
      FROM (${changedSince("mapped, accepted, stored, rejected", store)}) AS worked_on`,
    ...CHANGED.map(() => since),
  );
  return {
    mapped: sums?.mapped ?? 0,
    accepted: sums?.accepted ?? 0,
    stored: sums?.stored ?? 0,
    rejected: sums?.rejected ?? 0,
  };
}
