/**
 * A hub with a gateway inside it, for the files that the hub itself takes. Neither imports the other: the storage of
 * each account is a drop of the gateway, the triggers of the account are read from the hub, and the readings are pushed
 * to it, all as for a gateway elsewhere.
 */

import { type Clock, systemClock } from "#core/clock.ts";
import { once } from "#core/once.ts";
import { type FileEvent, type Gateway, startGateway } from "#gateway/gateway.ts";
import type { Outcome } from "#gateway/model.ts";
import { NO_PLACE } from "#hub/gateway-places.ts";
import type { GatewayView } from "#hub/gateway-view.ts";
import { type HubParts, type RunningHub, startHub } from "#hub/hub.ts";
import type { HubOptions } from "#hub/options.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { FileUpdates } from "./platform/file-updates.ts";
import { HubDrop } from "./platform/hub-drop.ts";
import { innerConfig, nameOfAccount } from "./platform/inner-config.ts";
import { mapperList } from "./platform/mapper-list.ts";
import { accountMetrics } from "./platform/metrics.ts";
import { watchAccounts } from "./platform/new-accounts.ts";
import { Outcomes } from "./platform/outcomes.ts";
import { cancelRemoved } from "./platform/removed-files.ts";
import { zoneTables } from "./platform/source-zones.ts";
import { storedVersions } from "./platform/stored-versions.ts";
import { structureOf } from "./platform/structure.ts";
import { TriggerVersions } from "./platform/trigger-versions.ts";

/** Time for running work to end when the hub stops; the rest resumes at the next start. */
const GRACE_MS = 10_000;

export interface Platform extends RunningHub {
  /** Null while the hub takes no files: it has no folder for them, or no account yet. */
  readonly gateway: Gateway | null;
}

