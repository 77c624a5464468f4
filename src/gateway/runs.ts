/** Joins the parts that take a run from its claim to its end. */
import { availableParallelism } from "node:os";
import type { Clock } from "#core/clock.ts";
import { Collector } from "#core/collector.ts";
import { ConfigError } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { Tracer } from "#core/trace-context.ts";
import { Turns } from "#core/turns.ts";
import type { MapperVersions, MappingPool } from "#mapping/contract.ts";
import { prepareHttp } from "#wire/client/http.ts";
import type { Closer } from "./closers.ts";
import { type GatewayConfig, isInsideHub } from "./config.ts";
import type { GuardPolicy } from "./delivery/delivery.ts";
import { triggerGuard } from "./delivery/options.ts";
import { planFinish } from "./drops/finish.ts";
import { addressOf, unpackingOf } from "./drops/options.ts";
import { type InnerGateway, SPARE_RUNS, type StoredVersion } from "./inner.ts";
import type { Ledger } from "./ledger/ledger.ts";
import type { Arrival, BatchLimits, Run } from "./model.ts";
import { Provisioners, type ProvisioningDependencies } from "./provisioners.ts";
import { STANDARD_BODY_TRIGGER } from "./runs/claim-bindings.ts";
import type { ClaimParts } from "./runs/claim-parts.ts";
import type { FinishFaults } from "./runs/finish-faults.ts";
import { FinishGuard, type FinishGuardParts } from "./runs/finish-guard.ts";
import type { LookupStore } from "./runs/lookups.ts";
import type { Pauses } from "./runs/pauses.ts";
import { type BindingParts, replayBinding } from "./runs/replay-mapper.ts";
import { ServiceReach } from "./runs/service-reach.ts";
import type { SourceZones } from "./runs/source-zones.ts";
import { type DropEntry, finishAfter, type RunSteps, type ServiceEntry } from "./runs/steps/steps.ts";
import { ContainerCopies } from "./runs/unpacking/copies.ts";
import type { SpoolQuota } from "./spool/quota.ts";
import type { Spool } from "./spool/spool.ts";
import { laneOf, type TriggerRegistry, whyUnclaimed } from "./triggers/registry.ts";

/** Runs whose files are asked for at one time. */
const ASKED_AT_ONCE = 500;

export function claimParts(
  config: GatewayConfig,
  parts: {
    readonly ledger: Ledger;
    readonly log: Logger;
    readonly registry: TriggerRegistry;
    readonly dropEntry: (name: string) => DropEntry | undefined;
    readonly lookups: LookupStore;
    readonly zones: SourceZones | null;
    readonly versions: MapperVersions;
    readonly pauses: Pauses;
    readonly finishFaults: FinishFaults;
    readonly clock: Clock;
    readonly onRun: () => void;
    readonly inner: InnerGateway | undefined;
    readonly undoneAt: string | undefined;
  },
): ClaimParts {
  const { inner, undoneAt, ...own } = parts;
  const { registry, dropEntry, pauses } = own;
  return {
    ...own,
    appliesStructure: inner !== undefined,
    pausedTrigger: (name) => pauses.reason("trigger", name),
    planFinish,
    unpacking: (name) => {
      const drop = config.drops.find((one) => one.name === name);
      return drop === undefined ? undefined : unpackingOf(drop);
    },
    addressOf: (name) => {
      const drop = config.drops.find((one) => one.name === name);
      const address = drop === undefined ? null : addressOf(drop);
      if (address === null) return undefined;
      return undoneAt === undefined ? address : `${address} since ${undoneAt}`;
    },
    provenance: async ({ drop, path }) => (await dropEntry(drop)?.drop.provenance?.(path)) ?? null,
    match: ({ drop, path }, provenance) => {
      const ingestionType = provenance?.ingestionType ?? "SendViaFtp";
      const verdict = registry.claim(path, ingestionType, drop, provenance ?? undefined);
      const { claimed, others, undecided } = verdict;
      return { claimed, others, undecided, why: claimed === null ? whyUnclaimed(verdict) : "" };
    },
    laneOf,
    lanesOf: (drop, service) => [
      ...new Set(
        config.triggers
          .filter((trigger) => trigger.drops?.includes(drop) !== false)
          .map((trigger) => laneOf(trigger, drop, trigger.service ?? service)),
      ),
    ],
    get defaultService() {
      return config.services[0]?.name ?? "";
    },
    get limits() {
      return batchLimits(config);
    },
    loggedUnmatched: new Set(),
    turns: new Turns(),
    finishing: new Turns(),
  };
}

