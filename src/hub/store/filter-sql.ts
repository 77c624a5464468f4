/**
 * Compiles filter expressions to parameterised SQL: every value is a parameter (`?`), every column comes from
 * a fixed table. One compiler serves both stores; a `SqlDialect` provides their differences.
 */
import type { FilterEntity, FilterField, FilterNode, FilterOperator, FormFilterField } from "./filter.ts";

export type SqlValue = string | number | boolean | null | Uint8Array | readonly (string | number)[];

export interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export interface SqlDialect {
  /** SQL that tests whether the column is in a list, which is its one parameter. */
  among(column: string): string;
  /** The column, so that no index of it is used: SQLite reads all rows of an account rather than those of a list. */
  unindexed(column: string): string;
  /** An item of FROM: the texts of a JSON array, as `held.value`. */
  labels(column: string): string;
  /** A test of a filter, in a form that ends with the time of its statement. */
  tested(test: string): string;
  /** A text without regard to case, compared by code points. */
  folded(text: string): string;
  /** SQL that tests a text, folded, by its one parameter: a pattern of LIKE, in which `\\` escapes. */
  like(text: string): string;
  /**
   * A value in a JSON document; the one parameter beside those of the document, and behind them, is the result of
   * `formPath`. Null where it is of another type.
   */
  formText(json: string): string;
  /** true and false count as 1 and 0. */
  formNumber(json: string): string;
  /** An item of FROM with the same parameters: the values of a list there, as `itemText` and `itemNumber`. */
  formItems(json: string): string;
  readonly itemText: string;
  readonly itemNumber: string;
  formPath(path: readonly string[]): SqlValue;
}

/** Joins the rows of the other entity to a row of this one. */
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

