/**
 * Creates what targets need and the account does not have: site, source, variable, in this order, each only after it was looked for.
 * One `Provisioner` per service; its orders go one after another, so that two files of a new meter make one source.
 */
import type { TargetFacts } from "../model.ts";
import type { Clock } from "../support/clock.ts";
import { RejectedError } from "../support/errors.ts";
import {
  askFor,
  eachItem,
  type HttpTimeouts,
  type ServiceAccess,
  ServiceClient,
  type Structure,
} from "../wire/client/index.ts";
import { type IdentifierKind, identifierKind, type ListedUnit, targetWords } from "../wire/index.ts";
import type { ProvisionTemplate } from "./options.ts";
import { filled, impossible, type ProvisionContext, sourceOf, variableOfTarget } from "./template.ts";

/** Something that was created, or with a dry run would be. */
export interface Creation {
  readonly entity: "site" | "source" | "variable";
  readonly name: string;
  /** Null with a dry run. */
  readonly id: number | null;
  /** The target that needs it, in words. */
  readonly target: string;
  /** What is sent; ids that a dry run cannot know are 0. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Provisioned {
  readonly created: readonly Creation[];
  /** Targets that cannot be created, and why. */
  readonly impossible: readonly string[];
  /**
   * What kept it from going on, for the caller to throw once it told what was created: errors as of the client (`TransientError`,
   * `ConfigError`, HG-PUSH-008 without the right to manage). Null: all targets were seen to.
   */
  readonly error: Error | null;
}

/** Has the work done while nobody else does some under the same key; see `Fleet.alone`. */
export type Alone = <Result>(
  key: string,
  work: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
) => Promise<Result>;

export interface ProvisionOrder {
  readonly targets: readonly TargetFacts[];
  readonly template: ProvisionTemplate;
  readonly context: ProvisionContext;
  readonly dryRun: boolean;
}

/** Of sources that are fed by pushes (specification, *Source*). */
const PUSHED_DATA = "Pushed Data";

export class Provisioner {
  readonly #client: ServiceClient;
  readonly #key: string;
  readonly #alone: Alone;
  #last: Promise<unknown> = Promise.resolve();

  /** `account`: of which service; whoever else provisions there says the same. */
  constructor(client: ServiceClient, account: string, alone: Alone) {
    this.#client = client;
    this.#key = `provision ${account}`;
    this.#alone = alone;
  }

