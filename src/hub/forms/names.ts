/** Names of forms, groups and fields are found without regard to case, as all names of the service. */
import { foldedText } from "../store/filter-sql.ts";
import type { NewForm, StoredForm } from "../store/forms.ts";

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function sameName(one: string, other: string): boolean {
  return foldedText(one) === foldedText(other);
}

export function named<Item extends { readonly name: string }>(items: readonly Item[], name: string): Item | undefined {
  return items.find((item) => sameName(item.name, name));
}

/** A field with the form and the group that it is in. */
export interface Placed<Form extends NewForm = StoredForm> {
  readonly form: Form;
  readonly group: Form["groups"][number];
  readonly field: Form["groups"][number]["fields"][number];
}

export function placesOf<Form extends NewForm>(form: Form): Placed<Form>[] {
  return form.groups.flatMap((group) => group.fields.map((field) => ({ form, group, field })));
}

/** The name of a field in errors, as bodies and filters have its levels. */
export function pathOf({ form, group, field }: Placed<NewForm>): string {
  return `clientData.${form.name}.${group.name}.${field.name}`;
}

/** Sets a value at its form, group and field. */
export function put(data: Record<string, unknown>, { form, group, field }: Placed<NewForm>, value: unknown): void {
  const groups = ownFields(data, form.name);
  ownFields(groups, group.name)[field.name] = value;
}

function ownFields(data: Record<string, unknown>, name: string): Record<string, unknown> {
  const fields = (Object.hasOwn(data, name) ? (data[name] ?? {}) : {}) as Record<string, unknown>;
  data[name] = fields;
  return fields;
}
