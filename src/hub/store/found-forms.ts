/** The forms of an account with the slices of some sites and sources, for a file of master data. */
import { rows, type Steps, type StoreDialect } from "./database.ts";
import type { ValuesEntity } from "./form-values.ts";
import { formsOf, type StoredForm } from "./forms.ts";
import { type HeldSlice, sliceColumns, sliceOfRow } from "./slice-rows.ts";

export interface FoundForms {
  readonly forms: Readonly<Record<ValuesEntity, readonly StoredForm[]>>;
  /** By the ids of their sites or sources; those of one field in the order of time. */
  readonly slices: Readonly<Record<ValuesEntity, ReadonlyMap<number, readonly HeldSlice[]>>>;
  /** The ids in custom columns that the account has. */
  readonly ids: Readonly<Record<ValuesEntity, ReadonlySet<number>>>;
}

export function* findForms(
  dialect: StoreDialect,
  accountId: number,
  customIds: readonly number[],
  entities: Readonly<Record<ValuesEntity, readonly number[]>>,
): Steps<FoundForms> {
  const forms = {
    site: yield* formsOf(dialect, accountId, "Site"),
    source: yield* formsOf(dialect, accountId, "Source"),
  };
  const own = function* (entity: ValuesEntity) {
    if (forms.site.length + forms.source.length === 0) return { slices: new Map(), ids: new Set<number>() };
    const sql = `SELECT ${entity}_id AS entity_id, ${sliceColumns} FROM attribute_slice
      WHERE ${dialect.among(`${entity}_id`)} ORDER BY from_ms`;
    const slices = Map.groupBy(yield* rows(sql, entities[entity]), (one) => Number(one["entity_id"]));
    const known = `SELECT id FROM ${entity} WHERE account_id = ? AND ${dialect.among("id")}`;
    const ids = (yield* rows(known, accountId, customIds)).map((one) => Number(one["id"]));
    return { slices: new Map([...slices].map(([id, all]) => [id, all.map(sliceOfRow)])), ids: new Set(ids) };
  };
  const [site, source] = [yield* own("site"), yield* own("source")];
  return {
    forms,
    slices: { site: site.slices, source: source.slices },
    ids: { site: site.ids, source: source.ids },
  };
}
