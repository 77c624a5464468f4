/** Values of time-sliced fields: each holds from its date until the next one of its field begins. */
import { type Database, type Row, rows, type Steps } from "./database.ts";
import type { HeldSlice, ValuesEntity } from "./form-values.ts";

export interface NamedSlice extends HeldSlice {
  /** Of the site or the source. */
  readonly entityId: number;
  readonly path: readonly [form: string, group: string, field: string];
}

export interface SliceStore {
  /** Of these sites or sources; those of one field in the order of time. */
  of(accountId: number, entity: ValuesEntity, ids: readonly number[]): Promise<readonly NamedSlice[]>;
}

export function createSliceStore(database: Database): SliceStore {
  const { among } = database.dialect;
  return {
    of: (accountId, entity, ids) =>
      database.ask(function* (): Steps<readonly NamedSlice[]> {
        const found = yield* rows(
          `SELECT attribute_slice.id, attribute_slice.${entity}_id AS entity_id, attribute_slice.field_id,
            attribute_slice.from_ms, attribute_slice.value,
            form.name AS form_name, form_group.name AS group_name, form_field.name AS field_name
            FROM attribute_slice JOIN form_field ON form_field.id = attribute_slice.field_id
              JOIN form_group ON form_group.id = form_field.group_id JOIN form ON form.id = form_group.form_id
            WHERE attribute_slice.account_id = ? AND ${among(`attribute_slice.${entity}_id`)}
            ORDER BY entity_id, form.display_order, form.id, form_group.display_order, form_group.id,
              form_field.display_order, form_field.id, attribute_slice.from_ms`,
          ...[accountId, ids],
        );
        return found.map(sliceOf);
      }),
  };
}

function sliceOf(one: Row): NamedSlice {
  return {
    id: Number(one["id"]),
    entityId: Number(one["entity_id"]),
    fieldId: Number(one["field_id"]),
    path: [String(one["form_name"]), String(one["group_name"]), String(one["field_name"])],
    fromMs: Number(one["from_ms"]),
    value: JSON.parse(String(one["value"])),
  };
}
