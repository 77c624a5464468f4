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

/** What a drop did with the bytes of an arrival. */
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
  /** `tag` tells it from another version of the same size and time; absent in plans of earlier versions. */
  | { readonly action: "delete"; readonly tag?: string }
  /** `to` is the full destination, relative to the drop's root, unique by construction. */
  | { readonly action: "archive"; readonly to: string };

/** `done` also when it had been done before; `changed`: other content lies there now and was left; `gone`: nothing lies there. */
export type FinishResult = "done" | "changed" | "gone";

// ───────────────────────────────────────────────────────────── arrivals

export type ArrivalState = "settling" | "unmatched" | "duplicate" | "skipped" | "matched";

export interface Arrival {
  /** Increases with the order of first sighting; lanes deliver in this order. */
  readonly id: number;
  /** The container whose entry it is; null for what lies at the drop itself. */
  readonly parentId: number | null;
  readonly drop: string;
  /** Of an entry: `<path of the container>!/<path in it>`. */
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Known once fetched. */
  readonly sha256: string | null;
  readonly state: ArrivalState;
  /** Why it is in this state, in words. */
  readonly reason: string;
  readonly seenAt: IsoInstant;
  readonly changedAt: IsoInstant;
  /** When it was archived, deleted or vanished from the listing; null while it lies at the drop. */
  readonly goneAt: IsoInstant | null;
}

// ───────────────────────────────────────────────────────────── runs

/** `claimed → fetched → mapping → mapped → delivering → accepted → confirmed`, and aside the others; a container goes `claimed → fetched → opened`. */
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

/** Why a run rests where it rests, for a person. */
export interface Reason {
  /** Stable code from the register of errors, such as `HG-MAP-004`. */
  readonly code: string;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly place?: Place | undefined;
  /** When rows were refused: how many for which reason. */
  readonly rejectedByReason?: readonly RejectedReason[] | undefined;
  /** When targets hold a run: the first of them. */
  readonly targets?: readonly TargetFinding[] | undefined;
  /** Readings of targets that do not exist: pushed as they are, the service would discard them. */
  readonly discards?: number | undefined;
}

/** What the guard found about one target before the first push. */
export interface TargetFinding {
  /** `missing` and `ambiguous` are about the variable, the others about its readings. */
  readonly what: "missing" | "ambiguous" | "unit" | "date" | "version";
  /** In words, such as `sourceSerialNumber=M-1 mappingConfig=kWh`. */
  readonly target: string;
  /** Readings. */
  readonly points: number;
  readonly words: string;
}

/** How often rows were refused for one reason. */
export interface RejectedReason {
  /** With `…` for what differs from row to row. */
  readonly message: string;
  readonly column?: string | undefined;
  readonly count: number;
}

/** One row that a mapper refused. */
export interface RejectedRow extends Reason {
  readonly place: Place;
}

/** What made a run; a later attempt, also on another node, uses exactly these (invariant 10). */
export interface Binding {
  readonly trigger: string;
  readonly service: string;
  readonly mapper: MapperIdentity;
  /** The trigger's metadata: the settings that the mapper was given. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly rows: "strict" | "lenient";
  /** Of a lenient run: the share of refused rows, from 0 to 1, above which nothing is pushed. Any when absent. */
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
  /** Where it lay. */
  readonly path: string;
  readonly format: "csv" | "xlsx";
  /** Column of the keys. */
  readonly key: string;
  readonly delimiter?: string | undefined;
  readonly encoding?: string | undefined;
  readonly sheet?: string | number | undefined;
  /** SHA-256 of its bytes, lower-case hexadecimal; null when it could not be read. */
  readonly digest: string | null;
  /** Why it could not be read. */
  readonly fault?: string | undefined;
}

/** What may come out of a container; a container beyond a limit is quarantined. */
export interface UnpackLimits {
  readonly entriesMax: number;
  /** Bytes of all its entries together. */
  readonly sizeMax: number;
  /** Bytes of all its entries for each byte of the container. */
  readonly ratioMax: number;
  /** Patterns of entries that are no files to anybody, such as those that a Mac adds. */
  readonly ignore: readonly string[];
  /** Of names that the archive does not say are UTF-8 (`unpacking/zip.ts`); runs of earlier versions have none. */
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
  /** A person had it done again. */
  readonly replay: Replay | null;
  /** The node that works on it, or did last; null where one process owns the ledger, and before somebody has begun. */
  readonly node: string | null;
  /** How long its outcome was waited for; null until that was counted. */
  readonly confirmClock: ConfirmClock | null;
  readonly createdAt: IsoInstant;
  readonly changedAt: IsoInstant;
}

/** How long the outcome of an accepted run was waited for, in milliseconds. What passed while no gateway ran is in neither. */
export interface ConfirmClock {
  /** While its service could be asked. */
  readonly askableMs: number;
  /** While it could not. */
  readonly awayMs: number;
  /** Counted up to here. */
  readonly until: IsoInstant;
}

/** What a run does again, and how. */
export interface Replay {
  /** The run that it follows, of the same arrival. */
  readonly of: string;
  /** Only readings that no earlier run of this arrival had accepted. */
  readonly rejectedOnly: boolean;
  /** Also readings whose dates later runs have delivered. */
  readonly overwrite: boolean;
  readonly by: string;
  /** The later runs whose dates were left out; known when it is mapped, so that it can be mapped again with equal bytes. */
  readonly spared?: readonly string[] | undefined;
}

/** A drop that is not polled, or a trigger that claims nothing, until a person lets it go on. */
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

/** What the batches of a run hold for one target: for the guard, kept beside the segment and never sent. */
export interface TargetFacts {
  readonly target: PushTarget;
  /** Readings. */
  readonly points: number;
  /** Earliest and latest date, in milliseconds since 1970 in UTC. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Readings without a version. */
  readonly untagged: number;
  /** As the mapper declared it. */
  readonly unit?: string | undefined;
}

// ───────────────────────────────────────────────────────────── outcomes

/** What the service did with an operation, as told by its webhook or by reading back. */
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
  /** What happened, such as `run.claimed`, `batch.accepted`, `source.archived`. */
  readonly what: string;
  readonly detail: string;
}

/** Where a file stands, for the summary line: the arrival's state, or how its latest run ended. */
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

/** What ends by itself prints this last (one object with `--json`). */
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
