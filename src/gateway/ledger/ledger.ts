/**
 * The contract of the ledger: the durable record of arrivals, runs, batches and outcomes. Every method that
 * changes something has committed durably when its promise resolves; each is one transaction. States change
 * only through `advanceArrival`, `advanceRun(s)` and `advanceBatch`, which assert the transition
 * (`states.ts`) and append an event, so that `trace` can show the whole life of a file.
 *
 * `TransientError`: the ledger is busy or its disk is full, and nothing was changed; after a failure of the
 * disk at the very end the outcome is unknown, so the next step begins with a read. `InvariantError`: a
 * forbidden transition.
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
  IsoInstant,
  Outcome,
  Pause,
  Reason,
  RejectedRow,
  Run,
  RunState,
  SharedIntake,
} from "../model.ts";
import type { FileList } from "./file-list.ts";
import type { FinishedFiles } from "./finished-files.ts";
import type { Fleet } from "./fleet.ts";
import type {
  Advanced,
  ArrivalAge,
  BatchChange,
  BegunDelivery,
  DropNotice,
  EntriesState,
  ForgetSaid,
  Forgotten,
  ForgottenFile,
  HeldReplacement,
  LedgerFault,
  LedgerQueries,
  MappedRecord,
  Opened,
  Replaced,
  RestingRun,
  RunAdvance,
  RunChange,
  RunFilter,
  RunOpening,
  RunStart,
  TargetKey,
  WholeRun,
} from "./ledger-records.ts";

export type * from "./file-list.ts";
export type { FinishedFile, FinishedFileChange, NewFinishedFile, PlacedFile } from "./finished-files.ts";
export type * from "./ledger-records.ts";
export type * from "./ledger-records.ts";

export interface Ledger extends LedgerQueries {
  /** The nodes that share the ledger. */
  readonly fleet: Fleet;
  /** Bytes that these nodes share; null where one process owns the ledger. */
  readonly shared: SharedBytes | null;
  /** Host keys that a person approved. */
  readonly approvedKeys: ApprovedKeys;
  /** Source files after their end. */
  readonly finishedFiles: FinishedFiles;
  readonly laneHeads: LaneHeads;
  /** Lists of files for people. */
  readonly files: FileList;
  /** Triggers that come from services. */
  readonly triggerLists: TriggerLists;

  // ── arrivals

  /**
   * A poll of one drop; only one at a time per drop. `archives`: the present archive folders of the drop,
   * which are remembered.
   */
  beginPoll(drop: string, archives?: readonly string[]): Promise<PollRecord>;
  /**
   * Another reason for the same state is recorded without an event. Only `openRun(s)` leads to `matched`.
   * `isExpected`: as in the `Arrival`.
   */
  advanceArrival(id: number, to: ArrivalState, reason: string, isExpected?: boolean): Promise<Arrival>;
  /**
   * Arrivals that are at the drop and in one of these states, oldest first; `after` continues behind an id,
   * so that many can be read in parts.
   */
  arrivalsIn(
    drop: string,
    states: readonly ArrivalState[],
    limit?: number,
    after?: number,
  ): Promise<readonly Arrival[]>;
  /**
   * The facts that determine the age of arrivals in state `settling`, in the order of ids, behind the id
   * `after`.
   */
  settlingAges(drop: string, limit: number, after: number): Promise<readonly ArrivalAge[]>;
  /** Awaited arrivals of the drop (`PollRecord`) that have neither settled nor gone since. */
  awaited(drop: string): Promise<readonly AwaitedArrival[]>;
  arrival(id: number): Promise<Arrival | null>;
  /** The existing ones of these arrivals, in the order of the ids. */
  arrivals(ids: readonly number[]): Promise<readonly Arrival[]>;
  /**
   * The latest earlier arrival at the same (drop, path) whose readings were accepted, may have been accepted,
   * or still will be, when it has the same digest, or null. An arrival at rest (quarantined, cancelled,
   * discarded) without accepted readings does not count.
   */
  duplicateOf(arrival: Arrival, sha256: string): Promise<Arrival | null>;
  /**
   * `latestRun`: the latest run of which the spool has files. When the ledger knows neither it nor a later one, it was
   * lost, or is an older copy: other versions of its files may have come and gone since, so that no earlier arrival
   * counts for `duplicateOf` from then on, and the batches of one that would name the operation that they repeat.
   * Returns whether that is news.
   */
  noteOlderCopy(latestRun: string): Promise<boolean>;
  /**
   * The claimed run of an earlier arrival of the same path, size and time whose bytes are not fetched yet:
   * until they are, or the run is given up, it is unknown whether the later arrival is the same version, back
   * after it was missing.
   */
  unfetchedBefore(arrival: Pick<Arrival, "id" | "drop" | "path" | "size" | "mtime">): Promise<Run | null>;
  /**
   * The later arrival has the bytes of the earlier one, which had gone from the drop: the earlier one is at
   * the drop again, with its runs, under the size and time of the later one, and the later one becomes a
   * `duplicate` that has gone.
   */
  recordReturn(earlierId: number, laterId: number, reason: string): Promise<void>;
  /** The file of the arrival has another time and the same bytes: it is no other version. */
  recordTouched(id: number, mtime: string): Promise<void>;
  /**
   * Forgets arrivals, with their runs and events, that left their drop before the instant, up to the limit in
   * one transaction; returns how many. It keeps arrivals that still need a person or a step (a run that is
   * not delivered, empty or cancelled, or not finished), and arrivals at whose path a file is now, so that
   * the return of an earlier version is recognized.
   */
  prune(goneBefore: IsoInstant, limit: number): Promise<number>;

  // ── runs

  /**
   * Opens a run in state `claimed` for an arrival, which becomes `matched`. The id sorts by time; that of the
   * run of an entry by the time of its container, and among the entries by the order in which `recordOpened`
   * received them.
   */
  openRun(arrivalId: number, binding: Binding, lane: string, start?: RunStart): Promise<Run>;
  /** A list in one transaction. One that is refused keeps back those behind it in its lanes alone (invariant 7). */
  openRuns(openings: readonly RunOpening[]): Promise<readonly Opened[]>;
  /**
   * The only way in which runs change state, with an event for every state that they pass. The list is one
   * transaction, in which each run passes all of its states or none, and a run that fails does not affect the
   * others. Returns a result for each in the given order, and does not reject.
   */
  advanceRuns(advances: readonly RunAdvance[]): Promise<readonly Advanced[]>;
  /**
   * The same for one run and one state, but a fault is thrown. `from` guards against concurrent changes;
   * absent fields stay unchanged.
   */
  advanceRun(id: string, from: RunState, to: RunState, change?: RunChange): Promise<Run>;
  /**
   * `mapped → delivering` in the same transaction as the query `blockedBy`: when a run is in the way, that
   * run is returned and nothing was changed. A held run may have resumed since the guard checked. `batches`
   * as `batches` returns them.
   */
  beginDelivery(id: string, detail: string): Promise<BegunDelivery>;
  /**
   * Resumes a held run in the same transaction in which it checks the runs that overtook it
   * (`laterDeliverers`) and, before an immediate delivery, the runs in the way. Null, and nothing was
   * changed, when a run is in the way, when one of the later runs delivers now, or when one of them is not
   * among those `seen`; `seen` is null when the operator decided that the held values count.
   */
  resumeHeld(
    id: string,
    to: "mapped" | "delivering",
    seen: readonly string[] | null,
    detail: string,
  ): Promise<Run | null>;
  /**
   * `held → cancelled`, and the new run of its file, in one transaction. One that continues the held run has its place
   * in the lane, before all runs that were opened after it; a replay that a person ordered comes last. The reason of
   * the held run names the new one.
   */
  replaceHeld(id: string, reason: Reason, next: HeldReplacement): Promise<Replaced>;
  /**
   * Records facts of a run without a change of its state (wait reason, finish plan, points). Appends an event
   * when `event` is given.
   */
  noteRun(id: string, change: RunChange): Promise<Run>;
  /**
   * Records how long the outcome of a run was awaited. It adds no event, and the time of the run's last
   * change stays.
   */
  noteConfirmClock(id: string, clock: ConfirmClock): Promise<void>;
  run(id: string): Promise<Run | null>;
  /**
   * Runs in these states, in the order in which they were opened; with `unfinished`, only those whose source
   * was not finished (`finishedAt` is null); with `unsettled`, only those with remaining steps or awaited
   * outcomes.
   */
  runsIn(states: readonly RunState[], options?: RunFilter): Promise<readonly Run[]>;
  /** The drops, or the lanes, of runs in these states, so that each gets its turn. */
  groupsOf(states: readonly RunState[], by: "drop" | "lane", options?: RunFilter): Promise<readonly string[]>;
  /**
   * `mapping → mapped` with all its batches (state `ready`), targets and rejected rows, in one transaction. A
   * run that is mapped again after its segment was lost keeps its batches; `RejectedError` when the new ones
   * differ (invariant 10).
   */
  recordMapped(id: string, mapped: MappedRecord): Promise<Run>;
  /**
   * `fetched → opened` with an arrival (`settling`) for each entry of the container, in one transaction.
   * `path` is the path in the container. Entries that an earlier opening recorded stay unchanged.
   */
  recordOpened(id: string, entries: readonly Pick<FileEntry, "path" | "size">[], detail: string): Promise<Run>;
  /** The states of the entries of a container. */
  entries(arrivalId: number): Promise<EntriesState>;
  /** Number of entries of a container, at any depth, whose readings were accepted and whose outcome is awaited. */
  awaitedEntries(arrivalId: number): Promise<number>;
  /**
   * Brings the container to rest (`settled`) with its entries as `seen`, until one of them changes. False,
   * and nothing was changed, when their states have changed.
   */
  restContainer(id: string, seen: EntriesState, reason: Reason): Promise<boolean>;
  /** The latest run of an arrival, or null. */
  runOf(arrivalId: number): Promise<Run | null>;
  /**
   * An earlier run of the same lane that shares a target and is neither accepted nor at rest (invariant 7),
   * or an earlier container that feeds the lane and has entries without runs; otherwise null.
   */
  blockedBy(run: Run): Promise<Run | null>;
  rejectedRows(runId: string): Promise<readonly RejectedRow[]>;

  // ── batches

  /** In the order of their sequence; the children of a split batch follow it. */
  batches(runId: string): Promise<readonly Batch[]>;
  /** The run that the operation belongs to; null for an operation that is not in the ledger. */
  runOfOperation(operationId: string): Promise<Run | null>;
  advanceBatch(operationId: string, from: BatchState, to: BatchState, change?: BatchChange): Promise<Batch>;
  /**
   * `sending → accepted`, as `advanceBatch` does. When it is the last awaited batch of the run, and none was
   * rejected, the run becomes `accepted` in the same transaction, with `whole.finishPlan` unless its finish
   * was decided before. Returns the run then; null when other batches are awaited or some were rejected.
   * `repeats`: the earlier operation that delivered the batch.
   */
  acceptBatch(operationId: string, answer: string, whole: WholeRun, repeats?: string): Promise<Run | null>;
  /**
   * The batch ends as `split`; its children are new batches, durable before their first send. Totals count
   * the leaves. `repeats`: the earlier operation that may have delivered some of the children.
   */
  splitBatch(
    operationId: string,
    children: readonly BatchSlice[],
    answer: string,
    repeats?: string,
  ): Promise<readonly Batch[]>;
  /** By kind and drop. */
  noticesSince(at: IsoInstant): Promise<readonly DropNotice[]>;
  /** `sending → ready` under another Idempotency-Key, which follows from the one before it. */
  renewKey(operationId: string, answer: string): Promise<Batch>;
  /**
   * Records the outcome of an operation, which may arrive before the response to the push was recorded,
   * repeatedly and in any order. The newest counts, by its time; the service's own report overrides the
   * finding of a read-back, unless the read-back is newer and found everything. An outcome that does not
   * count is recorded as an event only. Returns the id of the run, or null for an operation that is not in
   * the ledger. A run that was settled without an outcome is open again.
   */
  recordOutcome(outcome: Outcome): Promise<string | null>;

  // ── commands of operators

  /** Runs in these states that are the latest of their arrivals, newest first, with their arrivals. */
  restingIn(states: readonly RunState[], limit: number): Promise<readonly RestingRun[]>;
  /**
   * Arrivals now or formerly at a path, oldest first; in all drops when none is named. Without entries of
   * containers.
   */
  arrivalsAt(path: string, drop?: string): Promise<readonly Arrival[]>;
  /**
   * Forgets every version of a file at a drop, entries of containers included, with their runs and events, so
   * that a file that is there now counts as new. `RejectedError`, and nothing was forgotten, while one of the
   * runs is in progress.
   */
  forget(drop: string, path: string, said: ForgetSaid): Promise<Forgotten>;
  /** Returns the counts that `forget` would remove now; throws as it would. */
  forgettable(drop: string, path: string): Promise<Forgotten>;
  /**
   * Files that operators ordered to be forgotten, by path or name, newest first. They are pruned like files
   * that left.
   */
  forgottenFiles(query: string): Promise<readonly ForgottenFile[]>;
  pauses(): Promise<readonly Pause[]>;
  /** Replaces the reason of an earlier pause. */
  pause(pause: Omit<Pause, "at">): Promise<Pause>;
  /** False when it was not paused. */
  resume(kind: Pause["kind"], name: string): Promise<boolean>;
  /**
   * Delivered runs of other arrivals to the same service, opened after `run` and before `before`, that share
   * a target with one of these.
   */
  laterRuns(run: Run, targets: readonly TargetKey[], before: string): Promise<readonly Run[]>;
  /**
   * Runs of other arrivals to the same service, opened after it, that share a target with it and are
   * delivering or delivered: they overtook it while it was held. In the order in which they were opened, up
   * to the limit.
   */
  laterDeliverers(run: Run, limit: number): Promise<readonly Run[]>;
  /**
   * Other runs of the same service with a batch accepted at that instant or later that share a target with
   * it, or may share one, since they use other target kinds and came after it in its lane; newest first, up
   * to the limit.
   */
  acceptedSince(run: Run, at: IsoInstant, limit: number): Promise<readonly Run[]>;
  /** Contradictions: damage of the file, and states and counts that do not fit. */
  check(): Promise<readonly LedgerFault[]>;
  /**
   * Repairs a fault from the remaining records, and adds an event about it to the file. False when it cannot.
   */
  repair(fault: LedgerFault): Promise<boolean>;

  close(): Promise<void>;
}

