/**
 * The contract of the ledger: the durable record of arrivals, runs, batches and outcomes.
 * Every method that changes something has committed durably when its promise resolves; each is one transaction.
 * States change through `advanceArrival`, `advanceRun` and `advanceBatch` alone, which assert the transition (`states.ts`)
 * and append an event, so that `trace` can tell the whole life of a file.
 *
 * `TransientError`: the ledger is busy or its disk is full; nothing was changed, or, where the disk failed at the very end, nobody knows: what
 * is done next begins with a read. `InvariantError`: a transition that must not be.
 */
import type {
  Arrival,
  ArrivalState,
  Batch,
  BatchSlice,
  BatchState,
  Binding,
  ConfirmClock,
  FileEntry,
  FinishPlan,
  IsoInstant,
  LedgerEvent,
  MapperIdentity,
  Outcome,
  Pause,
  Points,
  Reason,
  RejectedRow,
  Replay,
  Run,
  RunState,
} from "../model.ts";
import type { FinishedFiles, NewFinishedFile } from "./finished-files.ts";
import type {
  Backlog,
  ForgetSaid,
  Forgotten,
  ForgottenFile,
  LedgerFault,
  RestingRun,
  Tally,
  TracedFile,
} from "./ledger-results.ts";

export type * from "./ledger-results.ts";

import type { Fleet } from "./fleet.ts";
import type { LaneHeads } from "./lane-heads.ts";
import type { AwaitedArrival, PollRecord } from "./poll.ts";
import type { SharedBytes } from "./shared.ts";

export type { FinishedFile, FinishedFileChange, NewFinishedFile } from "./finished-files.ts";
export type { LaneHead } from "./lane-heads.ts";

export type { AwaitedArrival, CompletePoll, PollRecord, Sighting } from "./poll.ts";

export interface Ledger {
  /** The nodes that share it. */
  readonly fleet: Fleet;
  /** Bytes that these nodes share; null where one process owns the ledger. */
  readonly shared: SharedBytes | null;
  /** Source files after their end. */
  readonly finishedFiles: FinishedFiles;
  readonly laneHeads: LaneHeads;

  // ── arrivals

  /** A poll of one drop. One at a time for a drop. `archives`: its folders of archives now, which are remembered. */
  beginPoll(drop: string, archives?: readonly string[]): Promise<PollRecord>;
  /** Another reason for the same state is taken over without an event. To `matched` an arrival comes by `openRun` alone. */
  advanceArrival(id: number, to: ArrivalState, reason: string): Promise<Arrival>;
  /** Arrivals that lie at the drop and are in one of these states, oldest first; `after` goes on behind an id, so that many can be read in parts. */
  arrivalsIn(
    drop: string,
    states: readonly ArrivalState[],
    limit?: number,
    after?: number,
  ): Promise<readonly Arrival[]>;
  /** Of those in state `settling` what their age is told by, `after` an id, in the order of ids. */
  settlingAges(drop: string, limit: number, after: number): Promise<readonly ArrivalAge[]>;
  /** Those of the drop that a poll has found to be awaited (`PollRecord`), and that have neither settled nor gone since. */
  awaited(drop: string): Promise<readonly AwaitedArrival[]>;
  arrival(id: number): Promise<Arrival | null>;
  /** Those that there are of these, in the order of the ids. */
  arrivals(ids: readonly number[]): Promise<readonly Arrival[]>;
  /**
   * The latest earlier arrival at the same (drop, path) of which readings were accepted, may have been accepted, or still will be,
   * when it has the same digest, or null. One that rests (quarantined, cancelled, discarded) with nothing accepted does not count.
   */
  duplicateOf(arrival: Arrival, sha256: string): Promise<Arrival | null>;
  /**
   * The claimed run of an earlier arrival of the same path, size and time whose bytes nobody has fetched yet: until it has, or was given up, nobody can
   * say whether the later arrival is the same version, back after it was missing.
   */
  unfetchedBefore(arrival: Pick<Arrival, "id" | "drop" | "path" | "size" | "mtime">): Promise<Run | null>;
  /**
   * The later arrival holds the bytes of the earlier one, which had gone from the drop: the earlier one lies there again, with its runs,
   * under the size and time of the later one, and the later one becomes a `duplicate` that has gone.
   */
  recordReturn(earlierId: number, laterId: number, reason: string): Promise<void>;
  /**
   * Forgets arrivals, with their runs and events, that went from their drop before the instant, up to a number of them in one
   * transaction; answers how many. Never one that a person or a step still has to see to (every run delivered, empty or
   * cancelled, and finished), and never one at whose path something lies now, so that an earlier version coming again is known.
   */
  prune(goneBefore: IsoInstant, limit: number): Promise<number>;

