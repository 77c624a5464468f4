/**
 * The nouns that the stages hand to each other, without behaviour. `docs/dev/architecture.md` has the glossary.
 */

import type { BatchSlice, Binding, MappingFinding, Reason } from "#mapping/model.ts";
import type { FileTrigger } from "#wire/trigger.ts";
import type { WebhookBody } from "#wire/webhook.ts";
import type { ArrivalState, BatchState, FileStanding, RunState } from "./states.ts";

export type * from "#mapping/model.ts";
export type { ArrivalState, BatchState, End, FileStanding, RunState } from "./states.ts";

/**
 * The code of runs whose readings were lost before all were delivered: a newer version of the file does not bring them
 * back.
 */
export const READINGS_LOST = "HG-RUN-014";

/** Events that end where a source file was before; those that leave it there are none of them. */
export const PLACE_EVENTS: readonly string[] = [
  "source.archived",
  "source.aside",
  "source.deleted",
  "source.changed",
  "source.gone",
  "source.unwatched",
  "source.returned",
];

export type { FileTrigger, WebhookBody };

/** How full the spool is, for health and metrics. */
export interface SpoolState {
  /** Bytes of the inputs, segments and bodies of runs in progress, and of files that are being fetched. */
  readonly usedBytes: number;
  /** The part of bodies that wait in the ledger's database, where all nodes have them. */
  readonly sharedBytes: number;
  /** The part of held runs, which only a person or the structure can release; counted when much is in use. */
  readonly held: { readonly runs: number; readonly bytes: number };
  readonly budgetBytes: number;
  /** Free bytes of the disk, for this user. */
  readonly freeBytes: number;
  /** Why no more files are taken, in words; null while they are. */
  readonly full: string | null;
}

/** Versions of files at drops. */
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
  /**
   * Of an unmatched file that no person has to see to: its drop expects such files, or the trigger that may claim it is
   * paused or not known yet.
   */
  readonly isExpected?: boolean;
}

// Bodies of pushes, and the targets in them.

export interface Batch extends BatchSlice {
  readonly runId: string;
  readonly operationId: string;
  /** Follows from what is delivered (`ledger/records/batches.ts`), or is the operationId. */
  readonly idempotencyKey: string;
  /**
   * The earlier operation whose answer the service repeated: what is accepted was delivered by it; what is not sent
   * yet is sent only where the service lacks it. Null: none is known. Empty: the service did not name it.
   */
  readonly repeats: string | null;
  readonly state: BatchState;
  readonly attempts: number;
  /** Last answer of the service, or the last failure, in words. */
  readonly answer: string | null;
  readonly acceptedAt: IsoInstant | null;
  readonly outcome: Outcome | null;
}

/** One push call, for metrics. */
export interface PushFacts {
  readonly service: string;
  readonly operationId: string;
  readonly traceId: string;
  /** Null when no response came. */
  readonly status: number | null;
  readonly seconds: number;
}

// Results of pushes, as the service reports them.

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

// Events and counts that the ledger shows.

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

/**
 * Where the finish of a file has put it: the result, as the history of the file has it, which may differ from the plan.
 * Null for a file that it moved nowhere, or that has gone from there.
 */
export function finishedPlace(path: string, events: readonly Pick<LedgerEvent, "what" | "detail">[]): string | null {
  const last = events.findLast(({ what }) => PLACE_EVENTS.includes(what));
  if (last?.what !== "source.archived" && last?.what !== "source.aside") return null;
  const before = `${path} → `;
  const place = last.detail.startsWith(before) ? last.detail.slice(before.length) : last.detail;
  if (last.what === "source.archived") return place;
  // The rest of the plan follows. The name of a file that is set aside, in the folder of its path, has no semicolon.
  return place.slice(0, place.indexOf("; ", path.lastIndexOf("/") + 1));
}

/** Printed last by commands that end by themselves (one object with `--json`). */
export interface Summary {
  readonly files: Readonly<Partial<Record<FileStanding, number>>>;
  readonly points: Pick<Points, "mapped" | "accepted" | "stored" | "rejected">;
  readonly drops: Readonly<Record<string, { readonly kind: DropKind; readonly files: number }>>;
}

// The state of the polls of one drop, for health, metrics and operators.

export interface DropState {
  readonly drop: string;
  readonly kind: DropKind;
  /** When a poll last ended without an error. */
  readonly lastCompletePoll: IsoInstant | null;
  /** The reason of a pause by an operator; null while the drop is polled. */
  readonly paused: string | null;
  readonly completePolls: number;
  readonly consecutiveFailures: number;
  readonly lastError: {
    readonly code: string | null;
    readonly message: string;
    readonly hint: string | null;
  } | null;
  /** Null while polling, and when stopped. */
  readonly nextPollAt: IsoInstant | null;
  readonly inProgress: boolean;
  /** Files that will be picked up when they have settled. */
  readonly settlingCount: number;
  /** Files under temporary names or without their done-file; they wait for their sender. */
  readonly temporaryCount: number;
  /** Files that wait longer than the drop's limit. */
  readonly overdueCount: number;
  /** Settled files left for the next poll. */
  readonly leftCount: number;
  /** Files that the last listing did not show for the first time; the next one decides whether they have gone. */
  readonly missingCount: number;
  /** Files that are not taken yet, and why; the first of them when there are many. */
  readonly waiting: readonly UntakenFile[];
  /**
   * Whether file-system events make polls come sooner; null when that is unknown, and where there are none.
   */
  readonly eventsArrive: boolean | null;
}