// The part of the ledger about host keys that a person approved in the console of one node. Each node copies them to
// the files of its own drops, which it reads at each connection.

interface ApprovedKey {
  readonly drop: string;
  readonly approvedAt: IsoInstant;
  /** Of a known_hosts file: a comment that says who approved it and when, and the entry. */
  readonly lines: string;
}

export interface ApprovedKeys {
  /** Oldest first. */
  list(): Promise<readonly ApprovedKey[]>;
  keep(key: ApprovedKey): Promise<void>;
}

// The part of the ledger about triggers that come from services: the last complete list of each, so that it stays in
// force over an outage and a restart, and is the same for all nodes that share the ledger.

export interface TriggerList {
  /** Identifies service and account. */
  readonly source: string;
  /** When the service listed them. */
  readonly listedAt: IsoInstant;
  /** JSON text of the triggers as the service listed them. */
  readonly triggers: string;
}

export interface TriggerLists {
  /** Null when no complete list was kept. */
  find(source: string): Promise<TriggerList | null>;
  /** Replaces the list of the same source. */
  keep(list: TriggerList): Promise<void>;
}

// The part of the ledger about the front of each lane: the run that later runs wait for, and since when it
// has not moved.

/**
 * The first run of a lane that is neither accepted nor at rest, or the container in front of it whose entries
 * have no runs yet.
 */
