/** Attempts to process arrivals. */
import type { Binding, MappingFinding, Reason } from "#mapping/model.ts";
import type { RunState } from "../states.ts";
import type { FinishPlan } from "./drops.ts";
import type { IsoInstant } from "./time.ts";

/**
 * The code of runs whose readings were lost before all were delivered: a newer version of the file does not bring them
 * back.
 */
export const READINGS_LOST = "HG-RUN-014";

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
