/**
 * The glossary, and the nouns that the stages hand to each other. No behaviour.
 *
 * drop        a watched place: a local folder, a directory on an SFTP or FTP server, or the gateway's own HTTP intake
 * arrival     one version of one file at a drop: (drop, path, size, mtime, SHA-256 of the content)
 * container   an arrival that packs others (`.zip`, `.gz`); each of its entries is an arrival of its own
 * trigger     the rule that claims an arrival by its file name and names the mapper
 * mapper      a plug-in module that turns the bytes of one file into readings
 * reading     one (target, date, value, version?, tags?), before it is grouped into a push element
 * target      the identification of a variable: variableId, or a source identifier with mappingConfig or variableTypeId
 * run         one attempt to take one arrival through one trigger; the unit that an operator sees, retries and replays
 * batch       one push request body: JSON bytes, ready to send, with its own operationId
 * segment     the file in the spool that holds the batches of one run, one after another
 * operation   one push call, followed by its operationId from row to outcome
 * outcome     what became of an operation: accepted, stored, partly discarded, rejected
 * quarantine  where a run rests that needs a person: with reason code, place in the file, and the way back
 * ledger      the durable record of arrivals, runs, batches and outcomes
 * hub         the measurement data service (token, push, base interfaces) and its store
 */
import type { FileTrigger, PushElement, PushReading, PushTarget, WebhookBody } from "./wire/index.ts";

export type { FileTrigger, PushElement, PushReading, PushTarget, WebhookBody };

/** ISO 8601 instant in UTC, such as `2026-03-01T00:15:00.000Z`. */
export type IsoInstant = string;

// ───────────────────────────────────────────────────────────── drops

export type DropKind = "local" | "sftp" | "ftp" | "http";

/** One file as a drop lists it. */
export interface FileEntry {
  /** Relative to the root of the drop, separated by `/`, never leading out of it. */
  readonly path: string;
  /** Bytes. */
  readonly size: number;
  /** Opaque change token (seconds, milliseconds or text, as the server gives it); compared for equality only. */
  readonly mtime: string;
}

/** The result of a drop's fetch of the bytes of an arrival. */
export interface FetchedFile {
  readonly bytes: number;
  /** SHA-256 of the content, lower-case hexadecimal. */
  readonly sha256: string;
}

/** How an arrival ended at its drop. Each end has a rule of its own. */
export type End = "delivered" | "quarantined" | "unmatched" | "duplicate";

export type FinishRule =
  | { readonly action: "leave" }
  | { readonly action: "delete" }
  | {
      readonly action: "archive";
      readonly to: string;
      /** Milliseconds for which archived files stay; for ever when absent. */
      readonly keep?: number | undefined;
    };

/** The decision what to do with a source file, durable in the ledger before the file is touched. */
export type FinishPlan =
  | { readonly action: "leave" }
  /** `tag` distinguishes it from another version of the same size and time; absent in plans of earlier versions. */
  | { readonly action: "delete"; readonly tag?: string }
  /** `to` is the full destination, relative to the drop's root, unique by construction. */
  | { readonly action: "archive"; readonly to: string };

/**
 * `done`: also when done earlier; `changed`: the path now holds other content, which was left; `gone`: no file there.
 */
export type FinishResult = "done" | "changed" | "gone";

// ───────────────────────────────────────────────────────────── arrivals

export type ArrivalState = "settling" | "unmatched" | "duplicate" | "skipped" | "matched";

export interface Arrival {
  /** Increases with the order of first sighting; lanes deliver in this order. */
  readonly id: number;
  /** The container whose entry the arrival is; null for a file at the drop itself. */
  readonly parentId: number | null;
  readonly drop: string;
  /** Path of an entry: `<path of the container>!/<path in it>`. */
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Known after the fetch. */
  readonly sha256: string | null;
  readonly state: ArrivalState;
  /** The reason for the state, in words. */
  readonly reason: string;
  readonly seenAt: IsoInstant;
  readonly changedAt: IsoInstant;
  /** When the file was archived, deleted or vanished from the listing; null while it is at the drop. */
  readonly goneAt: IsoInstant | null;
}

// ───────────────────────────────────────────────────────────── runs

/** `claimed → fetched → mapping → mapped → delivering → accepted → confirmed`, and side states such as `opened`. */
export type RunState =
  | "claimed"
  | "fetched"
  | "opened"
  | "mapping"
  | "mapped"
  | "delivering"
  | "accepted"
  | "confirmed"
  | "unconfirmed"
  | "empty"
  | "held"
  | "discarded"
  | "quarantined"
  | "cancelled";

