/** Parameterised WHERE clauses; lists travel as one JSON parameter, so that their length has no limit. */
import type { SQLInputValue } from "node:sqlite";
import type { FilterEntity, FilterNode } from "../filter.ts";
import type { Page } from "../store.ts";
import type { Statements } from "./database.ts";
import { conditionOf } from "./filter-sql.ts";

type List = readonly (string | number)[] | undefined;

export class Where {
  private readonly clauses: string[] = [];
  readonly values: SQLInputValue[] = [];

  equal(column: string, value: number): this {
    this.clauses.push(`${column} = ?`);
    this.values.push(value);
    return this;
  }

  among(column: string, list: List): this {
    if (list === undefined) return this;
    this.clauses.push(`${column} IN (SELECT value FROM json_each(?))`);
    this.values.push(JSON.stringify(list));
    return this;
  }

  /** For a column that holds a JSON array: any of its values is in the list. */
  sharing(column: string, list: List): this {
    if (list === undefined) return this;
    this.clauses.push(
      `EXISTS (SELECT 1 FROM json_each(${column}) held WHERE held.value IN (SELECT value FROM json_each(?)))`,
    );
    this.values.push(JSON.stringify(list));
    return this;
  }

  /** Expressions over the rows of an entity: all of them hold. */
  holding(entity: FilterEntity, nodes: readonly FilterNode[] | undefined): this {
    for (const node of nodes ?? []) {
      const { sql, values } = conditionOf(node, entity);
      this.clauses.push(sql);
      this.values.push(...values);
    }
    return this;
  }

  get sql(): string {
    return this.clauses.length === 0 ? "" : `WHERE ${this.clauses.join(" AND ")}`;
  }
}

/** Rows of one page and the number of all. */
export function listPage(
  { all, get }: Statements,
  select: { readonly columns: string; readonly from: string; readonly order: string },
  where: Where,
  page: Page,
) {
  const from = `FROM ${select.from} ${where.sql}`;
  const rows = all(
    `SELECT ${select.columns} ${from} ORDER BY ${select.order} LIMIT ? OFFSET ?`,
    ...where.values,
    page.limit ?? -1,
    page.offset,
  );
  const whole = page.limit === null && page.offset === 0;
  const total = whole
    ? rows.length
    : Number(get(`SELECT count(*) AS total ${from}`, ...where.values)?.["total"]);
  return { rows, total };
}
