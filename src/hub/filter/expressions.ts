/**
 * The expressions of a query: `CustomFilter`, and `OdmSqlFilter`, which accepts the same syntax over the documented
 * model.
 */
import type { FilterEntity, FilterNode } from "../store/filter.ts";
import { parseFilter } from "./parse.ts";

export interface ExpressionQuery {
  readonly CustomFilter?: string | undefined;
  readonly OdmSqlFilter?: string | undefined;
}

/** All of the tests must hold. Throws a 400 that names the parameter and the position. */
export function expressions(entity: FilterEntity, query: ExpressionQuery): FilterNode[] {
  return (["CustomFilter", "OdmSqlFilter"] as const).flatMap((parameter) => {
    const expression = query[parameter];
    return expression === undefined ? [] : [parseFilter(parameter, expression, entity)];
  });
}