  // ── runs

  /**
   * Opens a run in state `claimed` for an arrival, which becomes `matched`. The id sorts by time, and that of the run of an entry by the time of
   * its container, among the entries by the order in which `recordOpened` was given them.
   */
  openRun(arrivalId: number, binding: Binding, lane: string, start?: RunStart): Promise<Run>;
  /**
   * The only way in which runs change state, each with an event for every state that it passes. The list is one transaction, in which each run passes
   * all of its states or none, and one that fails leaves the others alone. Answers for each in the order given, and does not reject.
   */
  advanceRuns(advances: readonly RunAdvance[]): Promise<readonly Advanced[]>;
  /** The same for one run and one state, where a fault is thrown. `from` guards against two hands; fields that are absent stay as they are. */
  advanceRun(id: string, from: RunState, to: RunState, change?: RunChange): Promise<Run>;
  /**
   * `mapped → delivering` in the same transaction as the question of `blockedBy`: when a run is in the way by now, it is answered and
   * nothing was changed. While this one was looked at by the guard, a held one may have been let go. `batches` as `batches` has them.
   */
  beginDelivery(id: string, detail: string): Promise<BegunDelivery>;
  /**
   * A held run goes on, in the same transaction as the look at who went by (`laterDeliverers`) and, before it delivers at once, at who is in the
   * way. Null, and nothing was changed, when somebody is, when one of them delivers now, or when there is one that is not among those `seen`;
   * `seen` is null where a person said that its values count.
   */
  resumeHeld(
    id: string,
    to: "mapped" | "delivering",
    seen: readonly string[] | null,
    detail: string,
  ): Promise<Run | null>;
  /** Records facts of a run without changing its state (reason of a wait, finish plan, points). Appends an event when `event` is given. */
  noteRun(id: string, change: RunChange): Promise<Run>;
  /** How long the outcome of a run was waited for. No event, and the time of the run's last change stays. */
  noteConfirmClock(id: string, clock: ConfirmClock): Promise<void>;
  run(id: string): Promise<Run | null>;
  /**
   * Runs in these states, in the order in which they were opened; with `unfinished`, only those whose source was not finished (`finishedAt` is null);
   * with `unsettled`, only those for which something is still to be done or awaited.
   */
  runsIn(states: readonly RunState[], options?: RunFilter): Promise<readonly Run[]>;
  /** The drops, or the lanes, of runs in these states, so that each has its turn. */
  groupsOf(states: readonly RunState[], by: "drop" | "lane", options?: RunFilter): Promise<readonly string[]>;
  /**
   * `mapping → mapped` with all its batches (state `ready`), targets and rejected rows, in one transaction. A run that is
   * mapped again, since its segment was lost, keeps its batches as they stand; `RejectedError` when they came out otherwise (invariant 10).
   */
  recordMapped(id: string, mapped: MappedRecord): Promise<Run>;
  /**
   * `fetched → opened` with an arrival (`settling`) for each entry of the container, in one transaction. `path` is the path in the
   * container. Entries that an earlier opening has recorded stay as they are.
   */
  recordOpened(
    id: string,
    entries: readonly Pick<FileEntry, "path" | "size">[],
    detail: string,
  ): Promise<Run>;
  /** How the entries of a container stand. */
  entries(arrivalId: number): Promise<EntriesState>;
  /**
   * The container rests (`settled`) with its entries as they were seen, until one of them changes. False, and nothing was changed,
   * when they stand otherwise by now.
   */
  restContainer(id: string, seen: EntriesState, reason: Reason): Promise<boolean>;
  /** The latest run of an arrival, or null. */
  runOf(arrivalId: number): Promise<Run | null>;
  /**
   * Whether an earlier run of the same lane that shares a target is neither accepted nor at rest (invariant 7), or an earlier container that feeds
   * the lane has entries without runs.
   */
  blockedBy(run: Run): Promise<Run | null>;
  rejectedRows(runId: string): Promise<readonly RejectedRow[]>;

  // ── batches

