/**
 * Creates the structure that targets need and the account lacks: site, source, variable, in this order, each only
 * after a search for it. One `Provisioner` for each service; its requests run one after another, so that two files of
 * a new meter create one source.
 */
import type { Clock } from "#core/clock.ts";
import { RejectedError } from "#core/errors.ts";
import { faultPoint } from "#core/faults.ts";
import {
  askFor,
  eachItem,
  type HttpTimeouts,
  type ServiceAccess,
  ServiceClient,
  type Structure,
} from "#wire/client/index.ts";
import { QUANTITY_TYPES, TIME_PERIODS, VARIABLE_TYPES } from "#wire/referentials.ts";
import type { Site, Source, Variable } from "#wire/structure.ts";
import { type IdentifierKind, identifierKind } from "#wire/target.ts";
import { type ListedUnit, namesUnit } from "#wire/units.ts";
import { impossible } from "./template.ts";
import { resolveBegun } from "./unfinished-creations.ts";
import type { Creation, CreationJournal, Difference, Entity, Wanted } from "./wanted.ts";

export interface Provisioned {
  readonly created: readonly Creation[];
  /** Targets that cannot be created, and why. */
  readonly impossible: readonly string[];
  /** Existing structure that differs from the stated one; it is left unchanged. */
  readonly differences: readonly Difference[];
  /**
   * The error that stopped the work, for the caller to throw after it reported the creations: an error of the client
   * (`TransientError`, `ConfigError`, HG-PUSH-008 without the right to manage). Null: all targets were handled.
   */
  readonly error: Error | null;
}

