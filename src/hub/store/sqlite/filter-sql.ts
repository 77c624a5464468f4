/** Filter expressions as parameterised SQL: every value is a parameter, every column comes from a table of our own. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { FilterEntity, FilterField, FilterNode, FilterOperator } from "../filter.ts";

export interface Condition {
  readonly sql: string;
  readonly values: readonly SQLInputValue[];
}

/** How rows of the other entity belong to a row of this one. */
const RELATED: Readonly<Record<FilterEntity, Partial<Record<FilterEntity, string>>>> = {
  site: {
    source: "source WHERE source.site_id = site.id",
    variable: "variable JOIN source ON source.id = variable.source_id WHERE source.site_id = site.id",
  },
  source: {
    site: "site WHERE site.id = source.site_id",
    variable: "variable WHERE variable.source_id = source.id",
  },
  variable: {
    source: "source WHERE source.id = variable.source_id",
    site: "site JOIN source ON source.site_id = site.id WHERE source.id = variable.source_id",
  },
};

/** Texts compare without regard to case; SQLite alone folds no letters beyond ASCII. */
export function installFolding(database: DatabaseSync): void {
  database.function("folded", { deterministic: true }, (value) =>
    value === null ? null : folded(String(value)),
  );
}

function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** `of` is the entity whose rows are filtered; its table goes by its own name in the query. */
export function conditionOf(node: FilterNode, of: FilterEntity): Condition {
  switch (node.kind) {
    case "and":
    case "or": {
      const parts = node.nodes.map((one) => conditionOf(one, of));
      return {
        sql: `(${parts.map(({ sql }) => sql).join(node.kind === "and" ? " AND " : " OR ")})`,
        values: parts.flatMap(({ values }) => values),
      };
    }
    case "not": {
      const { sql, values } = conditionOf(node.node, of);
      return { sql: `NOT ${sql}`, values };
    }
    case "empty":
      return related(node.field, of, (column) => ({ sql: emptyTest(node.field, column), values: [] }));
    case "compare":
      return related(node.field, of, (column) => comparison(node.field, column, node.operator, node.value));
  }
}

function related(field: FilterField, of: FilterEntity, test: (column: string) => Condition): Condition {
  const entity = field.kind === "form" ? "source" : field.entity;
  const column = columnOf(field);
  const tested = test(column.sql);
  const values = [...column.values, ...tested.values];
  // Without a value a test is false and its negation true: never SQL's third answer.
  const sql = `coalesce((${tested.sql}), 0)`;
  if (entity === of) return { sql, values };
  return { sql: `EXISTS (SELECT 1 FROM ${RELATED[of][entity]} AND ${sql})`, values };
}

/** Every test names its column once, so that the parameters of the column go before its own. */
function columnOf(field: FilterField): Condition {
  if (field.kind === "form")
    return {
      sql: "json_extract(source.client_data, ?)",
      values: [`$${field.path.map((level) => `."${level}"`).join("")}`],
    };
  const column = field.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return { sql: `${field.entity}.${column}`, values: [] };
}

function isLabels(field: FilterField): boolean {
  return field.kind === "standard" && field.name === "tags";
}

function emptyTest(field: FilterField, column: string): string {
  return isLabels(field) ? `${column} = '[]'` : `coalesce(${column}, '') = ''`;
}

function comparison(
  field: FilterField,
  column: string,
  operator: FilterOperator,
  value: string | number | boolean,
): Condition {
  if (isLabels(field)) {
    const { sql, values } = textTest("held.value", operator, String(value));
    return { sql: `EXISTS (SELECT 1 FROM json_each(${column}) held WHERE ${sql})`, values };
  }
  if (typeof value === "string") return textTest(column, operator, value);
  return { sql: `${column} ${operator} ?`, values: [Number(value)] };
}

function textTest(column: string, operator: FilterOperator, value: string): Condition {
  const text = folded(value);
  const escaped = text.replace(/[\\%_]/g, (mark) => `\\${mark}`);
  switch (operator) {
    case "like":
      return { sql: `folded(${column}) LIKE ?`, values: [text] };
    case "contains":
      return { sql: `folded(${column}) LIKE ? ESCAPE '\\'`, values: [`%${escaped}%`] };
    case "startswith":
      return { sql: `folded(${column}) LIKE ? ESCAPE '\\'`, values: [`${escaped}%`] };
    case "endswith":
      return { sql: `folded(${column}) LIKE ? ESCAPE '\\'`, values: [`%${escaped}`] };
    default:
      return { sql: `folded(${column}) ${operator} ?`, values: [text] };
  }
}