/** For `runs --waiting`: a file that is not picked up yet, and why. */
export interface UntakenFile {
  readonly path: string;
  readonly reason: string;
  /** Since the first observation by this process. */
  readonly waitingMs: number;
  /** When the file was first seen. */
  readonly since: IsoInstant;
  readonly overdue: boolean;
}

// The bodies of HTTP intakes that a ledger keeps for all its nodes.

/**
 * The bodies of HTTP intakes, by the name of the drop: any node may receive one, and any node may process it.
 */
export interface SharedIntake {
  /** Bytes with which all nodes sign: the given ones, unless some are stored already. */
  secret(drop: string, made: Buffer): Promise<Buffer>;
  /** Microseconds since 1970 by the server's clock, greater than every earlier id. */
  nextId(drop: string): Promise<number>;
  /**
   * Stores the body and its record in one transaction: both are durable when it resolves. A repetition of an
   * earlier body is not stored.
   */
  publish(drop: string, body: SharedBody, pieces: AsyncIterable<Uint8Array>): Promise<Published>;
  /** Records of waiting bodies, in the order of their ids. */
  waiting(drop: string, after: number, limit: number): Promise<readonly WaitingBody[]>;
  /** Bytes of the waiting bodies. */
  waitingBytes(drop: string): Promise<number>;
  /** The same for all drops. */
  allWaitingBytes(): Promise<number>;
  /** The greatest id of a waiting body; 0 when there is none. */
  newest(drop: string): Promise<number>;
  record(drop: string, path: string): Promise<string | null>;
  stat(drop: string, path: string): Promise<{ readonly size: number; readonly mtime: string } | null>;
  /** The bytes at a path, a piece at a time; null when there is no file. */
  open(drop: string, path: string): Promise<AsyncIterable<Buffer> | null>;
  /** Removes the file at a path. */
  remove(drop: string, path: string): Promise<void>;
  /** Moves a body to another path, where it no longer waits. False when there is a file already. */
  move(drop: string, path: string, to: string): Promise<boolean>;
  /** Paths below a folder, in their order. */
  below(drop: string, folder: string, after: string, limit: number): Promise<readonly string[]>;
  /** Forgets the records of bodies that do not wait and have a smaller id. */
  forget(drop: string, beforeId: number): Promise<void>;
}

export interface SharedBody {
  readonly id: number;
  readonly path: string;
  readonly size: number;
  readonly mtime: string;
  /** Digest of the facts that must be equal in a repetition. */
  readonly content: string;
  /** Digest that identifies a repetition without an Idempotency-Key, by its operationId; null without one. */
  readonly byOperation: string | null;
  /** Digest of the Idempotency-Key and its sender; null without one. */
  readonly keyed: string | null;
  /** JSON text. */
  readonly record: string;
}

export interface WaitingBody {
  readonly id: number;
  readonly record: string;
}

export type Published =
  | { readonly kind: "taken" }
  /** With the record of the body that came first. */
  | { readonly kind: "repeat"; readonly record: string }
  /** The same Idempotency-Key came with other content. */
  | { readonly kind: "conflict" };

// Attempts to process arrivals.

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
  /** Findings of its mapping. */
  readonly findings: readonly MappingFinding[];
  /** Decided once, before the source file is touched. */
  readonly finishPlan: FinishPlan | null;
  readonly finishedAt: IsoInstant | null;
  /** Set when a person ordered a replay, and when it continues a held run. */
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
  /** The reason that the person gave. */
  readonly why?: string | undefined;
  /**
   * No person ordered it: the gateway continues a held run, in its place of the lane, with what is in force. Says
   * whether that run was claimed, or is itself of a replay that a person ordered.
   */
  readonly continues?: "claim" | "replay" | undefined;
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

/** ISO 8601 instant in UTC, such as `2026-03-01T00:15:00.000Z`. */
export type IsoInstant = string;

/** Files at a drop, and how their source is finished. */
export type DropKind = "local" | "sftp" | "ftp" | "http" | "hub";

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
  /** `tag` distinguishes it from another version of the same size and time. */
  | { readonly action: "delete"; readonly tag?: string }
  /** `to` is the full destination, relative to the drop's root, unique by construction. */
  | { readonly action: "archive"; readonly to: string };

/**
 * `done`: also when done earlier; `changed`: the path now holds other content, which was left; `gone`: no file there.
 */
export type FinishResult = "done" | "changed" | "gone";