/** The gateway inside the hub, with the records of what it did. */
interface Inner {
  readonly gateway: Gateway;
  takeUp(accountIds: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

/** Throws as `startHub` and `startGateway` do. */
export async function startPlatform(
  options: HubOptions,
  parts: Omit<HubParts, "mappersOf" | "gatewayView">,
): Promise<Platform> {
  const { clock = systemClock, log } = parts;
  const catalogue = createCatalogue(options.files.mappers);
  const mappers = mapperList(catalogue, clock);
  const stops: (() => unknown)[] = [() => catalogue.close()];
  const close = once(async () => {
    for (const stop of stops.toReversed()) await stop();
  });
  try {
    let inner: Inner | null = null;
    let isStarting = true;
    const gatewayView = () => (inner !== null ? viewOf(inner.gateway.view) : isStarting ? STARTING : null);
    const hub = await startHub(options, { ...parts, mappersOf: mappers, gatewayView });
    stops.push(() => hub.close());
    const platform = {
      ...hub,
      get gateway() {
        return inner?.gateway ?? null;
      },
      close,
    };
    if (hub.inside.files === null) {
      isStarting = false;
      log.info(`the hub takes no files: ${NO_PLACE}`);
      return platform;
    }
    const start = (accountIds: readonly number[]) => startInner(options, hub, accountIds, { ...parts, clock });
    const accountIds = await hub.inside.accountIds();
    if (accountIds.length === 0) log.info("the hub takes no files until it has an account");
    else inner = await start(accountIds);
    isStarting = false;
    stops.push(async () => {
      const ending = inner;
      await ending?.close();
      inner = null;
    });
    const endWatch = watchAccounts({
      known: accountIds,
      accountIds: () => hub.inside.accountIds(),
      async takeUp(all) {
        if (inner === null) inner = await start(all);
        else await inner.takeUp(all);
      },
      clock,
      log,
    });
    stops.push(endWatch);
    return platform;
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** The hub listens before its gateway does. */
const STARTING: GatewayView = {
  metrics: async () => "",
  health: async () => [{ part: "gateway", ready: false, reason: "it is starting" }],
  needAttention: async () => 0,
  placedAt: async () => [],
};

function viewOf({ metrics, health, needAttention, placedAt }: Gateway["view"]): GatewayView {
  return {
    metrics: () => accountMetrics(metrics),
    health,
    needAttention,
    placedAt: async (operationId, atMs) =>
      (await placedAt(operationId, atMs)).map(({ element, reading, row, sheet }) => ({
        element: { ...element, data: [] },
        ...{ value: reading.value, version: reading.version ?? element.version ?? null, row, sheet },
      })),
  };
}

async function startInner(
  options: HubOptions,
  { url, inside }: RunningHub,
  accountIds: readonly number[],
  parts: HubParts & { readonly clock: Clock },
): Promise<Inner> {
  const { clock } = parts;
  const { store, files, masterData, mint } = inside;
  if (files === null) throw new Error("the hub has no folder for files");
  const log = parts.log.child({ part: "gateway of the hub" });
  const accountOf = new Map(accountIds.map((id) => [nameOfAccount(id), id]));
  const idOf = (name: string): number => accountOf.get(name) ?? 0;
  let updates: FileUpdates | null = null;
  let outcomes: Outcomes | null = null;
  const started = Promise.withResolvers<Gateway>();
  started.promise.catch(() => undefined); // The caller gets the fault from the start itself.
  const versions = new TriggerVersions(store.fileTriggers, async (accountId) =>
    (await started.promise).readTriggers(nameOfAccount(accountId)),
  );
  const gateway = await startGateway(innerConfig(options, url, accountIds), {
    log,
    clock,
    // Events that come before the updates begin are made up for by their first comparison.
    onEvent: (event: FileEvent) => {
      outcomes?.note(event);
      updates?.note(event);
    },
    inner: {
      // It may have ended between its ledger and the records of the hub.
      onNodeLeft: () => updates?.compareAll(),
      mintOf: (service) => () => mint(idOf(service)),
      zoneTables: zoneTables(store.zones, idOf),
      applyStructure: structureOf(masterData, idOf),
      storedVersions: storedVersions(store.files, (drop) => accountOf.get(drop)),
      hubDrop: (drop) => {
        const accountId = idOf(drop.name);
        return new HubDrop(drop, drop.name, {
          accountId,
          files: store.files,
          blobs: files.blobs,
          triggersInForce: () => versions.inForce(accountId),
          tokenOf: (triggerId) => versions.tokenOf(accountId, triggerId),
          onWaiting: (onFiles) => files.onWaiting(accountId, onFiles),
        });
      },
    },
  }).catch((thrown: unknown) => {
    started.reject(thrown);
    throw thrown;
  });
  started.resolve(gateway);
  const { recorded, reported } = startRecords(gateway, store, accountOf, { clock, log });
  updates = recorded;
  outcomes = reported;
  files.onRemoved((accountId, ids) => cancelRemoved(nameOfAccount(accountId), ids, gateway, log));
  return {
    gateway,
    async takeUp(all) {
      for (const id of all) accountOf.set(nameOfAccount(id), id);
      const { status } = await gateway.exchange(innerConfig(options, url, all));
      if (status !== "exchanged") throw new Error("the gateway of the hub would have to be started again");
    },
    async close() {
      await gateway.drain(GRACE_MS);
      await reported.close();
      await recorded.close();
      await gateway.stop();
    },
  };
}

/** Records at the hub what becomes of files and pushes, from now on. */
function startRecords(
  gateway: Gateway,
  { files, operations }: RunningHub["inside"]["store"],
  accountOf: ReadonlyMap<string, number>,
  means: { readonly clock: Clock; readonly log: HubParts["log"] },
) {
  const { ledger } = gateway;
  const accounts = { accountOf: (drop: string) => accountOf.get(drop), drops: () => [...accountOf.keys()] };
  const recorded = new FileUpdates({ ...accounts, files, ledger, ...means });
  const report = (outcome: Outcome) => gateway.reportOutcome(outcome);
  const reported = new Outcomes({ ...accounts, operations, ledger, report, ...means });
  recorded.start();
  reported.start();
  return { recorded, reported };
}
