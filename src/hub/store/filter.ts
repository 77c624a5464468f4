/** Filter expressions for the store: names resolved, values typed, negations explicit. */

export type FilterEntity = "site" | "source" | "variable";

export type FilterField =
  /** `name` is the spelling in the stored record, such as `serialNumber`. */
  { readonly kind: "standard"; readonly entity: FilterEntity; readonly name: string } | FormFilterField;

/** A field of a form, in the `clientData` of its sites or sources. */
export interface FormFilterField {
  readonly kind: "form";
  readonly entity: "site" | "source";
  readonly path: readonly [form: string, group: string, field: string];
  /** A test holds where it does for one of the values. */
  readonly isList: boolean;
  /** Of a time-sliced field: the value that holds at the moment. */
  readonly slice: { readonly fieldId: number; readonly atMs: number } | null;
}

/** Time of one statement of a filter. */
export const FILTER_MS = 10_000;

/** A filter that was not evaluated within its time. */
export class LongFilter extends Error {
  readonly limitMs: number;

  constructor(limitMs: number) {
    super(`the filter took longer than ${limitMs / 1_000} s`);
    this.limitMs = limitMs;
  }
}

export type FilterOperator = "=" | ">" | ">=" | "<" | "<=" | "like" | "contains" | "startswith" | "endswith";

/**
 * A test of a field that has no value is false, and its negation true: `not` is the exact complement, so that
 * every row matches either an expression or its negation. Texts compare without regard to case.
 */
export type FilterNode =
  | { readonly kind: "and" | "or"; readonly nodes: readonly FilterNode[] }
  | { readonly kind: "not"; readonly node: FilterNode }
  | { readonly kind: "empty"; readonly field: FilterField }
  /** A text from one bound to before another, in the order of code points. */
  | { readonly kind: "within"; readonly field: FilterField; readonly from: string; readonly until: string }
  | {
      readonly kind: "compare";
      readonly field: FilterField;
      readonly operator: FilterOperator;
      readonly value: string | number | boolean;
    };