  /** Looks and creates while nobody else does; a dry run only looks. What was created stays, and is found at the next attempt. */
  provision(order: ProvisionOrder, signal: AbortSignal): Promise<Provisioned> {
    const work = (own: AbortSignal) => new Provisioning(this.#client, order, own).run();
    const next = this.#last.then(() => (order.dryRun ? work(signal) : this.#alone(this.#key, work, signal)));
    this.#last = next.catch(() => undefined); // It is told to who ordered.
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
  readonly #order: ProvisionOrder;
  readonly #signal: AbortSignal;
  readonly #created: Creation[] = [];
  readonly #impossible: string[] = [];
  /** Ids by name; 0 for one that a dry run would create. */
  #sites: Map<string, number> | null = null;
  #units: readonly ListedUnit[] | null = null;
  #sourceTypeId: number | null = null;

  constructor(client: ServiceClient, order: ProvisionOrder, signal: AbortSignal) {
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
    return { created: this.#created, impossible: this.#impossible, error };
  }

  async #all(): Promise<void> {
    const byKind = Map.groupBy(this.#order.targets, ({ target }) => identifierKind(target));
    for (const [kind, targets] of byKind) {
      if (kind === null) continue;
      const structure = await askFor(
        this.#client,
        kind,
        targets.map(({ target }) => target),
        this.#signal,
      );
      const bySource = Map.groupBy(targets, ({ target }) => String(target[kind]));
      for (const ofSource of bySource.values()) await this.#source(kind, ofSource, structure);
    }
  }

  /** All targets of one source. */
  async #source(kind: IdentifierKind, targets: readonly TargetFacts[], structure: Structure): Promise<void> {
    const [first] = targets;
    if (first === undefined) return;
    const value = first.target[kind] ?? "";
    try {
      if (kind === "variableId") {
        if (structure.variable(Number(value)) === undefined)
          throw impossible(first, "variableId is an id, which only the service gives");
        return;
      }
      const [known, ...others] = structure.sourcesOf(kind, value);
      if (others.length > 0) throw impossible(first, `several sources have ${kind} ${value}`);
      const sourceId = known ?? (await this.#createSource(first));
      for (const one of targets) await this.#variable(one, sourceId, structure);
    } catch (thrown) {
      if (!(thrown instanceof RejectedError)) throw thrown;
      this.#impossible.push(thrown.message);
    }
  }

  async #variable(facts: TargetFacts, sourceId: number, structure: Structure): Promise<void> {
    const { target } = facts;
    const isThere = structure
      .variablesOf(sourceId)
      .some(
        (one) =>
          (target.mappingConfig === undefined || one.mappingConfig === target.mappingConfig) &&
          (target.variableTypeId === undefined || one.variableTypeId === target.variableTypeId),
      );
    if (isThere) return;
    const { template, context } = this.#order;
    this.#units ??= await this.#client.getUnits(this.#signal);
    const body = { ...variableOfTarget(template, facts, context, this.#units), sourceId };
    await this.#create("variable", body, facts, () => this.#client.postVariable(body, this.#signal));
  }

  async #createSource(facts: TargetFacts): Promise<number> {
    const { template, context } = this.#order;
    const own = sourceOf(template, facts, context);
    const siteId = await this.#siteId(facts);
    const sourceTypeId = template.source.sourceTypeId ?? (await this.#pushedData(facts));
    const body = { ...own, siteId, sourceTypeId };
    return await this.#create(
      "source",
      body,
      facts,
      async () => (await this.#client.postSource(body, this.#signal)).id,
    );
  }

  async #siteId(facts: TargetFacts): Promise<number> {
    const { template, context } = this.#order;
    const name = filled(template.site.name, facts, context);
    this.#sites ??= await this.#siteIds();
    const known = this.#sites.get(name);
    if (known !== undefined) return known;
    const body = { ...template.site, name };
    const id = await this.#create("site", body, facts, () => this.#client.postSite(body, this.#signal));
    this.#sites.set(name, id);
    return id;
  }

  /** Of several of one name the first. */
  async #siteIds(): Promise<Map<string, number>> {
    const ids = new Map<string, number>();
    await eachItem(
      (paging) => this.#client.getSites(paging, this.#signal),
      ({ name, id }) => {
        if (!ids.has(name)) ids.set(name, id);
      },
    );
    return ids;
  }

  async #pushedData(facts: TargetFacts): Promise<number> {
    if (this.#sourceTypeId !== null) return this.#sourceTypeId;
    const types = await this.#client.getNamed("/sourceTypes", this.#signal);
    const found = types.find(({ name }) => name === PUSHED_DATA);
    if (found === undefined)
      throw impossible(
        facts,
        `the service has no source type ${PUSHED_DATA}: name one by source.sourceTypeId`,
      );
    this.#sourceTypeId = found.id;
    return found.id;
  }

  async #create(
    entity: Creation["entity"],
    body: Readonly<Record<string, unknown>> & { readonly name: string },
    { target }: TargetFacts,
    post: () => Promise<number>,
  ): Promise<number> {
    const id = this.#order.dryRun ? null : await post();
    this.#created.push({ entity, name: body.name, id, target: targetWords(target), body });
    return id ?? 0;
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
      return `${names.length} ${entity}${names.length === 1 ? "" : "s"} (${names.slice(0, NAMED_MAX).join(", ")}${more})`;
    })
    .join(", ");
}

const NAMED_MAX = 5;
