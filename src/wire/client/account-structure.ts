/**
 * The sources and variables of the account, as the read interface shows them: either selected ones, a few dozen
 * identifiers in one GET, or all of them page by page, when that takes fewer calls.
 */
import { RejectedError } from "#core/errors.ts";
import type { PushTarget } from "../push.ts";
import type { Source, SourcesQuery, Variable } from "../structure.ts";
import type { IdentifierKind, SourceIdentifier } from "../target.ts";
import type { Page, ServiceClient } from "./service.ts";

/** The fields of a variable that are kept. */
export type VariableFacts = Pick<
  Variable,
  "id" | "sourceId" | "mappingConfig" | "variableTypeId" | "unitId" | "isVersioned"
>;

/** Sources and variables, for targets of one kind of identifier. */
export interface Structure {
  /** Ids of the sources with this identifier. */
  sourcesOf(kind: SourceIdentifier, value: string | number): readonly number[];
  variablesOf(sourceId: number): readonly VariableFacts[];
  variable(id: number): VariableFacts | undefined;
}

/** Ids in one GET (specification, *Limits*). */
const IDS_PER_CALL = 80;
const ITEMS_PER_PAGE = 2_000;
/** Limit on the pages read from a service that ignores paging or never ends. */
const PAGES_MAX = 2_000;
/** Limit on the sources, and on the variables, of an account that is held in memory as a whole. */
const LISTED_MAX = 50_000;

type NamedSource = Exclude<SourceIdentifier, "sourceId">;

/** The filter for each kind of identifier, and its field in a source. */
const SOURCE_FILTERS: Readonly<
  Record<
    NamedSource,
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
const NAMED_KINDS = Object.keys(SOURCE_FILTERS) as NamedSource[];

/** The sources and variables of these targets. Throws the errors of the client. */
export async function askFor(
  client: ServiceClient,
  kind: IdentifierKind,
  targets: readonly PushTarget[],
  signal: AbortSignal,
): Promise<Structure> {
  const found = new CollectedStructure();
  const values = identifiersOf(kind, targets);
  if (kind === "variableId") {
    await eachVariable(client, "Ids", values as readonly number[], (one) => found.addVariable(one), signal);
    return found;
  }
  let sourceIds = values as readonly number[];
  if (kind !== "sourceId") {
    const ids = new Set<number>();
    for (const some of chunks(values as readonly string[], IDS_PER_CALL)) {
      const query: SourcesQuery = { [SOURCE_FILTERS[kind].filter]: some };
      await eachItem(
        (paging) => client.getSources({ ...query, ...paging }, signal),
        (source) => {
          found.addSource(source);
          ids.add(source.id);
        },
      );
    }
    sourceIds = [...ids];
  }
  await eachVariable(client, "SourceIds", sourceIds, (one) => found.addVariable(one), signal);
  return found;
}

/** The distinct identifiers of targets of one kind. */
export function identifiersOf(kind: IdentifierKind, targets: readonly PushTarget[]): readonly (string | number)[] {
  return [...new Set(targets.map((target) => target[kind]).filter((value) => value !== undefined))];
}

/** The whole account; null when it is too large, or the service does not list it without a filter. */
export async function listAccount(client: ServiceClient, signal: AbortSignal): Promise<Structure | null> {
  const found = new CollectedStructure();
  try {
    await eachItem(
      (paging) => client.getSources(paging, signal),
      (source) => found.addSource(source),
      LISTED_MAX,
    );
    await eachItem(
      (paging) => client.getVariables(paging, signal),
      (variable) => found.addVariable(variable),
      LISTED_MAX,
    );
    return found;
  } catch (thrown) {
    if (thrown instanceof TooManyItems || thrown instanceof RejectedError) return null;
    throw thrown;
  }
}

class TooManyItems extends Error {}

class CollectedStructure implements Structure {
  readonly #sources = new Map<string, number[]>();
  readonly #bySource = new Map<number, VariableFacts[]>();
  readonly #variables = new Map<number, VariableFacts>();

  addSource(source: Source): void {
    for (const kind of NAMED_KINDS) {
      const value = SOURCE_FILTERS[kind].of(source);
      if (typeof value !== "string") continue;
      const key = `${kind} ${value}`;
      const ids = this.#sources.get(key);
      if (ids === undefined) this.#sources.set(key, [source.id]);
      else if (!ids.includes(source.id)) ids.push(source.id);
    }
  }

  addVariable({ id, sourceId, mappingConfig, variableTypeId, unitId, isVersioned }: Variable): void {
    if (this.#variables.has(id)) return;
    const facts = { id, sourceId, mappingConfig, variableTypeId, unitId, isVersioned };
    this.#variables.set(id, facts);
    const others = this.#bySource.get(sourceId);
    if (others === undefined) this.#bySource.set(sourceId, [facts]);
    else others.push(facts);
  }

  sourcesOf(kind: SourceIdentifier, value: string | number): readonly number[] {
    // Filters may match more than the push, which compares values exactly.
    return kind === "sourceId" ? [Number(value)] : (this.#sources.get(`${kind} ${value}`) ?? []);
  }

  variablesOf(sourceId: number): readonly VariableFacts[] {
    return this.#bySource.get(sourceId) ?? [];
  }

  variable(id: number): VariableFacts | undefined {
    return this.#variables.get(id);
  }
}

async function eachVariable(
  client: ServiceClient,
  filter: "Ids" | "SourceIds",
  ids: readonly number[],
  take: (variable: Variable) => void,
  signal: AbortSignal,
): Promise<void> {
  for (const some of chunks(ids, IDS_PER_CALL))
    await eachItem((paging) => client.getVariables({ [filter]: some, ...paging }, signal), take);
}

interface Paging {
  readonly "Paging.PageNumber": number;
  readonly "Paging.ItemsPerPage": number;
  readonly IncludeItemsCount: true;
}

/**
 * Reads pages until the count of the service is reached or a page brings nothing new: the service may serve fewer items
 * a page than requested, report no count, or not support paging here. Throws `TooManyItems` beyond a number of items.
 */
export async function eachItem<Item extends { readonly id: number }>(
  page: (paging: Paging) => Promise<Page<Item>>,
  take: (item: Item) => void,
  max = Number.POSITIVE_INFINITY,
): Promise<void> {
  const seen = new Set<number>();
  for (let number = 0; number < PAGES_MAX; number += 1) {
    const before = seen.size;
    const { items, total } = await page({
      "Paging.PageNumber": number,
      "Paging.ItemsPerPage": ITEMS_PER_PAGE,
      IncludeItemsCount: true,
    });
    for (const item of items) {
      if (seen.has(item.id)) continue;
      seen.add(item.id);
      take(item);
    }
    if (seen.size > max || (total ?? 0) > max) throw new TooManyItems();
    if (seen.size === before || (total !== null && seen.size >= total)) return;
  }
}

function* chunks<Item>(items: readonly Item[], size: number): Generator<Item[]> {
  for (let at = 0; at < items.length; at += size) yield items.slice(at, at + size);
}