  /** In the order of their sequence; a split one is followed by its children. */
  batches(runId: string): Promise<readonly Batch[]>;
  /** The run that the operation belongs to; null when the operation is not ours. */
  runOfOperation(operationId: string): Promise<Run | null>;
  advanceBatch(operationId: string, from: BatchState, to: BatchState, change?: BatchChange): Promise<Batch>;
  /**
   * `sending → accepted`, as `advanceBatch` does. When no other batch of the run that delivers is awaited, and none was rejected, the run
   * becomes `accepted` in the same transaction, with `whole.finishPlan` unless its finish was decided before. Answers the run then;
   * null when others are awaited or some were rejected.
   */
  acceptBatch(operationId: string, answer: string, whole: WholeRun): Promise<Run | null>;
  /** The batch ends as `split`; its children are new batches, durable before their first send. Totals count the leaves. */
  splitBatch(operationId: string, children: readonly BatchSlice[], answer: string): Promise<readonly Batch[]>;
  /**
   * Records what became of an operation; it may be told before the answer of the push was journalled, repeatedly and in any order.
   * The newest counts, by its time; the service's own word stands over what reading back found, unless that is newer and found everything.
   * What does not count is an event all the same. Answers the id of the run, or null when the operation is not ours. A run that had been settled without an answer is open again.
   */
  recordOutcome(outcome: Outcome): Promise<string | null>;

  // ── what people ask

  /** By operationId, run id, path, file name, or the beginning of an id (4 characters or more): newest first, 50 files at most. */
  trace(query: string): Promise<readonly TracedFile[]>;
  events(arrivalId: number): Promise<readonly LedgerEvent[]>;
  addEvent(event: Omit<LedgerEvent, "at">): Promise<void>;
  /** The newest run of a trigger, whatever became of it, or null. */
  latestRunOf(trigger: string): Promise<Run | null>;
  /** Newest first. */
  recentRuns(limit: number, states?: readonly RunState[]): Promise<readonly Run[]>;
  /** Files that lie at a drop now, are unconfirmed or were worked on since, by standing and by drop, and the points of runs worked on since. */
  tally(since: IsoInstant): Promise<Tally>;
  /** Runs on their way or held, counted by what they belong to. */
  backlog(): Promise<readonly Backlog[]>;

  // ── what operators order

  /** Runs in these states that are the latest of their arrivals, newest first, with their arrivals. */
  restingIn(states: readonly RunState[], limit: number): Promise<readonly RestingRun[]>;
  /** What lies or lay at a path, oldest first; also in other drops when none is named. Without entries of containers. */
  arrivalsAt(path: string, drop?: string): Promise<readonly Arrival[]>;
  /**
   * Forgets every version of a file at a drop, entries of containers included, with their runs and events, so that what lies there
   * is taken as if it were new. `RejectedError` while something of it is under way, and nothing was forgotten.
   */
  forget(drop: string, path: string, said: ForgetSaid): Promise<Forgotten>;
  /** What `forget` would do now; throws as it would. */
  forgettable(drop: string, path: string): Promise<Forgotten>;
  /** Files that persons had this ledger forget, by path or name, newest first. They are pruned as files that went are. */
  forgottenFiles(query: string): Promise<readonly ForgottenFile[]>;
  pauses(): Promise<readonly Pause[]>;
  /** Replaces the reason of an earlier one. */
  pause(pause: Omit<Pause, "at">): Promise<Pause>;
  /** False when it was not paused. */
  resume(kind: Pause["kind"], name: string): Promise<boolean>;
  /** Delivered runs of other arrivals to the same service, opened after `run` and before `before`, that share a target with one of these. */
  laterRuns(run: Run, targets: readonly TargetKey[], before: string): Promise<readonly Run[]>;
  /**
   * Runs of other arrivals to the same service, opened after it, that share a target with it and are delivering or delivered: they went
   * by while it was held. In the order in which they were opened, up to a number of them.
   */
  laterDeliverers(run: Run, limit: number): Promise<readonly Run[]>;
  /**
   * Other runs of the same service of which a batch was accepted at that instant or later, and that share a target with it, or may, since they
   * name theirs otherwise and came after it in its lane; newest first, up to a number of them.
   */
  acceptedSince(run: Run, at: IsoInstant, limit: number): Promise<readonly Run[]>;
  /** What contradicts itself: damage of the file, states and counts that do not fit. */
  check(): Promise<readonly LedgerFault[]>;
  /** Puts right what can be put right from the rest, and says so in the life of the file. False when it cannot. */
  repair(fault: LedgerFault): Promise<boolean>;

  close(): Promise<void>;
}

export interface RunStart {
  /** What a person should know of it; an event `run.warned`. */
  readonly warning?: string;
  /** Of a container: the lanes that its entries may come to. What came after it there waits until each entry has a run of its own. */
  readonly feeds?: readonly string[];
  readonly replay?: Replay;
  /** It is quarantined in the same transaction, so that nobody takes it in hand before. */
  readonly refusal?: Reason;
}

