/** Values of time-sliced fields: each holds from its date until the next one of its field begins. */
import { markReaders } from "./calculated/marks.ts";
import { change, type Database, insert, type Row, row, rows, type Steps, update } from "./database.ts";
import {
  ENTITY_TYPES,
  type HeldForms,
  heldForms,
  type Reference,
  requireFewSlices,
  requireReferences,
  zoneOfSource,
} from "./form-values.ts";
import type { HeldSlice, SliceValue } from "./forms.ts";
import { FAR_MS } from "./point-rows.ts";
import type { ValuesEntity } from "./records.ts";
import { writeStructure } from "./structure-hold.ts";
import { jsonOf, text } from "./structure-rows.ts";

export interface NamedSlice extends HeldSlice {
  /** Of the site or the source. */
  readonly entityId: number;
  readonly path: readonly [form: string, group: string, field: string];
}

export type SliceEdit =
  | {
      readonly kind: "add";
      readonly fieldId: number;
      readonly slice: SliceValue;
      readonly references: readonly Reference[];
    }
  | {
      readonly kind: "change";
      readonly id: number;
      readonly slice: SliceValue;
      readonly references: readonly Reference[];
    }
  | { readonly kind: "remove"; readonly id: number }
  /** It is as it should be. */
  | { readonly kind: "keep"; readonly id: number };

/** `values`: those that are not time-sliced. May throw, and then nothing is written. */
export type JudgeSlice = (held: HeldForms, values: Readonly<Record<string, unknown>> | null) => SliceEdit;

export interface SliceStore {
  /** Returns the id of the slice. `missing`: the account has no such site or source. */
  edit(accountId: number, entity: ValuesEntity, id: number, judge: JudgeSlice): Promise<number | "missing">;
  /** Of these sites or sources; those of one field in the order of time. */
  of(accountId: number, entity: ValuesEntity, ids: readonly number[]): Promise<readonly NamedSlice[]>;
}

export function createSliceStore(database: Database): SliceStore {
  const { dialect } = database;
  const { among } = dialect;
  return {
    edit: (accountId, entity, id, judge) =>
      writeStructure(database, accountId, function* (): Steps<number | "missing"> {
        const sql = `SELECT * FROM ${entity} WHERE id = ? AND account_id = ?${dialect.forUpdate(entity)}`;
        const found = yield* row(sql, id, accountId);
        if (found === undefined) return "missing";
        const ownZone = text(found["time_zone_id"]);
        const zone = entity === "site" ? String(ownZone) : yield* zoneOfSource(Number(found["site_id"]), ownZone);
        const held = yield* heldForms(dialect, accountId, entity, id, zone);
        const plain = text(found["client_data"]);
        const edit = judge(held, plain === null ? null : JSON.parse(plain));
        if (edit.kind === "keep") return edit.id;
        yield* markReaders(dialect, accountId, { entity, ids: [id], ...spanOf(edit, held.slices) });
        if (edit.kind === "remove") {
          yield* change("DELETE FROM attribute_slice WHERE id = ?", edit.id);
          return edit.id;
        }
        yield* requireReferences(dialect, accountId, edit.references);
        const { fromMs, value } = edit.slice;
        const columns = { from_ms: fromMs, value: jsonOf(value) };
        if (edit.kind === "change") {
          yield* update("attribute_slice", edit.id, columns);
          return edit.id;
        }
        const place = { account_id: accountId, field_id: edit.fieldId, [`${entity}_id`]: id };
        const added = yield* insert("attribute_slice", { ...place, ...columns });
        yield* requireFewSlices(entity, id);
        return added;
      }),
    of: (accountId, entity, ids) =>
      database.ask(function* (): Steps<readonly NamedSlice[]> {
        // Of few rows, so that long lists without slices cost next to nothing.
        const timeSliced = yield* row(
          `SELECT 1 FROM form JOIN form_group ON form_group.form_id = form.id
            JOIN form_field ON form_field.group_id = form_group.id
            WHERE form.account_id = ? AND form.entity_type = ? AND form_field.time_sliced LIMIT 1`,
          ...[accountId, ENTITY_TYPES[entity]],
        );
        if (timeSliced === undefined) return [];
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

/** The field and the part of time whose value an edit changes. */
function spanOf(edit: Exclude<SliceEdit, { readonly kind: "keep" }>, slices: readonly HeldSlice[]) {
  const own = edit.kind === "add" ? undefined : slices.find((one) => one.id === edit.id);
  const fieldId = edit.kind === "add" ? edit.fieldId : (own?.fieldId ?? 0);
  const dates = [own?.fromMs, edit.kind === "remove" ? undefined : edit.slice.fromMs].filter((at) => at !== undefined);
  const [fromMs, lastMs] = [Math.min(...dates), Math.max(...dates)];
  const next = slices.find((one) => one.fieldId === fieldId && one.fromMs > lastMs);
  return { fieldIds: [fieldId], fromMs, toMs: next === undefined ? FAR_MS : next.fromMs - 1 };
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
