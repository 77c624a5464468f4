/**
 * Parameterised WHERE clauses (`?`) for either dialect; a list is passed as one parameter, so that its length
 * has no limit.
 */
import type { FilterEntity, FilterNode } from "./filter.ts";
import { type Condition, conditionOf, type SqlDialect, type SqlValue } from "./filter-sql.ts";

type List = readonly (string | number)[] | undefined;

/** Columns whose values alone lead to few rows by an index. */
const KEYS = /^(\w+\.)?(id|source_id)$/;

export class Where {
  private readonly clauses: (string | { readonly equal: string })[] = [];
  private isKeyed = false;
  private readonly dialect: SqlDialect;
  readonly values: SqlValue[] = [];

  constructor(dialect: SqlDialect) {
    this.dialect = dialect;
  }

  equal(column: string, value: number): this {
    this.clauses.push({ equal: column });
    this.values.push(value);
    return this;
  }

  among(column: string, list: List): this {
    if (list === undefined) return this;
    this.clauses.push(this.dialect.among(column));
    this.values.push(list);
    this.isKeyed ||= KEYS.test(column);
    return this;
  }

  /** For a column with a JSON array: any of its values is in the list. */
  sharing(column: string, list: List): this {
    if (list === undefined) return this;
    const { labels, among } = this.dialect;
    this.clauses.push(`EXISTS (SELECT 1 FROM ${labels(column)} WHERE ${among("held.value")})`);
    this.values.push(list);
    return this;
  }

  /** For a column that refers to rows whose `key` is in the list; `select` selects what it refers to. */
  amongRows(column: string, select: string, key: string, list: List): this {
    if (list === undefined) return this;
    return this.condition({ sql: `${column} IN (${select} WHERE ${this.dialect.among(key)})`, values: [list] });
  }

  /** Rows behind that with the key, in an order by the one unique column. */
  behind(order: string, key: number | undefined): this {
    const [column = "", direction = "ASC"] = order.split(" ");
    if (key === undefined) return this;
    return this.condition({ sql: `${column} ${direction === "DESC" ? "<" : ">"} ?`, values: [key] });
  }

  condition({ sql, values }: Condition): this {
    this.clauses.push(sql);
    this.values.push(...values);
    return this;
  }

  /** Expressions over the rows of an entity, all of which must be true. */
  holding(entity: FilterEntity, nodes: readonly FilterNode[] | undefined): this {
    for (const node of nodes ?? []) this.condition(conditionOf(node, entity, this.dialect));
    return this;
  }

  get sql(): string {
    const texts = this.clauses.map((clause) => {
      if (typeof clause === "string") return clause;
      return `${this.isKeyed ? this.dialect.unindexed(clause.equal) : clause.equal} = ?`;
    });
    return texts.length === 0 ? "" : `WHERE ${texts.join(" AND ")}`;
  }
}
