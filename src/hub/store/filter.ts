/** Filter expressions for the store: names resolved, values typed, negations explicit. */

export type FilterEntity = "site" | "source" | "variable";

export type FilterField =
  /** `name` is the spelling in the stored record, such as `serialNumber`. */
  | { readonly kind: "standard"; readonly entity: FilterEntity; readonly name: string }
  /** A field of a form in `clientData`, of sources. */
  | { readonly kind: "form"; readonly path: readonly [form: string, group: string, field: string] };

export type FilterOperator = "=" | ">" | ">=" | "<" | "<=" | "like" | "contains" | "startswith" | "endswith";

/**
 * A test of a field that has no value is false, and its negation true: `not` is the exact complement, so that
 * every row matches either an expression or its negation. Texts compare without regard to case.
 */
export type FilterNode =
  | { readonly kind: "and" | "or"; readonly nodes: readonly FilterNode[] }
  | { readonly kind: "not"; readonly node: FilterNode }
  | { readonly kind: "empty"; readonly field: FilterField }
  | {
      readonly kind: "compare";
      readonly field: FilterField;
      readonly operator: FilterOperator;
      readonly value: string | number | boolean;
    };