/** Where in a file something is wrong. Rows count from 1 as an editor or a spreadsheet shows them. */
export interface Place {
  readonly sheet?: string | undefined;
  readonly row?: number | undefined;
  readonly column?: string | undefined;
  /** The offending text, shortened. */
  readonly text?: string | undefined;
}

/** The reason for the state of a run, for a person. */
export interface Reason {
  /** Stable code from the register of errors, such as `HG-MAP-004`. */
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly place?: Place | undefined;
  /** Counts of refused rows by reason, when rows were refused. */
  readonly rejectedByReason?: readonly RejectedReason[] | undefined;
  /** The first of the targets that hold a run, when targets hold it. */
  readonly targets?: readonly TargetFinding[] | undefined;
  /** Readings of targets that do not exist: pushed as they are, the service would discard them. */
  readonly discards?: number | undefined;
}

/** One finding of the guard about one target before the first push. */
export interface TargetFinding {
  /** `missing` and `ambiguous` are about the variable, the others about its readings. */
  readonly what: "missing" | "ambiguous" | "unit" | "date" | "version";
  /** In words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  /** Number of readings. */
  readonly points: number;
  readonly words: string;
}

/** How often rows were refused for one reason. */
export interface RejectedReason {
  /** Parts that differ from row to row are replaced by `…`. */
  readonly message: string;
  readonly column?: string | undefined;
  readonly count: number;
}

/** One row that a mapper refused. */
export interface RejectedRow extends Reason {
  readonly place: Place;
}

/** The versions and settings that made a run; later attempts use exactly these, also on other nodes (invariant 10). */
export interface Binding {
  readonly trigger: string;
  readonly service: string;
  readonly mapper: MapperIdentity;
  /** The trigger's metadata: the settings that the mapper was given. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  /** For a lenient run: the share of refused rows, from 0 to 1, above which nothing is pushed. No limit when absent. */
  readonly rejectShare?: number | undefined;
  readonly limits: BatchLimits;
  /** The tables of the configuration, with the content that they had when the run was claimed. */
  readonly lookups?: readonly BoundLookup[] | undefined;
  /** The version of readings that have none of their own: `run`, the id of the run, or a tag. */
  readonly version?: "run" | { readonly tag: string } | undefined;
  /** Prefix of the operation ids, from the trigger or the command line. */
  readonly operationPrefix?: string | undefined;
  /** The arrival is a container, which is opened instead of mapped. */
  readonly unpack?: UnpackLimits | undefined;
}

/** A lookup table that a run maps with. */
export interface BoundLookup {
  readonly name: string;
  /** Path of the table when the run was claimed. */
  readonly path: string;
  readonly format: "csv" | "xlsx";
  /** Column of the keys. */
  readonly key: string;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | number | undefined;
  /** SHA-256 of its bytes, lower-case hexadecimal; null when it could not be read. */
  readonly digest: string | null;
  /** The reason why it could not be read. */
  readonly fault?: string | undefined;
}

/** Limits on the contents of a container; a container beyond a limit is quarantined. */
export interface UnpackLimits {
  readonly entriesMax: number;
  /** Bytes of all its entries together. */
  readonly sizeMax: number;
  /** Bytes of all its entries for each byte of the container. */
  readonly ratioMax: number;
  /** Patterns of entries that hold no data, such as those that macOS adds. */
  readonly ignore: readonly string[];
  /** Encoding of names that the archive does not mark as UTF-8 (`support/zip.ts`); absent in earlier runs. */
  readonly names?: "utf-8" | "latin-1" | undefined;
}

export interface MapperIdentity {
  readonly name: string;
  readonly version: string;
  /** SHA-256 over the mapper's file(s), lower-case hexadecimal. */
  readonly digest: string;
}

export interface BatchLimits {
  readonly pointsMax: number;
  readonly bytesMax: number;
}

/** Numbers of points (readings). */
export interface Points {
  readonly mapped: number;
  readonly accepted: number;
  readonly stored: number;
  /** Rejected by the mapper row by row (lenient) or by the service's answer. */
  readonly rejected: number;
  /** Accepted and then dropped by the service. */
  readonly discarded: number;
}

