/** The filter of a view, where a list names one. */
import type { View } from "#wire/index.ts";
import { type FilterForms, formsFor } from "../filter/forms.ts";
import { parseFilter } from "../filter/parse.ts";
import { fieldsIn } from "../forms/named-by-views.ts";
import { named } from "../forms/names.ts";
import { invalidField } from "../http/problems.ts";
import type { FilterNode } from "../store/filter.ts";
import type { HubStore } from "../store/store.ts";
import { ONE } from "./pages.ts";

/**
 * The selection of a `ViewId`, at a moment. Throws a 400 when the account has no such view, since an unfiltered list
 * would look like the view.
 */
export async function viewNodes(
  store: HubStore,
  accountId: number,
  viewId: number | undefined,
  type: View["entityType"],
  atMs: number,
): Promise<readonly FilterNode[]> {
  if (viewId === undefined) return [];
  const { rows } = await store.views.list(accountId, { ids: [viewId] }, ONE);
  const [found] = rows;
  if (found === undefined) throw invalidField("ViewId", `no view ${viewId} in this account (GET /views)`);
  if (found.entityType !== type)
    throw invalidField("ViewId", `the view ${viewId} selects by ${found.entityType}, not by ${type}`);
  const forms = await formsFor(store, accountId, [found.customFilter], atMs);
  await requireNamed(store, accountId, found, forms);
  return [parseFilter("ViewId", found.customFilter, entityOf(type), forms)];
}

/** Throws a 400 where the view names a form that is not there, and there are no values under its name either. */
export async function requireNamed(
  { structure }: HubStore,
  accountId: number,
  { id, customFilter }: View,
  forms: FilterForms,
): Promise<void> {
  for (const { entity, path } of fieldsIn(customFilter)) {
    if (named(forms.forms, path[0]) !== undefined) continue;
    const field = path.map((level) => `"${level}"`).join(".");
    const where = [parseFilter("ViewId", `${entity}.${field} is not empty`, entity, forms)];
    const list = entity === "site" ? structure.sites : structure.sources;
    if ((await list(accountId, { where }, ONE)).total > 0) continue;
    throw invalidField("ViewId", `the view ${id} names ${field}, which no form and no ${entity} of this account has`);
  }
}

export function entityOf(type: View["entityType"]): "site" | "source" {
  return type === "Site" ? "site" : "source";
}
