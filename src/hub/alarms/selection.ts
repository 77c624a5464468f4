/** The variables that a template selects, at a moment. */
import type { AlarmSelection } from "../../wire/index.ts";
import { formsFor } from "../filter/forms.ts";
import { parseFilter } from "../filter/parse.ts";
import { invalidField } from "../http/problems.ts";
import type { FilterNode } from "../store/filter.ts";
import type { HubStore, VariableFacts } from "../store/store.ts";
import { viewNodes } from "../structure/views.ts";

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
  const { rows } = await store.structure.sources(accountId, { ids, siteIds, where }, ALL);
  if (view !== "Site") return rows.map(({ id }) => id);
  const nodes = await viewNodes(store, accountId, viewId, "Site", atMs);
  const sites = await store.structure.sites(accountId, { where: nodes }, ALL);
  const own = new Set(sites.rows.map(({ id }) => id));
  return rows.filter(({ siteId }) => own.has(siteId)).map(({ id }) => id);
}

async function viewOf({ views }: HubStore, accountId: number, viewId: number) {
  const { rows } = await views.list(accountId, { ids: [viewId] }, ALL);
  if (rows[0] === undefined) throw invalidField("selection.viewId", `no view ${viewId} in this account (GET /views)`);
  return rows[0].entityType;
}