export interface LaneHead {
  readonly run: Run;
  /** The lane whose head this is; a container may head another lane than its own. */
  readonly lane: string;
  /** Number of later runs of the lane that are not delivered and not being delivered. */
  readonly behind: number;
}

export interface LaneHeads {
  /** One for each lane that has work, the oldest first. */
  list(): Promise<readonly LaneHead[]>;
  /**
   * When the run last changed its state, or had a batch accepted. A repeated note of its wait reason does not
   * count.
   */
  movedAt(run: Run): Promise<IsoInstant>;
  /** When an earlier run of the lane last left the front after `since`; null when none did. */
  aheadLeftAt(head: LaneHead, since: IsoInstant): Promise<IsoInstant | null>;
}

// The part of the ledger that stores bytes: those that every node must be able to read, and that no drop
// keeps. A ledger that one process owns has none, since the disk of that process serves as well. Faults are
// those of the ledger (`TransientError` when the database cannot be used now).

export interface SharedBytes {
  readonly intake: SharedIntake;
  /** Content that is named by its digest, and so never changes. */
  readonly content: SharedContent;
}

export interface SharedContent {
  /** Durable for all nodes when it resolves; a repeated call notes that the content is in use. */
  keep(kind: ContentKind, name: string, bytes: () => Promise<Buffer>): Promise<void>;
  /** Null when no node kept it. */
  find(kind: ContentKind, name: string): Promise<Buffer | null>;
  /** Removes content that was last used before this time. Returns how many. */
  prune(beforeMs: number): Promise<number>;
}

