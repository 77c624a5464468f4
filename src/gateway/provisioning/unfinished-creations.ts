/** Resolves creations that were begun and have no id: the process ended in between, or the response was lost. */
import { faultPoint } from "#core/faults.ts";
import { eachItem, type ServiceClient } from "#wire/client/index.ts";
import type { Begun, CreationJournal } from "./wanted.ts";

/**
 * Fields that identify a thing; a field that the service has not set is null there, and absent in the body that was
 * sent.
 */
const KNOWN_BY = {
  site: ["name"],
  source: ["siteId", "name", "serialNumber", "ean", "meterNumber"],
  variable: ["sourceId", "name", "mappingConfig", "variableTypeId"],
} as const;

type Item = { readonly id: number } & Readonly<Record<string, unknown>>;

/** Of several matches the newest counts. Throws errors of the client. */
export async function resolveBegun(
  client: ServiceClient,
  journal: CreationJournal,
  signal: AbortSignal,
): Promise<void> {
  for (const begun of journal.open()) {
    const { entity, body } = begun.creation;
    const known = journal.ids(entity);
    let found: number | null = null;
    for (const item of await itemsLike(client, begun, signal))
      if (!known.has(item.id) && KNOWN_BY[entity].every((field) => (item[field] ?? null) === (body[field] ?? null)))
        found = Math.max(found ?? 0, item.id);
    if (found === null) await journal.absent(begun.nth);
    else await journal.created(begun.nth, found, true);
    faultPoint("structure.resolved");
  }
}

async function itemsLike(
  client: ServiceClient,
  { creation: { entity, body } }: Begun,
  signal: AbortSignal,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  const take = (item: Item) => void items.push(item);
  if (entity === "site") await eachItem((paging) => client.getSites(paging, signal), take);
  else if (entity === "source") {
    const query = { SiteIds: [Number(body["siteId"])] };
    await eachItem((paging) => client.getSources({ ...query, ...paging }, signal), take);
  } else {
    const query = { SourceIds: [Number(body["sourceId"])] };
    await eachItem((paging) => client.getVariables({ ...query, ...paging }, signal), take);
  }
  return items;
}