/** Other drops whose files may belong to lanes of this one. Only lanes with a name are shared. */
export function laneMates({ triggers, drops }: GatewayConfig, drop: string): readonly string[] {
  const named = triggers.filter(({ lane }) => lane !== undefined);
  const own = new Set(named.filter((trigger) => takesFrom(trigger, drop)).map(({ lane }) => lane));
  const sharing = named.filter(({ lane }) => own.has(lane));
  return drops
    .map(({ name }) => name)
    .filter((name) => name !== drop && sharing.some((trigger) => takesFrom(trigger, name)));
}

function takesFrom(trigger: GatewayConfig["triggers"][number], drop: string): boolean {
  return trigger.drops?.includes(drop) !== false;
}

export function finishGuard(config: GatewayConfig, parts: Omit<FinishGuardParts, "drops">): FinishGuard {
  return new FinishGuard({ ...parts, drops: () => config.drops.map(({ name }) => name) });
}

/**
 * The bodies of `POST /api/data` have no trigger. As at the service, a target that does not exist does not hold back
 * the others of the body; unlike there, it is reported.
 */
const STANDARD_BODY_GUARD: GuardPolicy = {
  targets: "warn",
  units: "warn",
  dates: "warn",
  versions: "warn",
  unreadable: "warn",
};

export function joinSteps(
  config: GatewayConfig,
  parts: {
    readonly ledger: Ledger;
    readonly spool: Spool;
    readonly quota: SpoolQuota;
    readonly lookups: LookupStore;
    readonly zones: SourceZones | null;
    readonly pool: MappingPool;
    readonly inner: InnerGateway | undefined;
    readonly versions: MapperVersions;
    readonly finishFaults: FinishFaults;
    readonly clock: Clock;
    readonly log: Logger;
    readonly tracer: Tracer;
    readonly dropEntry: (name: string) => DropEntry | undefined;
    readonly serviceEntry: (name: string) => ServiceEntry | undefined;
    readonly claim: (arrivals: readonly Arrival[]) => Promise<void>;
    readonly onRun: () => void;
    readonly ties: ProvisioningDependencies | undefined;
  },
  closers: Closer[],
): RunSteps {
  const provisioners = new Provisioners(config, {
    clock: parts.clock,
    alone: parts.ties?.alone ?? parts.ledger.fleet.alone,
    journal: parts.ties?.journal,
  });
  closers.push(() => provisioners.close());
  const { versions, ties: _, claim, inner, ...own } = parts;
  return {
    ...own,
    applyStructure: inner?.applyStructure ?? null,
    isRemoved: isRemovedFrom(inner),
    claim: (arrival) => claim([arrival]),
    copies: new ContainerCopies(parts.spool),
    reach: new ServiceReach(parts.clock, parts.log),
    finishAfter: (run, rule) => finishAfter(config.push.confirm.by, config.triggers, run, rule),
    planFinish,
    prepareDelivery: prepareHttp,
    guardPolicy: ({ binding }) =>
      binding.trigger === STANDARD_BODY_TRIGGER
        ? STANDARD_BODY_GUARD
        : (config.triggers.find(({ name }) => name === binding.trigger)?.guard ?? triggerGuard.parse(undefined)),
    provisioning: (run) => provisioners.of(run),
    get recheck() {
      return { firstMs: config.push.guard.recheck, lastMs: config.push.guard.recheckMax };
    },
    bindingNow: (run, overrides) => replayBinding(run, overrides, bindingParts(config, parts.lookups)),
    get remapHeld() {
      return config.held.remap;
    },
    currentMapper: (name) =>
      versions.current(name).catch((thrown: unknown) => {
        if (thrown instanceof ConfigError) return null;
        throw thrown;
      }),
  };
}

/** The configuration that replays are bound to, as it is now. */
export function bindingParts(config: GatewayConfig, lookups: LookupStore): BindingParts {
  const { triggers } = config;
  return { triggers, lookups, knowsZones: isInsideHub(config), limits: batchLimits(config), laneOf };
}

export function batchLimits({ push }: GatewayConfig): BatchLimits {
  return { pointsMax: push.batch.points, bytesMax: push.batch.bytes };
}

/** As many runs as can be mapped at once, and those that wait for a worker. */
export function intakeConcurrency({ count, queue, perDrop }: GatewayConfig["workers"], inner?: InnerGateway) {
  const workers = count === "auto" ? availableParallelism() : count;
  return {
    intakeConcurrency: workers + queue,
    intakePerDrop: perDrop === "all" ? null : perDrop,
    intakeSpare: inner === undefined ? 0 : SPARE_RUNS,
  };
}

/** Runs of one moment are asked for as one list. */
function isRemovedFrom(inner: InnerGateway | undefined): RunSteps["isRemoved"] {
  if (inner === undefined) return async () => false;
  const asked = new Collector<Run, StoredVersion>((runs) => inner.storedVersions(runs), ASKED_AT_ONCE);
  return async (run) => {
    const stored = await asked.add(run);
    return stored !== "no account" && stored.mtime === null;
  };
}
