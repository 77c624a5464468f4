/** The facts that callers give to the ledger, and the states that its changes return. */
import type {
  Arrival,
  ArrivalState,
  Batch,
  BatchSlice,
  Binding,
  FinishPlan,
  IsoInstant,
  LedgerEvent,
  MapperIdentity,
  MappingFinding,
  Points,
  Reason,
  RejectedRow,
  Replay,
  Run,
  RunState,
  Summary,
} from "../model.ts";
import type { NewFinishedFile } from "./finished-files.ts";

export interface RunStart {
  /** A warning for the operator, as an event `run.warned`. */
  readonly warning?: string;
  /**
   * For a container: the lanes that its entries may belong to. Later runs of these lanes wait until each
   * entry has a run.
   */
  readonly feeds?: readonly string[];
  readonly replay?: Replay;
  /** Quarantines the run in the same transaction, so that no step starts it before. */
  readonly refusal?: Reason;
}

/** The run that follows a held one of the same file. */
export interface HeldReplacement {
  readonly binding: Binding;
  readonly lane: string;
  readonly replay: Replay;
}

export interface Replaced {
  readonly held: Run;
  readonly run: Run;
}

/** A run to be opened. */
export interface RunOpening extends RunStart {
  readonly arrivalId: number;
  readonly binding: Binding;
  readonly lane: string;
  /** In which later runs must not be opened before it: its own, or all that its entries may have. */
  readonly lanes: readonly string[];
}

/**
 * `fault`: the error that `openRun` would have thrown; `behind`: one before it in the list, of one of its lanes, was
 * not opened. Nothing was recorded of such a run.
 */
export type Opened =
  | { readonly run: Run }
  | { readonly run: null; readonly why: "fault"; readonly thrown: unknown }
  | { readonly run: null; readonly why: "behind" };

export type BegunDelivery =
  | { readonly run: Run; readonly blockedBy: null; readonly batches: readonly Batch[] }
  | { readonly run: null; readonly blockedBy: Run };

export interface RunFilter {
  readonly limit?: number;
  /** Only runs whose source was not finished. */
  readonly unfinished?: boolean;
  /** Only runs with remaining steps or awaited outcomes. */
  readonly unsettled?: boolean;
  readonly drop?: string;
  readonly lane?: string;
  /** Only runs opened after this one. */
  readonly after?: string;
  /** Only runs opened before this one. */
  readonly before?: string;
  /** Without these. */
  readonly except?: readonly string[];
  /** Only runs that this node may work on: its own, and those of no living node. */
  readonly ours?: boolean;
}

export interface RunChange {
  readonly sha256?: string;
  readonly reason?: Reason | null;
  /** The given points replace those of the same name. */
  readonly points?: Partial<Points>;
  /** Findings of the mapping; they replace those of an earlier one. */
  readonly findings?: readonly MappingFinding[];
  /** Rows that the mapper or the service refused; kept for the report of a quarantined run. */
  readonly rejected?: readonly RejectedRow[];
  /** Binds a run that has no batches yet to another version of its mapper, or to the zones of sources. */
  readonly bound?: Pick<Binding, "mapper"> | Pick<Binding, "zones">;
  readonly replay?: Replay;
  readonly finishPlan?: FinishPlan;
  /** The source was finished at this time; an archived or deleted arrival has left its drop. */
  readonly finished?: { readonly at: IsoInstant; readonly left: boolean };
  /**
   * This version of the file is no longer at its drop: a listing that shows the path again shows a new
   * arrival.
   */
  readonly gone?: boolean;
  /** The source is watched from now on. */
  readonly watched?: NewFinishedFile;
  /**
   * No more outcomes of an accepted or unconfirmed run are expected: it stays as it is unless a late outcome
   * arrives.
   */
  readonly settled?: boolean;
  /** Text of the event, beside the state. */
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
  /** Number of refused rows, also beyond the limit of `rejected`. */
  readonly rejectedCount: number;
  readonly findings: readonly MappingFinding[];
  /** Digests of the targets, one each, for the order of lanes. */
  readonly targets: readonly TargetKey[];
  readonly detail: string;
}