/** Runs the work while no other holder of the same key does; see `Fleet.alone`. */
export type Alone = <Result>(
  key: string,
  work: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

export interface ProvisionRequest {
  readonly wanted: readonly Wanted[];
  /** Only searches, and creates nothing. */
  readonly dryRun: boolean;
  /** The journal of creations; null: they will not be undone. */
  readonly journal: CreationJournal | null;
}

const IDS_PER_CALL = 80;

/** Fields that are compared, and those that decide what a value means. */
const FIELDS = {
  site: ["typeId", "timeZoneId", "street", "postalCode", "city", "country"],
  source: ["name", "serialNumber", "ean", "meterNumber", "sourceTypeId", "energyTypeId", "timeZoneId", "description"],
  variable: ["name", "variableTypeId", "granularity", "granularityTimeBase", "quantityType", "isVersioned", "divider"],
} as const;
const WEIGHTY: ReadonlySet<string> = new Set(["timeZoneId", "isVersioned", "unit", "divider"]);

/** The source type of sources that pushes feed (specification, *Source*). */
const PUSHED_DATA = "Pushed Data";

export class Provisioner {
  readonly #client: ServiceClient;
  readonly #key: string;
  readonly #alone: Alone;
  #last: Promise<unknown> = Promise.resolve();

  /** `account`: the account of the service; other provisioners of the same account pass the same value. */
  constructor(client: ServiceClient, account: string, alone: Alone) {
    this.#client = client;
    this.#key = `provision ${account}`;
    this.#alone = alone;
  }

  /**
   * Searches and creates while no other provisioner of the account does; a dry run only searches. Created structure
   * stays, and is found at the next attempt.
   */
  provision(order: ProvisionRequest, signal: AbortSignal): Promise<Provisioned> {
    const work = (own: AbortSignal) => new Provisioning(this.#client, order, own).run();
    const next = this.#last.then(() => (order.dryRun ? work(signal) : this.#alone(this.#key, work, signal)));
    this.#last = next.catch(() => undefined); // The caller of `provision` receives it.
    return next;
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

export function openProvisioner(
  service: ServiceAccess,
  timeouts: HttpTimeouts,
  clock: Clock,
  alone: Alone,
): Provisioner {
  const { base, account, credentials } = service;
  const client = new ServiceClient(service, { connections: 1, timeouts, clock });
  return new Provisioner(client, `${base} ${account ?? `of ${credentials.username}`}`, alone);
}

class Provisioning {
  readonly #client: ServiceClient;
  readonly #order: ProvisionRequest;
  readonly #signal: AbortSignal;
  readonly #created: Creation[] = [];
  readonly #impossible: string[] = [];
  readonly #differences: Difference[] = [];
  readonly #found: Found[] = [];
  #sites: Site[] | null = null;
  /** Ids by name, of the first of several; 0 for a site that a dry run would create. */
  readonly #siteIds = new Map<string, number>();
  #units: readonly ListedUnit[] | null = null;
  #sourceTypeId: number | null = null;

  constructor(client: ServiceClient, order: ProvisionRequest, signal: AbortSignal) {
    this.#client = client;
    this.#order = order;
    this.#signal = signal;
  }

  async run(): Promise<Provisioned> {
    let error: Error | null = null;
    try {
      await this.#all();
    } catch (thrown) {
      if (!(thrown instanceof Error)) throw thrown;
      error = thrown;
    }
    return {
      ...{ created: this.#created, impossible: this.#impossible, differences: this.#differences, error },
    };
  }

  async #all(): Promise<void> {
    const { wanted, journal, dryRun } = this.#order;
    if (journal !== null && !dryRun) await resolveBegun(this.#client, journal, this.#signal);
    const byKind = Map.groupBy(wanted, ({ target }) => identifierKind(target));
    for (const [kind, some] of byKind) {
      if (kind === null) continue;
      const targets = some.map(({ target }) => target);
      const structure = await askFor(this.#client, kind, targets, this.#signal);
      const bySource = Map.groupBy(some, ({ target }) => String(target[kind]));
      for (const ofSource of bySource.values()) await this.#source(kind, ofSource, structure);
    }
    await this.#compare();
  }

  /** All wanted variables of one source. */
  async #source(kind: IdentifierKind, wanted: readonly Wanted[], structure: Structure): Promise<void> {
    const [first] = wanted;
    if (first === undefined) return;
    const value = first.target[kind] ?? "";
    try {
      if (kind === "variableId") {
        if (structure.variable(Number(value)) === undefined)
          throw impossible(first.words, "variableId is an id, which only the service gives");
        return;
      }
      const [known, ...others] = structure.sourcesOf(kind, value);
      if (others.length > 0) throw impossible(first.words, `several sources have ${kind} ${value}`);
      const sourceId = known ?? (await this.#createSource(first));
      for (const one of wanted) await this.#variable(one, sourceId, structure);
    } catch (thrown) {
      if (!(thrown instanceof RejectedError)) throw thrown;
      this.#impossible.push(thrown.message);
    }
  }

  async #variable(wanted: Wanted, sourceId: number, structure: Structure): Promise<void> {
    const { target } = wanted;
    const there = structure
      .variablesOf(sourceId)
      .find(
        (one) =>
          (target.mappingConfig === undefined || one.mappingConfig === target.mappingConfig) &&
          (target.variableTypeId === undefined || one.variableTypeId === target.variableTypeId),
      );
    if (sourceId !== 0) this.#found.push({ wanted, sourceId, variableId: there?.id ?? null });
    if (there !== undefined) return;
    const body = { ...wanted.variable(await this.#listedUnits()), sourceId };
    await this.#create("variable", body, wanted, () => this.#client.postVariable(body, this.#signal));
  }

  async #createSource(wanted: Wanted): Promise<number> {
    const { sourceTypeId, ...own } = wanted.source();
    const siteId = await this.#siteId(wanted);
    const body = { ...own, siteId, sourceTypeId: sourceTypeId ?? (await this.#pushedData(wanted)) };
    return await this.#create(
      "source",
      body,
      wanted,
      async () => (await this.#client.postSource(body, this.#signal)).id,
    );
  }

  async #siteId(wanted: Wanted): Promise<number> {
    await this.#listedSites();
    const body = wanted.site();
    const known = this.#siteIds.get(body.name);
    if (known !== undefined) return known;
    const id = await this.#create("site", body, wanted, () => this.#client.postSite(body, this.#signal));
    this.#siteIds.set(body.name, id);
    return id;
  }

  async #listedSites(): Promise<readonly Site[]> {
    if (this.#sites !== null) return this.#sites;
    const sites: Site[] = [];
    await eachItem(
      (paging) => this.#client.getSites(paging, this.#signal),
      (site) => sites.push(site),
    );
    for (const { name, id } of sites) if (!this.#siteIds.has(name)) this.#siteIds.set(name, id);
    this.#sites = sites;
    return sites;
  }

  async #listedUnits(): Promise<readonly ListedUnit[]> {
    this.#units ??= await this.#client.getUnits(this.#signal);
    return this.#units;
  }

  /** Compares structure that existed before. */
  async #compare(): Promise<void> {
    if (this.#order.wanted.every(({ stated }) => stated === null)) return;
    const facts = {
      client: this.#client,
      units: await this.#listedUnits(),
      sites: await this.#listedSites(),
    };
    const made = new Set(this.#created.map(({ entity, id }) => `${entity} ${id}`));
    const differences = await compareFound(this.#order.wanted, this.#found, facts, this.#signal);
    this.#differences.push(...differences.filter(({ entity, id }) => !made.has(`${entity} ${id}`)));
  }

  async #pushedData({ words }: Wanted): Promise<number> {
    if (this.#sourceTypeId !== null) return this.#sourceTypeId;
    const types = await this.#client.getNamed("/sourceTypes", this.#signal);
    const found = types.find(({ name }) => name === PUSHED_DATA);
    if (found === undefined)
      throw impossible(words, `the service has no source type ${PUSHED_DATA}: name the type of the source`);
    this.#sourceTypeId = found.id;
    return found.id;
  }

  async #create(
    entity: Entity,
    body: Readonly<Record<string, unknown>> & { readonly name: string },
    { words }: Wanted,
    post: () => Promise<number>,
  ): Promise<number> {
    const creation = { entity, name: body.name, id: null, target: words, body };
    if (this.#order.dryRun) {
      this.#created.push(creation);
      return 0;
    }
    const { journal } = this.#order;
    const nth = await journal?.begin(creation);
    faultPoint("structure.begun");
    const id = await post();
    this.#created.push({ ...creation, id });
    faultPoint("structure.created");
    if (nth !== undefined) await journal?.created(nth, id, false);
    return id;
  }
}

/** `1 site (Plant), 2 sources (M-1, M-2), 3 variables (…)` */
export function createdWords(created: readonly Creation[]): string {
  return (["site", "source", "variable"] as const)
    .map((entity) => ({
      entity,
      names: created.filter((one) => one.entity === entity).map(({ name }) => name),
    }))
    .filter(({ names }) => names.length > 0)
    .map(({ entity, names }) => {
      const more = names.length > NAMED_MAX ? ", …" : "";
      return (
        `${names.length} ${entity}${names.length === 1 ? "" : "s"} ` +
        `(${names.slice(0, NAMED_MAX).join(", ")}${more})`
      );
    })
    .join(", ");
}

const NAMED_MAX = 5;

/** A created or planned entity in one line: its fields, and the target that needs it. */
export function creationWords({ entity, name, id, target, body }: Creation): string {
  const { name: _name, ...fields } = body;
  const words = Object.entries(fields).map(
    ([field, value]) => `${field} ${typeof value === "object" ? JSON.stringify(value) : String(value)}`,
  );
  return `${entity} ${name}${id === null ? "" : ` (id ${id})`}: ${words.join(", ")}; for ${target}`;
}

// Finds existing structure that differs from the stated one. Nothing of it is changed.

/** The existing structure of one target. */
interface Found {
  readonly wanted: Wanted;
  readonly sourceId: number;
  /** Null: only the source exists. */
  readonly variableId: number | null;
}

async function compareFound(
  wanted: readonly Wanted[],
  found: readonly Found[],
  { client, units, sites }: { client: ServiceClient; units: readonly ListedUnit[]; sites: readonly Site[] },
  signal: AbortSignal,
): Promise<readonly Difference[]> {
  const stated = found.filter(({ wanted }) => wanted.stated !== null);
  const sources = await byId(
    stated.map(({ sourceId }) => sourceId),
    (Ids, paging) => client.getSources({ Ids, ...paging, DisplayLevel: "Verbose" }, signal),
  );
  const variables = await byId(
    stated.flatMap(({ variableId }) => variableId ?? []),
    (Ids, paging) => client.getVariables({ Ids, ...paging }, signal),
  );
  const differences = new Map<string, Difference>();
  const add = (one: Difference) => {
    const key = `${one.entity} ${one.id} ${one.field} ${one.stated}`;
    if (!differences.has(key)) differences.set(key, one);
  };
  for (const one of wanted) {
    const site = sites.find(({ name }) => name === one.stated?.site.name);
    if (site !== undefined) compareFields("site", one, site, one.stated?.site ?? {}, add);
  }
  for (const { wanted: one, sourceId, variableId } of stated) {
    const source = sources.get(sourceId);
    if (source !== undefined) compareSource(one, source, sites, add);
    const variable = variableId === null ? undefined : variables.get(variableId);
    if (variable !== undefined) compareVariable(one, variable, units, add);
  }
  return [...differences.values()];
}

type Add = (difference: Difference) => void;

function compareSource(wanted: Wanted, source: Source, sites: readonly Site[], add: Add): void {
  const { stated, words } = wanted;
  if (stated === null) return;
  const at = sites.find(({ id }) => id === source.siteId);
  if (at !== undefined && at.name !== stated.site.name)
    add({
      ...{ entity: "source", id: source.id, name: source.name, field: "site", target: words },
      ...{ there: at.name, stated: stated.site.name ?? "", isWeighty: true },
    });
  compareFields("source", wanted, source, stated.source, add);
}

function compareVariable(wanted: Wanted, variable: Variable, units: readonly ListedUnit[], add: Add): void {
  const { stated, words } = wanted;
  if (stated === null) return;
  const unit = units.find(({ id }) => id === variable.unitId);
  if (unit === undefined || !namesUnit(stated.unit, unit))
    add({
      ...{ entity: "variable", id: variable.id, name: variable.name, field: "unit", target: words },
      ...{
        there: unit?.symbol ?? unit?.name ?? `unit ${variable.unitId}`,
        stated: stated.unit,
        isWeighty: true,
      },
    });
  compareFields("variable", wanted, variable, stated.variable, add);
}

/** A field that was not stated may have any value. */
function compareFields(
  entity: Entity,
  { words }: Wanted,
  there: { readonly id: number; readonly name: string } & Readonly<Record<string, unknown>>,
  stated: Readonly<Record<string, unknown>>,
  add: Add,
): void {
  for (const field of FIELDS[entity]) {
    const value = stated[field];
    if (value === undefined || value === (there[field] ?? null)) continue;
    // An unset field in the account means not versioned.
    if (field === "isVersioned" && value === false && (there[field] ?? false) === false) continue;
    add({
      ...{ entity, id: there.id, name: there.name, field, target: words, isWeighty: WEIGHTY.has(field) },
      ...{ there: valueWords(field, there[field]), stated: valueWords(field, value) },
    });
  }
}

function valueWords(field: string, value: unknown): string {
  if (value === undefined || value === null) return "none";
  if (field === "granularityTimeBase") return TIME_PERIODS[String(value)] ?? String(value);
  if (field === "quantityType") return QUANTITY_TYPES[String(value)] ?? String(value);
  if (field === "variableTypeId")
    return `${value} (${VARIABLE_TYPES.find(({ id }) => id === value)?.name ?? "unknown"})`;
  return String(value);
}

type Paging = Parameters<Parameters<typeof eachItem>[0]>[0];

async function byId<Item extends { readonly id: number }>(
  ids: readonly number[],
  page: (ids: number[], paging: Paging) => Promise<{ items: readonly Item[]; total: number | null }>,
): Promise<ReadonlyMap<number, Item>> {
  const found = new Map<number, Item>();
  const distinct = [...new Set(ids)];
  for (let at = 0; at < distinct.length; at += IDS_PER_CALL) {
    const some = distinct.slice(at, at + IDS_PER_CALL);
    await eachItem(
      (paging) => page(some, paging),
      (item) => found.set(item.id, item),
    );
  }
  return found;
}
