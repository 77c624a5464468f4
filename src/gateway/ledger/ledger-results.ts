/** Results of the ledger's queries, beside the nouns of `model.ts`. */
import type {
  Arrival,
  ArrivalState,
  Batch,
  IsoInstant,
  LedgerEvent,
  MapperIdentity,
  MappingFinding,
  RejectedRow,
  Run,
  RunState,
  Summary,
} from "../model.ts";

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