/** A run that passes one or several states. */
export interface RunAdvance {
  readonly id: string;
  readonly from: RunState;
  /** In their order. The changes add up. */
  readonly through: readonly RunPassage[];
  /**
   * The mapping result, when the run passes to `mapped`, which must be the last state. See `recordMapped`.
   */
  readonly mapped?: MappedRecord;
  /**
   * The rule of the drop for repeated content: such a run is not recorded. With `process` it is recorded,
   * unless it may be the return of the same version. Absent: its content does not matter, or was compared
   * before.
   */
  readonly duplicates?: "skip" | "process" | "flag";
}

export interface RunPassage {
  readonly to: RunState;
  readonly change?: RunChange;
}

/**
 * `known`: the same bytes came before at this path, or may have; `unfetched`: an earlier arrival of its path
 * may have the same bytes, which are not fetched yet (`unfetchedBefore`); `fault`: the error that
 * `advanceRun` would have thrown. Nothing was recorded of such a run.
 */
export type Advanced =
  | { readonly run: Run }
  | { readonly run: null; readonly why: "known" | "unfetched" }
  | { readonly run: null; readonly why: "fault"; readonly thrown: unknown };

/** Facts for a run whose last batch is accepted. */
export interface WholeRun {
  /** The service that accepted it, for the text of the event. */
  readonly service: string;
  readonly finishPlan?: FinishPlan;
}

/** The facts that determine the age of an arrival. */
export type ArrivalAge = Pick<Arrival, "id" | "path" | "mtime">;

/** A target for comparison: its identifier kind and its text. */
export interface TargetKey {
  readonly kind: string;
  readonly target: string;
}

export interface EntriesState {
  /** Entries not yet matched against the triggers. */
  readonly unclaimed: readonly Arrival[];
  /** The run of the last entry with remaining steps or awaited outcomes. */
  readonly inProgress: Run | null;
  /** Number of entries that are delivered, empty or duplicate, without a remaining step. */
  readonly done: number;
  /** Entries at rest in another way, with the state of the run or of the arrival. */
  readonly staying: readonly {
    readonly path: string;
    readonly state: RunState | ArrivalState;
    readonly runId: string | null;
  }[];
}

// Results of the ledger's queries, beside the nouns of `model.ts`.

export interface RestingRun {
  readonly run: Run;
  readonly arrival: Arrival;
}

export interface LedgerFault {
  /** `file`, `run <id>` or `arrival <id>`. */
  readonly subject: string;
  /** Such as `is accepted, and has no batches`. */
  readonly words: string;
  /** Null when only a backup can repair the ledger. */
  readonly repair: "recount" | "relink" | null;
}

/** The counts that the ledger had before it forgot the file. */
/** The person who ordered a file to be forgotten, and the reason. */
export interface ForgetSaid {
  readonly by: string;
  readonly why: string;
}

/** The record that remains of a forgotten file. */
export interface ForgottenFile extends Forgotten, ForgetSaid {
  readonly drop: string;
  readonly path: string;
  readonly at: IsoInstant;
}

export interface Forgotten {
  readonly arrivals: number;
  readonly runs: readonly string[];
  readonly acceptedPoints: number;
  /** Batches that were sent and got no response. */
  readonly unanswered: number;
}

/** The entries of a container follow it. */
export interface TracedFile {
  readonly arrival: Arrival;
  readonly runs: readonly {
    readonly run: Run;
    readonly batches: readonly Batch[];
    readonly rejected: readonly RejectedRow[];
  }[];
  readonly events: readonly LedgerEvent[];
}

/** A group of runs of one state. */
export interface Backlog {
  readonly drop: string;
  readonly trigger: string;
  readonly mapper: string;
  readonly service: string;
  readonly state: RunState;
  readonly runs: number;
  /** When the first of them was opened. */
  readonly oldest: IsoInstant;
}