/** Folds a value as `SqlDialect.folded` folds a column. */
export function foldedText(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** `of` is the entity whose rows are filtered; its table has its own name in the query. */
export function conditionOf(node: FilterNode, of: FilterEntity, dialect: SqlDialect): Condition {
  switch (node.kind) {
    case "and":
    case "or": {
      const parts = node.nodes.map((one) => conditionOf(one, of, dialect));
      return {
        sql: joined(parts, node.kind === "and" ? "AND" : "OR"),
        values: parts.flatMap(({ values }) => values),
      };
    }
    case "not": {
      const { sql, values } = conditionOf(node.node, of, dialect);
      return { sql: `NOT ${sql}`, values };
    }
    case "empty":
      return related(node.field, of, emptyTest(node.field, dialect), dialect);
    case "within":
      return related(node.field, of, withinTest(node, dialect), dialect);
    case "compare":
      return related(node.field, of, comparison(node.field, node.operator, node.value, dialect), dialect);
  }
}

/**
 * Balances the terms as a binary tree: SQLite treats a flat list of a thousand terms as a tree of that depth,
 * and refuses it.
 */
function joined(parts: readonly Condition[], word: "AND" | "OR"): string {
  const half = Math.ceil(parts.length / 2);
  if (parts.length === half) return parts[0]?.sql ?? "";
  return `(${joined(parts.slice(0, half), word)} ${word} ${joined(parts.slice(half), word)})`;
}

function related(field: FilterField, of: FilterEntity, test: Condition, { tested }: SqlDialect): Condition {
  const { entity } = field;
  // Without a value a test is false and its negation true, never SQL's NULL.
  const sql = tested(`coalesce((${test.sql}), false)`);
  const { values } = test;
  if (entity === of) return { sql, values };
  return { sql: `EXISTS (SELECT 1 FROM ${RELATED[of][entity]} AND ${sql})`, values };
}

function columnOf(field: FilterField & { kind: "standard" }): string {
  return `${field.entity}.${field.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}

function emptyTest(field: FilterField, dialect: SqlDialect): Condition {
  if (field.kind === "form") {
    if (!field.isList) return formTest(field, dialect, (text) => ({ sql: `coalesce(${text}, '') = ''`, values: [] }));
    const { sql, values } = formTest(field, dialect, () => ({ sql: "true", values: [] }));
    return { sql: `NOT ${sql}`, values };
  }
  const empty = field.name === "tags" ? "[]" : "";
  return { sql: `coalesce(CAST(${columnOf(field)} AS TEXT), '') = '${empty}'`, values: [] };
}

function withinTest(node: FilterNode & { kind: "within" }, dialect: SqlDialect): Condition {
  const test = (text: string) => {
    const folded = dialect.folded(text);
    return { sql: `${folded} >= ? AND ${folded} < ?`, values: [foldedText(node.from), foldedText(node.until)] };
  };
  if (node.field.kind !== "form") return test(columnOf(node.field));
  // The value stands once in the SQL, since its path is a parameter.
  return formTest(node.field, dialect, (text) => {
    const { sql, values } = test("form_value.text");
    return { sql: `EXISTS (SELECT 1 FROM (SELECT ${text} AS text) AS form_value WHERE ${sql})`, values };
  });
}

/** A test of the value of a form's field, or of one of its values. */
function formTest(
  { entity, path, isList, slice }: FormFilterField,
  { formText, formNumber, formItems, formPath, itemText, itemNumber }: SqlDialect,
  test: (text: string, number: string) => Condition,
): Condition {
  const json =
    slice === null
      ? `${entity}.client_data`
      : `(SELECT attribute_slice.value FROM attribute_slice WHERE attribute_slice.${entity}_id = ${entity}.id
          AND attribute_slice.field_id = ? AND attribute_slice.from_ms <= ?
          ORDER BY attribute_slice.from_ms DESC LIMIT 1)`;
  const place = slice === null ? [formPath(path)] : [slice.fieldId, slice.atMs, formPath([])];
  const { sql, values } = isList ? test(itemText, itemNumber) : test(formText(json), formNumber(json));
  const whole = isList ? `EXISTS (SELECT 1 FROM ${formItems(json)} WHERE ${sql})` : sql;
  return { sql: whole, values: [...place, ...values] };
}

function comparison(
  field: FilterField,
  operator: FilterOperator,
  value: string | number | boolean,
  dialect: SqlDialect,
): Condition {
  const isText = typeof value === "string";
  if (field.kind === "form") {
    return formTest(field, dialect, (text, number) =>
      isText ? textTest(text, operator, value, dialect) : numberTest(number, operator, Number(value)),
    );
  }
  const column = columnOf(field);
  if (field.name === "tags") {
    const { sql, values } = textTest("held.value", operator, String(value), dialect);
    return { sql: `EXISTS (SELECT 1 FROM ${dialect.labels(column)} WHERE ${sql})`, values };
  }
  if (isText) return textTest(column, operator, value, dialect);
  if (typeof value === "boolean") return { sql: `${column} ${operator} ?`, values: [value] };
  return numberTest(column, operator, value);
}

/** A column that contains the text, in any case. */
export function containing(column: string, text: string, dialect: SqlDialect): Condition {
  return textTest(column, "contains", text, dialect);
}

/** An integer column is compared with 1.5 as well. */
function numberTest(column: string, operator: FilterOperator, value: number): Condition {
  return { sql: `${column} ${operator} CAST(? AS DOUBLE PRECISION)`, values: [value] };
}

function textTest(column: string, operator: FilterOperator, value: string, { folded, like }: SqlDialect): Condition {
  const text = foldedText(value);
  const escaped = text.replace(/[\\%_]/g, (mark) => `\\${mark}`);
  switch (operator) {
    case "like":
      // Patterns of clients have no escape.
      return { sql: like(column), values: [text.replaceAll("\\", "\\\\")] };
    case "contains":
      return { sql: like(column), values: [`%${escaped}%`] };
    case "startswith":
      return { sql: like(column), values: [`${escaped}%`] };
    case "endswith":
      return { sql: like(column), values: [`%${escaped}`] };
    default:
      return { sql: `${folded(column)} ${operator} ?`, values: [text] };
  }
}