export type BegunDelivery =
  | { readonly run: Run; readonly blockedBy: null; readonly batches: readonly Batch[] }
  | { readonly run: null; readonly blockedBy: Run };

export interface RunFilter {
  readonly limit?: number;
  /** Only those whose source was not finished. */
  readonly unfinished?: boolean;
  /** Only those for which something is still to be done or awaited. */
  readonly unsettled?: boolean;
  readonly drop?: string;
  readonly lane?: string;
  /** Only runs opened after this one. */
  readonly after?: string;
  /** Without these. */
  readonly except?: readonly string[];
  /** Only those that this node may work on: its own, and those of no living node. */
  readonly ours?: boolean;
}

export interface RunChange {
  readonly sha256?: string;
  readonly reason?: Reason | null;
  /** The points given replace those of the same name. */
  readonly points?: Partial<Points>;
  /** Rows that the mapper or the service refused; kept for the report of a quarantined run. */
  readonly rejected?: readonly RejectedRow[];
  /** Binds a run that has no batches yet to another version of its mapper. */
  readonly mapper?: MapperIdentity;
  readonly replay?: Replay;
  readonly finishPlan?: FinishPlan;
  /** The source was finished, now; an archived or deleted arrival has gone from its drop. */
  readonly finished?: { readonly at: IsoInstant; readonly left: boolean };
  /** This version of the file is not at its drop any more: when a listing shows the path again, that is a new arrival. */
  readonly gone?: boolean;
  /** The source is watched from now on. */
  readonly watched?: NewFinishedFile;
  /** Nobody will tell more about an accepted or unconfirmed run, and nobody asks: it stays so unless a late outcome comes. */
  readonly settled?: boolean;
  /** Words for the event, beside the state. */
  readonly detail?: string;
  /** Name of the event when the state does not change, such as `source.archived`. */
  readonly event?: string;
}

export interface BatchChange {
  readonly answer?: string;
  /** Counts one more attempt. */
  readonly attempted?: boolean;
}

export interface MappedRecord {
  readonly batches: readonly BatchSlice[];
  readonly points: number;
  readonly rejected: readonly RejectedRow[];
  /** All refused rows, also those beyond the limit of `rejected`. */
  readonly rejectedCount: number;
  /** Digests of the targets, one each, for the order of lanes. */
  readonly targets: readonly TargetKey[];
  readonly detail: string;
}

/** A run on its way through one or several states. */
export interface RunAdvance {
  readonly id: string;
  readonly from: RunState;
  /** In their order. The changes add up. */
  readonly through: readonly RunPassage[];
  /** What it became, when it passes to `mapped`, which is the last then. See `recordMapped`. */
  readonly mapped?: MappedRecord;
  /**
   * The rule of the drop for content that came before: nothing is recorded of such a run. With `process` it is, unless it may be the same version that
   * is back. Absent: its content does not matter, or was looked at before.
   */
  readonly duplicates?: "skip" | "process" | "flag";
}

export interface RunPassage {
  readonly to: RunState;
  readonly change?: RunChange;
}

/**
 * `known`: its bytes came before at this path, or may have; `unfetched`: an earlier arrival of its path may have the same bytes, and nobody has fetched
 * it (`unfetchedBefore`); `fault`: what `advanceRun` would have thrown. Nothing was recorded of such a run.
 */
export type Advanced =
  | { readonly run: Run }
  | { readonly run: null; readonly why: "known" | "unfetched" }
  | { readonly run: null; readonly why: "fault"; readonly thrown: unknown };

/** Of a run whose last batch is accepted. */
export interface WholeRun {
  /** Who took it, for the words of the event. */
  readonly service: string;
  readonly finishPlan?: FinishPlan;
}

/** Of an arrival what its age is told by. */
export type ArrivalAge = Pick<Arrival, "id" | "path" | "mtime">;

/** A target for comparison: its identifier kind and its words. */
export interface TargetKey {
  readonly kind: string;
  readonly target: string;
}

export interface EntriesState {
  /** Not matched against the triggers yet. */
  readonly unclaimed: readonly Arrival[];
  /** The run of the last entry of which something is still to be done or awaited. */
  readonly underWay: Run | null;
  /** Delivered, empty or duplicate, and nothing is left to be done. */
  readonly done: number;
  /** At rest in another way, with the state of the run or of the arrival. */
  readonly staying: readonly { readonly path: string; readonly state: RunState | ArrivalState }[];
}
