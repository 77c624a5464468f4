/** Fields of forms in expressions: found by the forms of the account, and compared by their types. */
import { FIELD_TYPES } from "#wire/index.ts";
import { named } from "../forms/names.ts";
import { numberOf } from "../forms/read-value.ts";
import type { FilterEntity, FilterField, FilterNode, FilterOperator, FormFilterField } from "../store/filter.ts";
import type { StoredField, StoredForm } from "../store/forms.ts";
import type { HubStore } from "../store/store.ts";
import { readInstant } from "../time.ts";
import type { FieldType } from "./fields.ts";

export interface FilterForms {
  readonly forms: readonly StoredForm[];
  /** The moment at which time-sliced values are compared. */
  readonly atMs: number;
}

export const NO_FORMS: FilterForms = { forms: [], atMs: 0 };

/** Only expressions with a point can name a form. */
export async function formsFor(
  { forms }: HubStore,
  accountId: number,
  texts: readonly (string | undefined)[],
  atMs: number,
): Promise<FilterForms> {
  if (!texts.some((text) => text?.includes("."))) return NO_FORMS;
  return { forms: (await forms.list(accountId, {}, { offset: 0, limit: null })).rows, atMs };
}

type FormEntity = FormFilterField["entity"];
type Path = FormFilterField["path"];

interface FoundField {
  readonly field: FormFilterField;
  /** Null: no form of the account defines it. */
  readonly type: FieldType | null;
}

/**
 * A form of the filtered entity goes before one of the other; `entity` names one. A form that the account does not have
 * is sought as it is written in the values of sources. Why not, as a text, where the form has no such field.
 */
export function formField(
  { forms, atMs }: FilterForms,
  entity: FormEntity | null,
  filtered: FilterEntity,
  path: Path,
): FoundField | string {
  const order: readonly FormEntity[] =
    entity !== null ? [entity] : filtered === "site" ? ["site", "source"] : ["source", "site"];
  const [formName, groupName, fieldName] = path;
  const found = order.flatMap((one) => named(ofEntity(forms, one), formName) ?? []);
  const [form] = found;
  if (form === undefined) {
    const plain = { kind: "form", entity: entity ?? "source", path, isList: false, slice: null } as const;
    return { field: plain, type: null };
  }
  for (const one of found) {
    const group = named(one.groups, groupName);
    const field = group === undefined ? undefined : named(group.fields, fieldName);
    if (group === undefined || field === undefined) continue;
    return {
      field: {
        kind: "form",
        entity: one.entityType === "Site" ? "site" : "source",
        path: [one.name, group.name, field.name],
        isList: field.isList,
        slice: field.timeSliced ? { fieldId: field.id, atMs } : null,
      },
      type: typeOf(field),
    };
  }
  const known = form.groups.flatMap((group) => group.fields.map((field) => `"${group.name}"."${field.name}"`));
  const some = known.slice(0, 10).join(", ");
  return `the form ${form.name} has no field "${groupName}"."${fieldName}"; it has ${some === "" ? "none" : some}`;
}

function ofEntity(forms: readonly StoredForm[], entity: FormEntity): readonly StoredForm[] {
  return forms.filter(({ entityType }) => entityType.toLowerCase() === entity);
}

function typeOf({ type }: StoredField): FieldType {
  if (type === FIELD_TYPES.Number || type === FIELD_TYPES.Reference) return "number";
  if (type === FIELD_TYPES.Boolean) return "boolean";
  return type === FIELD_TYPES.Date ? "date" : "text";
}

/** A literal as a value of the type, quoted or not; the text itself where it is none. */
export function typedValue(type: FieldType, text: string): string | number | boolean {
  if (type === "number") return numberOf(text) ?? text;
  const word = text.toLowerCase();
  return type === "boolean" && (word === "true" || word === "false") ? word === "true" : text;
}

/**
 * A year, a month or a day is the whole of it: `= 2026` holds within, `> 2026` after its end. Dates are kept as texts
 * in the order of time. Null: the text is no date.
 */
export function dateNode(field: FilterField, operator: FilterOperator, text: string): FilterNode | null {
  const bounds = boundsOf(text.trim());
  if (bounds === null) return null;
  const { from, until } = bounds;
  if (operator === "=")
    return until === null ? { kind: "compare", field, operator, value: from } : { kind: "within", field, from, until };
  if (operator === "<" || operator === ">=" || until === null) return { kind: "compare", field, operator, value: from };
  return { kind: "compare", field, operator: operator === ">" ? ">=" : "<", value: until };
}

const PARTIAL_DATE = /^\d{4}(?:-\d{2}(?:-\d{2})?)?$/;

/**
 * A year, a month or a day as a value of a field that is no Date: a text that begins with a date is compared as one,
 * and any other as `plain` says.
 */
export function datedNode(field: FilterField, operator: FilterOperator, text: string, plain: FilterNode): FilterNode {
  const dated = PARTIAL_DATE.test(text) ? dateNode(field, operator, text) : null;
  if (dated === null) return plain;
  const isDate: FilterNode = { kind: "compare", field, operator: "like", value: "____-__-__%" };
  const others: FilterNode = { kind: "and", nodes: [{ kind: "not", node: isDate }, plain] };
  return { kind: "or", nodes: [{ kind: "and", nodes: [isDate, dated] }, others] };
}

/** `until`: null for an instant. */
function boundsOf(text: string): { readonly from: string; readonly until: string | null } | null {
  const [, year, month = "01", day = "01"] = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$/.exec(text) ?? [];
  if (year === undefined) {
    const read = readInstant(text, "UTC", { repeated: "earlier", skipped: "refuse" });
    return read.kind === "refused" ? null : { from: new Date(read.ms).toISOString(), until: null };
  }
  if (readInstant(`${year}-${month}-${day}`, "UTC", { repeated: "earlier", skipped: "refuse" }).kind === "refused")
    return null;
  const [y, m, d] = [Number(year), Number(month) - 1, Number(day)];
  const next = text.length === 4 ? Date.UTC(y + 1, 0) : text.length === 7 ? Date.UTC(y, m + 1) : Date.UTC(y, m, d + 1);
  // After the year 9999 there is none of four digits.
  const until = y === 9_999 && next > Date.UTC(9_999, 11, 31) ? "9999-99" : new Date(next).toISOString();
  return { from: text, until: until.slice(0, text.length === 4 && until !== "9999-99" ? 4 : text.length) };
}
