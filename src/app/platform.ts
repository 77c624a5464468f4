/**
 * A hub with a gateway inside it, for the files that the hub itself takes. Neither imports the other: the storage of
 * each account is a drop of the gateway, the triggers of the account are read from the hub, and the readings are pushed
 * to it, all as for a gateway elsewhere.
 */

import { basename } from "node:path/posix";
import { AggregatorRegistry, type Registry } from "prom-client";
import { type Clock, systemClock } from "#core/clock.ts";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import { once, settleEach } from "#core/promises.ts";
import { type FileEvent, type Gateway, type InnerGateway, startGateway } from "#gateway/gateway.ts";
import type { Outcome } from "#gateway/model.ts";
import { CANCELLABLE_STATES } from "#gateway/states.ts";
import type { GatewayView } from "#hub/context.ts";
import { NO_PLACE } from "#hub/gateway-places.ts";
import { type HubParts, type RunningHub, startHub } from "#hub/hub.ts";
import type { MasterData } from "#hub/master-data/service.ts";
import type { HubOptions } from "#hub/options.ts";
import type { SourceZone } from "#hub/store/source-zones.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { FileStore } from "#hub/store/stored-files.ts";
import type { CatalogueEntry, IdZones, MapperCatalogue, TextZones, ZoneTable } from "#mapping/contract.ts";
import { createCatalogue } from "#mapping/workers/catalogue.ts";
import { type Mapping, mapping } from "#wire/file-trigger.ts";
import { FileUpdates } from "./platform/file-updates.ts";
import { entryOf, fileIdOf, HubDrop } from "./platform/hub-drop.ts";
import { innerConfig, nameOfAccount } from "./platform/inner-config.ts";
import { watchAccounts } from "./platform/new-accounts.ts";
import { Outcomes } from "./platform/outcomes.ts";

/** So many rows are read at once. */
const PAGE_ROWS = 10_000;
/** Attempts to read a structure that changes meanwhile. */
const READS_MAX = 3;

/** The folders are read again after so long. */
const KEPT_MS = 5_000;

const ZONE = "timeZone";
const ZONE_DEFAULT = "When left out here: the zone of the source of each reading.";
const BY_ACCOUNTS = ["trigger", "mapper"];
/** Parts of the gateway whose names end with what accounts choose. */
const PART_BY_ACCOUNTS = /^(?:trigger|mapper|lane) /;

/** A run that is being delivered is left to end. */
const ENDED_STATES = CANCELLABLE_STATES.filter((state) => state !== "delivering");

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

// Applies the master data of a hub's files for the gateway inside it.

/** `accountOf`: the account of a drop. */
function structureOf(
  masterData: Pick<MasterData, "apply">,
  accountOf: (drop: string) => number,
): InnerGateway["applyStructure"] {
  return ({ run, drop, path, inputPath, settings }, signal) => {
    const at = path.indexOf("!/");
    const fileName = at === -1 ? basename(path) : path.slice(at + 2);
    const file = { accountId: accountOf(drop), fileId: fileIdOf(path), fileName, path: inputPath, run, settings };
    return masterData.apply(file, signal);
  };
}

// Which stored files there are, for the gateway inside a hub.

/** `accountOf`: the account of a drop. Each account is asked once for all its files. */
export function storedVersions(
  files: Pick<FileStore, "list">,
  accountOf: (drop: string) => number | undefined,
): InnerGateway["storedVersions"] {
  const versionsOf = async (accountId: number, paths: readonly string[]) => {
    const ids = [...new Set(paths.map(fileIdOf))];
    const { rows } = await files.list(accountId, { ids }, { offset: 0, limit: null });
    return new Map(rows.map((record) => [record.id, entryOf(record).mtime]));
  };
  return (asked) => {
    const byAccount = Map.groupBy(asked, ({ drop }) => accountOf(drop));
    const versions = new Map(
      [...byAccount].map(([accountId, own]) => {
        const paths = own.map(({ path }) => path);
        return [accountId, accountId === undefined ? undefined : versionsOf(accountId, paths)];
      }),
    );
    return settleEach(asked, async ({ drop, path }) => {
      const stored = await versions.get(accountOf(drop));
      return stored === undefined ? "no account" : { mtime: stored.get(fileIdOf(path)) ?? null };
    });
  };
}

type Triggers = Pick<HubStore["fileTriggers"], "version" | "list">;

