/** The file triggers of the account, all pages of them (specification, *File trigger endpoints*). */
import { TransientError } from "#core/errors.ts";
import type { ServiceClient } from "./service.ts";

const PATH = "/fileTrigger";
const ITEMS_PER_PAGE = 500;
/** Limit on triggers, of a service that never ends its pages. */
const TRIGGERS_MAX = 20_000;

/**
 * The triggers as they came, of any shape. The specification names no page number for this list, and a service may
 * serve fewer items a page than requested, so that only the count proves that all were read: `TransientError`
 * HG-TRIG-002 when items are missing, or changed meanwhile.
 */
export async function listFileTriggers(client: ServiceClient, signal: AbortSignal): Promise<readonly unknown[]> {
  const found = new Map<string, unknown>();
  let perPage = ITEMS_PER_PAGE;
  for (let number = 0, total: number | null = null; ; ) {
    const before = found.size;
    const page = await client.getItems(PATH, pagingOf(number, perPage), signal);
    // Of a list that moves between two pages, one trigger would be missing and another be there too long.
    if (total !== null && page.total !== null && page.total !== total)
      throw incomplete(client, "the triggers changed while they were listed");
    for (const item of page.items) found.set(keyOf(item), item);
    total = page.total ?? total;
    if (total !== null && found.size >= total) break;
    if (found.size > TRIGGERS_MAX) throw incomplete(client, `there are more than ${TRIGGERS_MAX} triggers`);
    if (found.size > before) {
      number += 1;
      continue;
    }
    // The page brought nothing new.
    const count: number = total ?? (await client.getCount(`${PATH}/count`, signal));
    if (found.size >= count) break;
    if (perPage >= count) throw incomplete(client, `the service has ${count} triggers and lists ${found.size} of them`);
    // The service knows no page numbers here, but may know the size of a page.
    perPage = Math.min(count, TRIGGERS_MAX);
    number = 0;
  }
  return [...found.values()];
}

/** Both spellings of the read interface. */
function pagingOf(number: number, perPage: number) {
  return {
    ItemsPerPage: perPage,
    "Paging.PageNumber": number,
    "Paging.ItemsPerPage": perPage,
    IncludeItemsCount: true,
  };
}

function keyOf(item: unknown): string {
  if (typeof item !== "object" || item === null) return JSON.stringify(item);
  const id: unknown = Object.entries(item).find(([name]) => name.toLowerCase() === "id")?.[1];
  return typeof id === "number" || typeof id === "string" ? `id ${id}` : JSON.stringify(item);
}

function incomplete(client: Pick<ServiceClient, "name">, message: string): TransientError {
  return new TransientError("HG-TRIG-002", { operation: `GET ${PATH}`, subject: client.name, message });
}
