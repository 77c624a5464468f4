/**
 * Which variable a target means, found as the service finds it (platform facts, *Push*): among all sources of that identifier, the first
 * variable with that selector wins, in order of source and variable.
 */
import type { Clock } from "../support/clock.ts";
import type { Page, ServiceClient } from "../wire/client/index.ts";
import {
  type IdentifierKind,
  identifierKind,
  type PushTarget,
  type Source,
  type SourceIdentifier,
  type SourcesQuery,
  targetWords,
  type Variable,
} from "../wire/index.ts";

export interface MeantVariable {
  readonly id: number;
  readonly isVersioned: boolean;
}

/** Ids in one GET (specification, *Limits*). */
const IDS_PER_CALL = 80;
const PAGE_ITEMS = 500;
/** A service that ignores paging, or never ends, is left here. */
const PAGES_MAX = 2000;
const CACHE_MAX = 50_000;
const CACHE_MS = 10 * 60_000;

/** How each kind of identifier is asked for, and read from a source. */
const SOURCE_FILTERS: Readonly<
  Record<
    Exclude<SourceIdentifier, "sourceId">,
    {
      readonly filter: "SerialNumbers" | "Eans" | "Name" | "MeterNumbers";
      readonly of: (source: Source) => string | null | undefined;
    }
  >
> = {
  sourceSerialNumber: { filter: "SerialNumbers", of: (source) => source.serialNumber },
  sourceEan: { filter: "Eans", of: (source) => source.ean },
  sourceName: { filter: "Name", of: (source) => source.name },
  meterNumber: { filter: "MeterNumbers", of: (source) => source.meterNumber },
};

export class TargetResolver {
  readonly #client: ServiceClient;
  readonly #clock: Clock;
  /** By the words of the target. What was not found is asked for again. */
  readonly #known = new Map<string, { readonly variable: MeantVariable; readonly untilMs: number }>();

  constructor(client: ServiceClient, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** By the words of each target; null: no such variable. Errors as of the client. */
  async resolve(
    targets: readonly PushTarget[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, MeantVariable | null>> {
    const found = new Map<string, MeantVariable | null>();
    const asked = new Map<IdentifierKind, PushTarget[]>();
    const nowMs = this.#clock.monotonicMs();
    for (const target of targets) {
      const words = targetWords(target);
      if (found.has(words)) continue;
      const known = this.#known.get(words);
      const fresh = known !== undefined && known.untilMs > nowMs ? known.variable : null;
      found.set(words, fresh);
      const kind = identifierKind(target);
      if (fresh === null && kind !== null) asked.set(kind, [...(asked.get(kind) ?? []), target]);
    }
    for (const [kind, unknown] of asked) {
      const variables = await this.#ask(kind, unknown, signal);
      for (const [words, variable] of variables) {
        found.set(words, variable);
        this.#remember(words, variable, nowMs + CACHE_MS);
      }
    }
    return found;
  }

  async #ask(kind: IdentifierKind, targets: readonly PushTarget[], signal: AbortSignal) {
    const found = new Map<string, MeantVariable>();
    if (kind === "variableId") {
      const variables = await this.#variables("Ids", idsOf(targets, "variableId"), signal);
      for (const target of targets) {
        const variable = variables.find(({ id }) => id === target.variableId);
        if (variable !== undefined) found.set(targetWords(target), meant(variable));
      }
      return found;
    }
    const sourceIds = await this.#sourceIds(kind, targets, signal);
    const bySource = Map.groupBy(
      await this.#variables("SourceIds", [...new Set([...sourceIds.values()].flat())], signal),
      (variable) => variable.sourceId,
    );
    for (const target of targets) {
      const candidates = (sourceIds.get(target[kind] ?? "") ?? [])
        .flatMap((id) => bySource.get(id) ?? [])
        .filter((variable) => selects(target, variable))
        .sort((one, other) => one.sourceId - other.sourceId || one.id - other.id);
      if (candidates[0] !== undefined) found.set(targetWords(target), meant(candidates[0]));
    }
    return found;
  }

  /** Ids of the sources by the value of their identifier. */
  async #sourceIds(kind: SourceIdentifier, targets: readonly PushTarget[], signal: AbortSignal) {
    const found = new Map<string | number, number[]>();
    if (kind === "sourceId") {
      for (const id of idsOf(targets, "sourceId")) found.set(id, [id]);
      return found;
    }
    const { filter, of } = SOURCE_FILTERS[kind];
    const wanted = new Set(targets.map((target) => target[kind]).filter((value) => value !== undefined));
    for (const values of chunks([...wanted], IDS_PER_CALL)) {
      const query: SourcesQuery = { [filter]: values };
      const sources = await allPages((paging) => this.#client.getSources({ ...query, ...paging }, signal));
      for (const source of sources) {
        const value = of(source);
        // Filters may be more generous than the push, which compares values exactly.
        if (typeof value !== "string" || !wanted.has(value)) continue;
        found.set(value, [...(found.get(value) ?? []), source.id]);
      }
    }
    return found;
  }

  async #variables(
    filter: "Ids" | "SourceIds",
    ids: readonly number[],
    signal: AbortSignal,
  ): Promise<Variable[]> {
    const variables: Variable[] = [];
    for (const some of chunks(ids, IDS_PER_CALL))
      variables.push(
        ...(await allPages((paging) => this.#client.getVariables({ [filter]: some, ...paging }, signal))),
      );
    return variables;
  }

  #remember(words: string, variable: MeantVariable, untilMs: number): void {
    this.#known.delete(words);
    this.#known.set(words, { variable, untilMs });
    const oldest = this.#known.keys().next();
    if (this.#known.size > CACHE_MAX && oldest.done !== true) this.#known.delete(oldest.value);
  }
}

function meant(variable: Variable): MeantVariable {
  return { id: variable.id, isVersioned: variable.isVersioned === true };
}

function selects(target: PushTarget, variable: Variable): boolean {
  return (
    (target.mappingConfig === undefined || variable.mappingConfig === target.mappingConfig) &&
    (target.variableTypeId === undefined || variable.variableTypeId === target.variableTypeId)
  );
}

function idsOf(targets: readonly PushTarget[], field: "variableId" | "sourceId"): readonly number[] {
  return [...new Set(targets.map((target) => target[field]).filter((id) => id !== undefined))];
}

function* chunks<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}

/** Until a page brings nothing new: the service may serve fewer items a page than asked for, or know no paging here. */
async function allPages<Item extends { readonly id: number }>(
  page: (paging: { "Paging.PageNumber": number; "Paging.ItemsPerPage": number }) => Promise<Page<Item>>,
): Promise<readonly Item[]> {
  const found = new Map<number, Item>();
  for (let number = 0; number < PAGES_MAX; number += 1) {
    const before = found.size;
    const { items } = await page({ "Paging.PageNumber": number, "Paging.ItemsPerPage": PAGE_ITEMS });
    for (const item of items) found.set(item.id, item);
    if (found.size === before) break;
  }
  return [...found.values()];
}
