/**
 * The expressions of a query: `CustomFilter`, and `OdmSqlFilter`, which accepts the same syntax over the documented
 * model.
 */
import type { FilterEntity, FilterNode } from "../store/filter.ts";
import type { HubStore } from "../store/store.ts";
import { formsFor } from "./forms.ts";
import { parseFilter } from "./parse.ts";

export interface ExpressionQuery {
  readonly CustomFilter?: string | undefined;
  readonly OdmSqlFilter?: string | undefined;
}

/**
 * All of the tests must hold; time-sliced values are those of the moment. Throws a 400 that names the parameter and the
 * position.
 */
export async function expressions(
  store: HubStore,
  accountId: number,
  entity: FilterEntity,
  query: ExpressionQuery,
  atMs: number,
): Promise<FilterNode[]> {
  const forms = await formsFor(store, accountId, [query.CustomFilter, query.OdmSqlFilter], atMs);
  return (["CustomFilter", "OdmSqlFilter"] as const).flatMap((parameter) => {
    const expression = query[parameter];
    return expression === undefined ? [] : [parseFilter(parameter, expression, entity, forms)];
  });
}
