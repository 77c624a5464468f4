/**
 * The dependencies and the results of steps. `scheduler.ts` decides which runs take a step when, `step-dispatch.ts`
 * which step they take.
 */
import type { Clock } from "#core/clock.ts";
import { type HeadgateError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Tracer } from "#core/trace-context.ts";
import type { MappingPool, MapResult } from "#mapping/contract.ts";
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

/** The mapper is not the one that the run is bound to. */
const MAPPER_CHANGED = "HG-MAP-002";
/** Dates of the file need the zones of the sources, to which the run is not bound. */
const ZONES_NEEDED = "HG-MAP-019";

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

// Runs of stored files that were removed meanwhile: their removal may not have reached this gateway.

type OneStep = (run: Run, steps: RunSteps, signal: AbortSignal) => Promise<StepResult>;

/** The step, except for a run of a removed file, which is cancelled. What is being sent may end. */
export function unlessRemoved(step: OneStep): OneStep {
  return async (run, steps, signal) => {
    if (run.state === "delivering" || !(await steps.isRemoved(run))) return await step(run, steps, signal);
    const message = "the stored file was removed, and is no longer processed";
    await steps.ledger.advanceRun(run.id, run.state, "cancelled", {
      reason: { code: "HG-RUN-010", message },
      detail: message,
    });
    return NEXT;
  };
}

// How outcomes are learned, by the configuration.

/** Port 0 in `webhook.publicUrl` stands for the port that the listener of webhooks took. */
export function webhookAddress(publicUrl: string | undefined, listenerUrl: string): string | null {
  if (publicUrl === undefined) return null;
  const url = new URL(publicUrl);
  if (url.port === "0") url.port = new URL(listenerUrl).port;
  return new URL("webhooks/outcome", `${url.href.replace(/\/$/, "")}/`).href;
}

export function confirmRule(
  {
    by,
    within,
    pollEvery,
    webhookWait,
  }: {
    readonly by: "auto" | ConfirmRule["by"];
    readonly within: number;
    readonly pollEvery: number;
    readonly webhookWait: number;
  },
  hasWebhook: boolean,
): ConfirmRule {
  return {
    by: by === "auto" ? (hasWebhook ? "webhook" : "read-back") : by,
    withinMs: within,
    hangMs: Math.min(webhookWait, within / 2),
    everyMs: pollEvery,
  };
}

/** Archiving waits for acceptance, deleting for the confirmation, unless the trigger says otherwise (invariant 1). */
export function finishAfter(
  by: "auto" | ConfirmRule["by"],
  triggers: readonly {
    readonly name: string;
    readonly finishAfter?: FinishAfter | undefined;
  }[],
  run: Run,
  rule: FinishRule,
): FinishAfter {
  if (by === "none") return "accepted";
  const trigger = triggers.find((one) => one.name === run.binding.trigger);
  return trigger?.finishAfter ?? (rule.action === "delete" ? "confirmed" : "accepted");
}

// Binds a run to another version of its mapper, or to the zones of the sources, as long as it has no batches.

/** `acme 1.2.0 (0123456789ab)` */
export function mapperText({ name, version, digest }: MapperIdentity): string {
  return `${name} ${version} (${digest.slice(0, 12)})`;
}

/** A replay takes the version of the mapper that exists when its turn comes. */
export async function bindMapper(run: Run, steps: RunSteps): Promise<StepResult> {
  if (await rebind(run, steps)) return NEXT;
  const message = `the mapper ${run.binding.mapper.name} does not exist, or cannot be loaded`;
  const reason = { code: "HG-MAP-001", message };
  await steps.ledger.advanceRun(run.id, "fetched", "quarantined", { reason, detail: message });
  return REST;
}

/** Until a run has batches, nothing depends on which version of the mapper it was claimed for. */
async function rebind(run: Run, steps: RunSteps): Promise<boolean> {
  const mapper = await steps.currentMapper(run.binding.mapper.name);
  if (mapper === null || mapper.digest === run.binding.mapper.digest) return false;
  const before = run.binding.mapper;
  await steps.ledger.noteRun(run.id, {
    bound: { mapper },
    event: "run.rebound",
    detail:
      before.digest === ""
        ? `to the mapper ${mapperText(mapper)}`
        : `the mapper is ${mapperText(mapper)} now; it was ${mapperText(before)} when the file was claimed`,
  });
  return true;
}

/** Whether the run is bound otherwise now, and is to be mapped again. */
export async function rebindFor(result: MapResult, run: Run, steps: RunSteps): Promise<boolean> {
  if (result.status !== "failed") return false;
  if (result.reason.code === MAPPER_CHANGED) return await rebind(run, steps);
  return result.reason.code === ZONES_NEEDED && (await bindZones(run, steps));
}

async function bindZones({ id, binding }: Run, { zones, ledger }: RunSteps): Promise<boolean> {
  if (zones === null || binding.zones !== null) return false;
  const digest = await zones.bind(binding.trigger, binding.service);
  await ledger.noteRun(id, {
    bound: { zones: digest },
    event: "run.rebound",
    detail: `to the zones of the sources (${digest.slice(0, 12)}), since dates of the file have none`,
  });
  return true;
}
