/**
 * The dependencies and the results of steps. `scheduler.ts` decides which runs take a step when, `step-dispatch.ts`
 * which step they take.
 */

import type { Clock } from "#core/clock.ts";
import { type HeadgateError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Tracer } from "#core/trace-context.ts";
import type { MappingPool } from "#mapping/contract.ts";
import type { Delivery, GuardPolicy } from "../../delivery/delivery.ts";
import type { Drop } from "../../drops/drop.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type {
  Arrival,
  End,
  FileEntry,
  FinishPlan,
  FinishRule,
  MapperIdentity,
  Place,
  Reason,
  Run,
  TargetFacts,
} from "../../model.ts";
import type { SpoolQuota } from "../../spool/quota.ts";
import type { Spool } from "../../spool/spool.ts";
import type { FinishAfter } from "../../states.ts";
import type { FinishFaults } from "../finish-faults.ts";
import type { LookupStore } from "../lookups.ts";
import type { ReplayOverrides, replayBinding } from "../replay-mapper.ts";
import type { ServiceReach } from "../service-reach.ts";
import type { SourceZones } from "../source-zones.ts";
import type { ContainerCopies } from "../unpacking/copies.ts";

/** A drop with the rules that the configuration gives it. */
export interface DropEntry {
  readonly drop: Drop;
  readonly finish: Readonly<Record<End, FinishRule>>;
  /** For bytes that came before at the same path: they are left alone, processed again, or processed with a note. */
  readonly duplicates: "skip" | "process" | "flag";
  /** Which of the entries of a container is delivered first. */
  readonly order?: "modified" | "name";
  /** Patterns of files that no trigger has to claim; `all` at a hub. */
  readonly expectUnmatched?: readonly string[] | "all";
  /** How long a finished file is watched, in milliseconds. 0: not at all. */
  readonly guardMs: number;
}

export interface ServiceEntry {
  readonly delivery: Delivery;
  readonly confirm: ConfirmRule;
}

export interface ConfirmRule {
  /** How outcomes are learned. `webhook` falls back to reading back after `hangMs`. */
  readonly by: "webhook" | "read-back" | "none";
  /**
   * From acceptance, in milliseconds. Readings that are missing when the service could be queried for so long are
   * discarded; a run is unconfirmed when the service was away for so long, or does not permit reading.
   */
  readonly withinMs: number;
  readonly hangMs: number;
  readonly everyMs: number;
}

/** Pauses between two checks of a held run, in milliseconds; they grow with the time that it is held. */
interface RecheckRule {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** The result for targets that the account did not have. */
interface ProvisionedTargets {
  /** Null when nothing was created. */
  readonly created: string | null;
  /** Why some cannot be created; null when none is left. */
  readonly fault: string | null;
  /** The service is away: to be thrown once it is noted what was created before. */
  readonly error: Error | null;
}

/** A file of master data, for the one that applies it. */
interface StructureFile {
  readonly run: string;
  readonly drop: string;
  /** Path at the drop; an entry of a container is behind `!/`. */
  readonly path: string;
  /** Local file with its bytes. */
  readonly inputPath: string;
  readonly settings: Readonly<Record<string, unknown>>;
}

export type StructureApplied =
  | { readonly kind: "applied"; readonly words: string }
  /** Nothing was changed. */
  | { readonly kind: "refused"; readonly words: string; readonly place: Place };

/** All of the file or nothing; a run that is applied again has the result of the first time. Throws as steps do. */
export type ApplyStructure = (file: StructureFile, signal: AbortSignal) => Promise<StructureApplied>;

export interface RunSteps {
  readonly ledger: Ledger;
  readonly spool: Spool;
  readonly quota: Pick<SpoolQuota, "reserve" | "fetched" | "mapped">;
  readonly copies: ContainerCopies;
  readonly lookups: Pick<LookupStore, "filesFor" | "zonesFor">;
  /** Null for a gateway that is not inside a hub. */
  readonly zones: Pick<SourceZones, "bind"> | null;
  readonly pool: MappingPool;
  /** Null for a gateway that is not inside a hub. */
  readonly applyStructure: ApplyStructure | null;
  /** Whether the file is a stored file of a hub that was removed. */
  isRemoved(run: Run): Promise<boolean>;
  readonly finishFaults: Pick<FinishFaults, "note">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly tracer: Tracer;
  /** As pick-up does; for the entries of containers. */
  claim(arrival: Arrival): Promise<void>;
  /** The version of this mapper that new runs take; null when it is gone or cannot be loaded. */
  currentMapper(name: string): Promise<MapperIdentity | null>;
  /** The binding that a replay of the run would have now; its mapper has no version yet. */
  bindingNow(run: Run, overrides: ReplayOverrides): ReturnType<typeof replayBinding>;
  /** Whether a held run continues by itself with what is in force, or a person is asked. */
  readonly remapHeld: "always" | "ask";
  /** A run was opened. */
  onRun(): void;
  dropEntry(name: string): DropEntry | undefined;
  serviceEntry(name: string): ServiceEntry | undefined;
  /** Called while files are mapped: loads what the first call of a service needs, and would wait for. */
  prepareDelivery(): void;
  /** The reaction of the run's trigger to findings of the guard, as it is configured now. */
  guardPolicy(run: Run): GuardPolicy;
  readonly recheck: RecheckRule;
  readonly reach: ServiceReach;
  /** By the template of the run's trigger; null where it has none, or creates only what is ordered. */
  provisioning(run: Run): {
    /** Most missing targets of a run. */
    readonly max: number;
    provision(targets: readonly TargetFacts[], signal: AbortSignal): Promise<ProvisionedTargets>;
  } | null;
  finishAfter(run: Run, rule: FinishRule): FinishAfter;
  planFinish(rule: FinishRule, entry: FileEntry, id: string): FinishPlan;
}

/** `next`: the following step is due at once; `wait`: not before the time, for the reason; `rest`: no step is due. */
export type StepResult =
  /** `run`: as it is now, where the step knows. */
  | { readonly move: "next"; readonly run?: Run }
  /** `held`: it is checked again. */
  | { readonly move: "rest"; readonly held?: boolean; readonly run?: Run }
  | {
      readonly move: "wait";
      readonly ms: number;
      readonly reason: string;
      readonly wholeService?: boolean;
      /** The service did not take what was sent. */
      readonly failing?: boolean;
      readonly blockedBy?: string;
    };

export const NEXT: StepResult = { move: "next" };
export const REST: StepResult = { move: "rest" };

export function waitFor(ms: number, reason: string): StepResult {
  return { move: "wait", ms, reason };
}

export function entryOf(run: Run): FileEntry {
  return { path: run.path, size: run.size, mtime: run.mtime };
}

export function reasonOf(error: HeadgateError): Reason {
  return { code: error.code, message: wordsOf(error), hint: error.hint };
}