export interface Run {
  /** Sorts by time; the prefix of all its operation ids. */
  readonly id: string;
  readonly arrivalId: number;
  readonly drop: string;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  readonly sha256: string | null;
  readonly binding: Binding;
  /** Runs of one lane that share a target deliver in the order of their arrivals. */
  readonly lane: string;
  readonly state: RunState;
  readonly reason: Reason | null;
  readonly points: Points;
  /** Decided once, before the source file is touched. */
  readonly finishPlan: FinishPlan | null;
  readonly finishedAt: IsoInstant | null;
  /** Set when a person ordered a replay. */
  readonly replay: Replay | null;
  /** The node that works on the run, or did last; null before the start, and where one process owns the ledger. */
  readonly node: string | null;
  /** Time spent waiting for the outcome; null before the first count. */
  readonly confirmClock: ConfirmClock | null;
  readonly createdAt: IsoInstant;
  readonly changedAt: IsoInstant;
}

/** Milliseconds spent waiting for the outcome of an accepted run, without the time in which no gateway ran. */
export interface ConfirmClock {
  /** Time in which the service was reachable. */
  readonly askableMs: number;
  /** Time in which the service was not reachable. */
  readonly awayMs: number;
  /** Time up to which both figures count. */
  readonly until: IsoInstant;
}

/** Which run a replay repeats, and how. */
export interface Replay {
  /** The run that the replay follows, of the same arrival. */
  readonly of: string;
  /** Includes only readings that no earlier run of this arrival had accepted. */
  readonly rejectedOnly: boolean;
  /** Includes readings whose dates later runs have delivered. */
  readonly overwrite: boolean;
  readonly by: string;
  /** The later runs whose dates were left out, recorded at the mapping so that mapping again gives equal bytes. */
  readonly spared?: readonly string[] | undefined;
}

/** A drop that is not polled, or a trigger that claims nothing, until a person resumes it. */
export interface Pause {
  readonly kind: "drop" | "trigger";
  readonly name: string;
  readonly at: IsoInstant;
  readonly by: string;
  readonly why: string;
}

// ───────────────────────────────────────────────────────────── batches

export type BatchState = "ready" | "sending" | "accepted" | "rejected" | "split";

/** A slice of a run's segment, fixed and durable before its first send (invariant 3). */
export interface BatchSlice {
  /** `1`, `2`, … and, after a split, `7.1`, `7.2`. */
  readonly sequence: string;
  /** Bytes from the start of the segment. */
  readonly offset: number;
  /** Bytes. */
  readonly length: number;
  readonly points: number;
  /** SHA-256 of the bytes, lower-case hexadecimal. */
  readonly digest: string;
}

export interface Batch extends BatchSlice {
  readonly runId: string;
  readonly operationId: string;
  readonly state: BatchState;
  readonly attempts: number;
  /** Last answer of the service, or the last failure, in words. */
  readonly answer: string | null;
  readonly acceptedAt: IsoInstant | null;
  readonly outcome: Outcome | null;
}

/** Summary of the readings of a run for one target: for the guard, kept beside the segment and never sent. */
export interface TargetFacts {
  readonly target: PushTarget;
  /** Number of readings. */
  readonly points: number;
  /** Earliest and latest date, in milliseconds since 1970 in UTC. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Number of readings without a version. */
  readonly untagged: number;
  /** The unit as the mapper declared it. */
  readonly unit?: string | undefined;
}

// ───────────────────────────────────────────────────────────── outcomes

/** The outcome of an operation at the service, as reported by its webhook or found by reading back. */
export interface Outcome {
  readonly operationId: string;
  readonly by: "webhook" | "read-back";
  readonly received: number;
  readonly stored: number;
  readonly discarded: readonly DiscardedTarget[];
  readonly at: IsoInstant;
}

export interface DiscardedTarget {
  /** A target in words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  readonly reason: string;
  readonly points: number;
}

// ───────────────────────────────────────────────────────────── the ledger's view

/** One line of the life of a file. */
export interface LedgerEvent {
  readonly at: IsoInstant;
  readonly arrivalId: number;
  readonly runId: string | null;
  readonly operationId: string | null;
  /** Name of the event, such as `run.claimed`, `batch.accepted`, `source.archived`. */
  readonly what: string;
  readonly detail: string;
}

/** State of a file for the summary line: the state of the arrival, or of its latest run. */
export type FileStanding =
  | "delivered"
  | "unconfirmed"
  | "empty"
  | "quarantined"
  | "unmatched"
  | "duplicate"
  | "skipped"
  | "discarded"
  | "held"
  | "cancelled"
  | "settling"
  | "pending";

/** Printed last by commands that end by themselves (one object with `--json`). */
export interface Summary {
  readonly files: Readonly<Partial<Record<FileStanding, number>>>;
  readonly points: {
    readonly mapped: number;
    readonly accepted: number;
    readonly stored: number;
    readonly rejected: number;
  };
  readonly drops: Readonly<Record<string, { readonly kind: DropKind; readonly files: number }>>;
}
