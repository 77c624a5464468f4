/** The variables that a template selects, at a moment. */
import type { AlarmSelection } from "#wire/index.ts";
import { formsFor } from "../filter/forms.ts";
import { parseFilter } from "../filter/parse.ts";
import { invalidField } from "../http/problems.ts";
import type { FilterNode } from "../store/filter.ts";
import type { VariableFacts } from "../store/records.ts";
import type { HubStore } from "../store/store.ts";
import { partsOf, type RowsOf } from "../structure/lists.ts";
import { viewNodes } from "../structure/view-filter.ts";

const ALL = { offset: 0, limit: null };

/** Throws a 400 where the selection names what the account does not have. */
export async function selectedVariables(
  store: HubStore,
  accountId: number,
  selection: AlarmSelection,
  atMs: number,
): Promise<readonly VariableFacts[]> {
  const { variableIds: ids, variableTypeIds, tags } = selection;
  const sourceIds = await selectedSources(store, accountId, selection, atMs);
  return store.points.select(accountId, { ids, variableTypeIds, tags, sourceIds });
}

/** Undefined: any source. */
async function selectedSources(
  store: HubStore,
  accountId: number,
  { sourceIds: ids, siteIds, customFilter, viewId }: AlarmSelection,
  atMs: number,
): Promise<readonly number[] | undefined> {
  if (siteIds === undefined && customFilter === undefined && viewId === undefined) return ids;
  const where: FilterNode[] = [];
  if (customFilter !== undefined) {
    const forms = await formsFor(store, accountId, [customFilter], atMs);
    where.push(parseFilter("selection.customFilter", customFilter, "source", forms));
  }
  const view = viewId === undefined ? undefined : await viewOf(store, accountId, viewId);
  if (view === "Source") where.push(...(await viewNodes(store, accountId, viewId, "Source", atMs)));
  const { sources, sites } = store.structure;
  const selected = await mapped(
    (page) => sources(accountId, { ids, siteIds, where }, page),
    ({ id, siteId }) => ({ id, siteId }),
  );
  if (view !== "Site") return selected.map(({ id }) => id);
  const nodes = await viewNodes(store, accountId, viewId, "Site", atMs);
  const own = new Set(
    await mapped(
      (page) => sites(accountId, { where: nodes }, page),
      ({ id }) => id,
    ),
  );
  return selected.filter(({ siteId }) => own.has(siteId)).map(({ id }) => id);
}

/** Reads a list whose rows may be many and long, and keeps of each what is wanted. */
async function mapped<Row extends { readonly id: number }, Wanted>(
  rows: RowsOf<Row>,
  wantedOf: (row: Row) => Wanted,
): Promise<Wanted[]> {
  const all: Wanted[] = [];
  for await (const part of partsOf(rows, ALL, { keyOf: ({ id }) => id }))
    for (const row of part) all.push(wantedOf(row));
  return all;
}

async function viewOf({ views }: HubStore, accountId: number, viewId: number) {
  const { rows } = await views.list(accountId, { ids: [viewId] }, ALL);
  if (rows[0] === undefined) throw invalidField("selection.viewId", `no view ${viewId} in this account (GET /views)`);
  return rows[0].entityType;
}
