/** Fields of forms that views name: a change of a form can leave a view that finds nothing. */
import type { View } from "#wire/index.ts";
import { tokensOf } from "../filter/tokens.ts";
import type { StoredForm } from "../store/forms.ts";
import type { HubStore } from "../store/store.ts";
import { named } from "./names.ts";

export interface NamedField {
  /** As the expression says it; a source otherwise. */
  readonly entity: "site" | "source";
  readonly path: readonly [form: string, group: string, field: string];
}

const ALL = { offset: 0, limit: null };

/** The fields that an expression names. */
export function fieldsIn(expression: string): readonly NamedField[] {
  const tokens = tokensOf("customFilter", expression);
  const shape = tokens.map(({ kind, text }) => (kind === "quoted" || kind === "text" ? "q" : text === "." ? "." : "x"));
  const found = shape.join("").matchAll(/q\.q\.q/g);
  return Array.from(found, ({ index }) => {
    const [form = "", group = "", field = ""] = [0, 2, 4].map((more) => tokens[index + more]?.text);
    const isOfSite = shape[index - 1] === "." && tokens[index - 2]?.text.toLowerCase() === "site";
    return { entity: isOfSite ? "site" : "source", path: [form, group, field] };
  });
}

function hasField(forms: readonly StoredForm[], { path: [form, group, field] }: NamedField): boolean {
  return forms.some(({ name, groups }) => {
    const found = named([{ name, groups }], form);
    return named(named(found?.groups ?? [], group)?.fields ?? [], field) !== undefined;
  });
}

export interface NamedForms {
  readonly forms: readonly StoredForm[];
  readonly views: readonly View[];
}

export async function namedForms({ forms, views }: HubStore, accountId: number): Promise<NamedForms> {
  const [{ rows }, listed] = await Promise.all([forms.list(accountId, {}, ALL), views.list(accountId, {}, ALL)]);
  return { forms: rows, views: listed.rows.filter(({ customFilter }) => fieldsIn(customFilter).length > 0) };
}

/** Ids of the views that named a field which is gone. */
export function viewsThatLost(before: NamedForms, after: readonly StoredForm[]): readonly number[] {
  const isLost = (field: NamedField) => hasField(before.forms, field) && !hasField(after, field);
  return before.views.filter(({ customFilter }) => fieldsIn(customFilter).some(isLost)).map(({ id }) => id);
}