export type ContentKind = "mapper" | "lookup";

// The contract of the ledger for one poll of one drop.

/** Collects one listing and compares it with the known arrivals, without holding it in memory. */
export interface PollRecord {
  /** Folders that are or were archives of the drop. */
  readonly archives: readonly string[];
  /** The fence of the node that polls; null for a lone owner. While it is the same, no other node polls this drop. */
  readonly session: number | null;
  /** Whether a run belongs to this drop, or is unknown to the ledger. */
  ownsRun(id: string): Promise<boolean>;
  /**
   * True while no listing of this drop was ever complete with this ledger: a file that it shows was there
   * before.
   */
  readonly firstContact: boolean;
  /**
   * Whether a file at this path was there at the first contact. While no listing was complete, a file in a
   * folder that an earlier one showed in full is new, and so is a folder that was added to such a folder
   * since.
   */
  wasThere(path: string): boolean;
  /** The listing has shown all of this folder ("" for the root), and these subfolders. */
  folderListed(folder: string, below: readonly string[]): void;
  /**
   * The listing broke off; call it before `abandon`. A settling arrival that was not shown is awaited, also
   * one that was awaited before; the time since when is durable, and never changes. A settling arrival in a
   * folder that was shown in full, and that was not shown itself, is missing, and has gone when the previous
   * listing of its folder did not show it either; nothing else is missing. `isAwaited`: whether a later
   * arrival waits for such a path. `isRecorded`: all listed entries reached `record`; otherwise no folder was
   * shown in full.
   */
  cutShort(isAwaited: (path: string) => boolean, isRecorded: boolean): Promise<CompletePoll>;
  /**
   * Takes the next entries of the listing. For each it finds the arrival at this path, which is new
   * (`settling`) when the path was unknown or had gone, or when size or mtime differ and the earlier version
   * had been taken; an arrival that is still `settling` or `unmatched` takes over the new size and mtime
   * (`changed`). Returns the arrivals that are `settling` now; unchanged arrivals at rest are left out. `onId` is
   * called for each entry with the id of its arrival, once that is recorded.
   */
  record(entries: readonly FileEntry[], onId?: (entry: FileEntry, id: number) => void): Promise<readonly Sighting[]>;
  /**
   * Counts an entry that an earlier poll of this session recorded as recorded by this one, if its arrival was at rest
   * when this poll began. False: it settles, has gone, or is missing, and must be recorded.
   */
  noteAtRest(id: number): boolean;
  /**
   * The listing was complete; the changes are written in several transactions. An arrival that it did not
   * show is missing, and has gone when the previous complete listing did not show it either. A single listing
   * may have been cut without a sign of it: a settling arrival that is missing is awaited, unless `isAwaited`
   * returns false for its path.
   */
  complete(isAwaited?: (path: string) => boolean): Promise<CompletePoll>;
  /** The listing broke off: no arrival has gone. */
  abandon(): Promise<void>;
}

export interface CompletePoll {
  /** Ids of the arrivals that have gone. */
  readonly gone: readonly number[];
  /** Number of arrivals that are missing for the first time. */
  readonly missing: number;
  /**
   * Arrivals that are missing now, or were awaited by an earlier poll, and have neither settled nor gone
   * since.
   */
  readonly awaited: readonly AwaitedArrival[];
}

/** Later arrivals of its lane wait for it, for a time that begins with `since`. */
export interface AwaitedArrival extends ArrivalAge {
  readonly seenAt: IsoInstant;
  readonly since: IsoInstant;
}

export interface Sighting {
  readonly arrival: Arrival;
  readonly seen: "new" | "changed" | "known";
}