export interface Tally extends Pick<Summary, "files" | "points"> {
  /** Delivered files (accepted or confirmed) by drop. */
  readonly drops: ReadonlyMap<string, number>;
}

/** From the first millisecond until just before the second, since 1970 in UTC. */
export interface TimeSpan {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Of the runs that were opened in a time, as they are now. */
export interface RunTotals {
  /** Without replays. */
  readonly files: number;
  /** Accepted readings. */
  readonly points: number;
  /** Runs that need a person. */
  readonly errors: number;
  /** Milliseconds from the claim of a file to the acceptance of its last batch, added up; and of how many runs. */
  readonly delaySumMs: number;
  readonly delayed: number;
}

export interface TriggerFile {
  readonly arrivalId: number;
  /** When it was claimed. */
  readonly at: IsoInstant;
}

/** The runs of one version of a mapper. */
export interface MapperRuns {
  readonly mapper: MapperIdentity;
  readonly runs: number;
  readonly quarantined: number;
  /** Ids of its first and its last run, which sort by time. */
  readonly first: string;
  readonly last: string;
}

/** Queries of operators. */
export interface LedgerQueries {
  /**
   * By operationId, run id, path, file name, or the beginning of an id (4 characters or more): newest first,
   * 50 files by default.
   */
  trace(query: string, limit?: number): Promise<readonly TracedFile[]>;
  /** How many files `trace` would return, were there no limit. */
  countTraced(query: string): Promise<number>;
  events(arrivalId: number): Promise<readonly LedgerEvent[]>;
  addEvent(event: Omit<LedgerEvent, "at">): Promise<void>;
  /** The newest run of a trigger, in whatever state, or null. */
  latestRunOf(trigger: string): Promise<Run | null>;
  /** Newest first; `before`: only runs opened before this one. */
  recentRuns(limit: number, states?: readonly RunState[], before?: string): Promise<readonly Run[]>;
  /**
   * How many runs are in these states, or in all. `awaited`: with remaining steps or awaited outcomes alone;
   * `unfinished`: those whose source was not finished alone.
   */
  countRuns(states?: readonly RunState[], of?: "all" | "awaited" | "unfinished"): Promise<number>;
  /** How many arrivals at the drop are in these states. */
  countArrivals(drop: string, states: readonly ArrivalState[]): Promise<number>;
  /**
   * Files that are at a drop now, are unconfirmed or were worked on since, by standing and by drop, and the
   * points of runs worked on since.
   */
  tally(since: IsoInstant): Promise<Tally>;
  /** The newest file of a drop, among the newest 20,000 of all drops; null when none of them is from it. */
  lastArrivalAt(drop: string): Promise<Arrival | null>;
  /** Takes as long as there are runs in the time: some milliseconds for a thousand. */
  runTotals(span: TimeSpan): Promise<RunTotals>;
  /** The first file that the trigger claimed in each of the times; null where there is none. Without replays. */
  firstFilesOf(trigger: string, spans: readonly TimeSpan[]): Promise<readonly (TriggerFile | null)[]>;
  /** Of every mapper version, the one used last first. Reads an index of all runs. */
  mapperRuns(): Promise<readonly MapperRuns[]>;
  /**
   * The findings of the newest runs of a trigger whose readings were accepted, the newest first; with `before`, of
   * those opened before that run. Without replays.
   */
  acceptedFindings(
    trigger: string,
    options: { readonly limit: number; readonly before?: string | undefined },
  ): Promise<readonly (readonly MappingFinding[])[]>;
  /** Runs in progress or held, counted by trigger, drop and lane. */
  backlog(): Promise<readonly Backlog[]>;
}

/**
 * Files of a drop that others touched. `repeated`: operations of another ledger, or of a former state of this one, had
 * delivered them. `replaced`: they were overwritten between their claim and their finish.
 */
export interface DropNotice {
  readonly kind: "repeated" | "replaced";
  readonly drop: string;
  readonly files: number;
  /** One of the operations, empty where the service did not name it; the path of one of the files. */
  readonly example: string;
  readonly latestAt: IsoInstant;
}