/** Keeps the gateway's triggers of each account as new as those that the hub has saved. */
class TriggerVersions {
  readonly #triggers: Triggers;
  readonly #read: (accountId: number) => Promise<void>;
  /** Versions at which the triggers of accounts were read last. */
  readonly #known = new Map<number, number>();

  /** `read` has the gateway read the triggers of an account, and throws when it cannot. */
  constructor(triggers: Triggers, read: (accountId: number) => Promise<void>) {
    this.#triggers = triggers;
    this.#read = read;
  }

  /** Resolves when every trigger that was saved before the call is in force. */
  async inForce(accountId: number): Promise<void> {
    const version = await this.#triggers.version(accountId);
    if (this.#known.get(accountId) === version) return;
    await this.#read(accountId);
    this.#known.set(accountId, version);
  }

  /** Null when the account has no such trigger, and never had. */
  async tokenOf(accountId: number, triggerId: number): Promise<string | null> {
    const { rows } = await this.#triggers.list(accountId, { ids: [triggerId] }, { offset: 0, limit: 1 });
    return rows[0]?.token ?? null;
  }
}

// Ends the work on stored files that were removed.

/** Does not reject: a run that cannot be cancelled here, such as that of another node, ends before its delivery. */
async function cancelRemoved(
  drop: string,
  ids: readonly number[],
  { ledger, view }: Pick<Gateway, "ledger" | "view">,
  log: Logger,
): Promise<void> {
  const removed = new Set(ids);
  try {
    for (const { id, path } of await ledger.runsIn(ENDED_STATES, { drop })) {
      if (!removed.has(fileIdOf(path))) continue;
      await view
        .cancel(id, "the hub", "the stored file was removed")
        .catch((thrown: unknown) =>
          log.info({ run: id, file: path }, `the run of a removed file is not cancelled yet: ${wordsOf(thrown)}`),
        );
    }
  } catch (thrown) {
    log.warn({ drop, err: thrown }, `runs of removed files are not cancelled yet: ${wordsOf(thrown)}`);
  }
}

// The metrics of the gateway inside a hub, for the hub's own. Accounts choose the names of triggers and mappers, which
// would make series without bound: they are added up by account.

type Metric = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>[number];
type Labels = Metric["values"][number]["labels"];

/** In the text format of Prometheus. */
async function accountMetrics(registry: Registry): Promise<string> {
  const metrics = await registry.getMetricsAsJSON();
  const bounded = metrics.map((metric) => ({
    ...metric,
    aggregator: aggregatorOf(metric.name),
    values: metric.values.map((value) => ({ ...value, labels: boundedLabels(metric.name, value.labels) })),
  }));
  return await AggregatorRegistry.aggregate([bounded]).metrics();
}

/** How several series become one. */
function aggregatorOf(name: string): "min" | "max" | "sum" {
  if (name === "headgate_ready") return "min";
  // Of the histograms, which have the unit in their names, the counts are added up.
  return name.endsWith("_seconds") && !name.endsWith("_duration_seconds") ? "max" : "sum";
}

function boundedLabels(metric: string, labels: Labels): Labels {
  const isPausedTrigger = metric === "headgate_paused" && labels["kind"] === "trigger";
  const kept = Object.entries(labels).filter(
    ([label]) => !BY_ACCOUNTS.includes(label) && !(isPausedTrigger && label === "name"),
  );
  return Object.fromEntries(kept.map(([label, value]) => [label, label === "part" ? partOf(String(value)) : value]));
}

/** Triggers, mappers and lanes count together. */
function partOf(part: string): string {
  return PART_BY_ACCOUNTS.exec(part)?.[0].trim() ?? part;
}

/** The mappers that every account of the hub may name in its triggers. */
function mapperList(catalogue: MapperCatalogue, clock: Clock): () => Promise<readonly Mapping[]> {
  let kept: { readonly list: Promise<readonly Mapping[]>; readonly untilMs: number } | null = null;
  return () => {
    if (kept === null || clock.monotonicMs() >= kept.untilMs)
      kept = { list: read(catalogue), untilMs: clock.monotonicMs() + KEPT_MS };
    return kept.list;
  };
}

async function read(catalogue: MapperCatalogue): Promise<readonly Mapping[]> {
  const entries = await catalogue.list();
  return entries.map(({ identity: { name, version }, summary, ...settings }) =>
    mapping.parse({ name, version, summary, settingsSchema: schemaOf(settings) }),
  );
}

/** The settings of a trigger of the hub, which may leave the zone to the sources. */
function schemaOf({ settingsSchema, sourceZone }: Pick<CatalogueEntry, "settingsSchema" | "sourceZone">): unknown {
  if (!sourceZone) return settingsSchema;
  const { required = [], properties, ...schema } = settingsSchema as ObjectSchema;
  const { [ZONE]: zone, ...others } = properties;
  const described = { ...zone, description: `${zone?.description ?? ""} ${ZONE_DEFAULT}`.trim() };
  return {
    ...schema,
    properties: { ...others, [ZONE]: described },
    required: required.filter((name) => name !== ZONE),
  };
}

interface ObjectSchema {
  readonly required?: readonly string[];
  readonly properties: Readonly<Record<string, { readonly description?: string }>>;
}

// Tables of the zones of the sources of an account, for the gateway inside the hub.

/** `idOf`: the account of a service. */
function zoneTables(zones: HubStore["zones"], idOf: (service: string) => number): InnerGateway["zoneTables"] {
  return {
    version: (service) => zones.version(idOf(service)),
    async text(service) {
      const accountId = idOf(service);
      for (let reads = 1; ; reads += 1) {
        const version = await zones.version(accountId);
        const table = await readTable(zones, accountId);
        if (reads === READS_MAX || (await zones.version(accountId)) === version) return JSON.stringify(table);
      }
    },
  };
}

async function readTable(zones: HubStore["zones"], accountId: number): Promise<ZoneTable> {
  const names = new Positions();
  const zoneOfSource = new Map<number, number>();
  const sources = new Ranges();
  const variables = new Ranges();
  const serialNumbers = new Texts();
  const eans = new Texts();
  const meterNumbers = new Texts();
  const sourceNames = new Texts();
  await eachRow<SourceZone>(
    (afterId) => zones.sources(accountId, afterId, PAGE_ROWS),
    (source) => {
      const zone = names.of(source.zone);
      zoneOfSource.set(source.id, zone);
      sources.add(source.id, zone);
      serialNumbers.add(source.serialNumber, zone);
      eans.add(source.ean, zone);
      meterNumbers.add(source.meterNumber, zone);
      sourceNames.add(source.name, zone);
    },
  );
  await eachRow(
    (afterId) => zones.variables(accountId, afterId, PAGE_ROWS),
    ({ id, sourceId }) => {
      const zone = zoneOfSource.get(sourceId);
      if (zone !== undefined) variables.add(id, zone);
    },
  );
  return {
    zones: names.all,
    ids: { variableId: variables.all, sourceId: sources.all },
    texts: {
      sourceSerialNumber: serialNumbers.all,
      sourceEan: eans.all,
      sourceName: sourceNames.all,
      meterNumber: meterNumbers.all,
    },
  };
}

async function eachRow<Row extends { readonly id: number }>(
  pageAfter: (id: number) => Promise<readonly Row[]>,
  take: (row: Row) => void,
): Promise<void> {
  for (let afterId = 0; ; ) {
    const page = await pageAfter(afterId);
    for (const row of page) take(row);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) return;
    afterId = last.id;
    // The reads of SQLite are synchronous: other work has its turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

class Positions {
  readonly all: string[] = [];
  readonly #known = new Map<string, number>();

  of(name: string): number {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    this.#known.set(name, this.all.length);
    return this.all.push(name) - 1;
  }
}

/** Ids come in their order. */
class Ranges {
  readonly #ranges: [first: number, last: number, zone: number][] = [];

  add(id: number, zone: number): void {
    const latest = this.#ranges.at(-1);
    if (latest?.[1] === id - 1 && latest[2] === zone) latest[1] = id;
    else this.#ranges.push([id, id, zone]);
  }

  get all(): IdZones {
    return this.#ranges;
  }
}

class Texts {
  readonly #zones = new Map<string, Set<number>>();

  add(text: string | null, zone: number): void {
    if (text === null || text === "") return;
    const zones = this.#zones.get(text) ?? new Set();
    this.#zones.set(text, zones.add(zone));
  }

  get all(): readonly TextZones[] {
    return [...this.#zones].map(([text, zones]) => [text, ...zones]);
  }
}
