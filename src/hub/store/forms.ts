/** Forms of an account: definitions of fields that its sites or sources have. */
import type { FormEntity } from "../../wire/index.ts";
import { markDue, nowMs, WHOLE_HISTORY } from "./calculated/marks.ts";
import { type Reader, readersOfFields } from "./calculated/readers.ts";
import {
  change,
  type Database,
  insert,
  type Row,
  row,
  rows,
  type Steps,
  type StoreDialect,
  update,
} from "./database.ts";
import { addChangeEvent, addStructureEvent } from "./events/structure-events.ts";
import { foldedText } from "./filter-sql.ts";
import { type KnownIds, knownIds, type Refit, refitAll } from "./form-refit.ts";
import { type HeldSlice, sliceColumns, sliceOfRow } from "./slice-rows.ts";
import type { Listing, Page } from "./store.ts";
import { jsonOf } from "./structure-rows.ts";
import { Where } from "./where.ts";

export interface NewField {
  /** Null: a new one. */
  readonly id: number | null;
  readonly name: string;
  readonly type: number;
  readonly displayOrder: number;
  readonly isList: boolean;
  readonly required: boolean;
  readonly timeSliced: boolean;
  readonly options: readonly string[] | null;
  readonly referenceTo: number | null;
}
export interface NewGroup {
  /** Null: a new one. */
  readonly id: number | null;
  readonly name: string;
  readonly displayHeader: string | boolean | null;
  readonly displayOrder: number;
  readonly fields: readonly NewField[];
}
export interface NewForm {
  readonly name: string;
  readonly type: number;
  readonly displayOrder: number;
  readonly entityType: FormEntity;
  readonly groups: readonly NewGroup[];
}

export interface StoredField extends NewField {
  readonly id: number;
}
export interface StoredGroup extends NewGroup {
  readonly id: number;
  readonly fields: readonly StoredField[];
}
/** Groups and fields in their display order. */
export interface StoredForm extends NewForm {
  readonly id: number;
  readonly accountId: number;
  readonly groups: readonly StoredGroup[];
}

export interface FormEdit {
  /** May throw, as the next method. */
  change(current: StoredForm): NewForm;
  /** Brings slices to the new definition, of which null goes; those that stay as they are are left out. */
  refitSlices(current: StoredForm, next: NewForm, slices: readonly HeldSlice[], ids: KnownIds): readonly RefitSlice[];
  readonly refit: Refit;
}

export interface RefitSlice {
  readonly id: number;
  readonly value: unknown;
}

interface FormsFilter {
  readonly ids?: readonly number[] | undefined;
  /** In any case. */
  readonly names?: readonly string[] | undefined;
  readonly entityTypes?: readonly FormEntity[] | undefined;
}

export interface FormStore {
  /** `taken`: the account has a form of this name for the entity, in whatever case. */
  create(accountId: number, form: NewForm, refit: Refit): Promise<StoredForm | "taken">;
  /** In their display order. */
  list(accountId: number, filter: FormsFilter, page: Page): Promise<Listing<StoredForm>>;
  /** A field that formulas read is not removed: then nothing is changed, as in the next method. */
  change(accountId: number, id: number, edit: FormEdit): Promise<StoredForm | "missing" | "taken" | FieldsInUse>;
  /** With its slices. False when the account has no such form. */
  remove(accountId: number, id: number, edit: FormEdit): Promise<boolean | FieldsInUse>;
}

export interface FieldsInUse {
  /** Calculated variables. */
  readonly users: readonly Reader[];
}

const FORMS = { columns: "*", from: "form", order: "display_order, id" };

export function createFormStore(database: Database): FormStore {
  const { dialect } = database;
  const holding = <T>(accountId: number, work: () => Steps<T>): Promise<T> =>
    database.write(function* () {
      yield* dialect.holdLane(accountId);
      return yield* work();
    });
  return {
    create: (accountId, form, refit) =>
      holding(accountId, function* (): Steps<StoredForm | "taken"> {
        if (yield* isTaken(accountId, form, null)) return "taken";
        const id = yield* insert("form", { account_id: accountId, ...formColumns(form) });
        yield* putGroups(id, [], form.groups);
        const made = yield* ownedForm(dialect, accountId, id);
        if (made === undefined) throw new Error(`the form ${id} is gone`);
        yield* refitAll(accountId, null, made, refit, yield* knownIds(accountId, made));
        yield* addStructureEvent(accountId, "created", { kind: "form", id, name: made.name });
        return made;
      }),
    list: (accountId, { ids, names, entityTypes }, page) =>
      database.ask(function* (): Steps<Listing<StoredForm>> {
        const where = new Where(dialect)
          .equal("account_id", accountId)
          .among("id", ids)
          .among("name_key", names?.map(foldedText))
          .among("entity_type", entityTypes);
        const listed = yield* dialect.page(FORMS, where, page);
        return { rows: yield* withGroups(dialect, listed.rows), total: listed.total };
      }),
    change: (accountId, id, edit) =>
      holding(accountId, function* (): Steps<StoredForm | "missing" | "taken" | FieldsInUse> {
        const before = yield* ownedForm(dialect, accountId, id);
        if (before === undefined) return "missing";
        const next = edit.change(before);
        if (yield* isTaken(accountId, next, id)) return "taken";
        const users = yield* readersOfFields(dialect, accountId, withoutKept(before, next));
        if (users.length > 0) return { users };
        const ids = yield* knownIds(accountId, next);
        for (const slice of edit.refitSlices(before, next, yield* slicesOf(id), ids))
          if (slice.value === null) yield* change("DELETE FROM attribute_slice WHERE id = ?", slice.id);
          else yield* update("attribute_slice", slice.id, { value: jsonOf(slice.value) });
        yield* update("form", id, formColumns(next));
        yield* putGroups(id, before.groups, next.groups);
        const after = (yield* ownedForm(dialect, accountId, id)) ?? before;
        yield* refitAll(accountId, before, after, edit.refit, ids);
        yield* markReadersOf(dialect, accountId, before);
        yield* addChangeEvent(accountId, before, after, { kind: "form", id, name: after.name });
        return after;
      }),
    remove: (accountId, id, edit) =>
      holding(accountId, function* (): Steps<boolean | FieldsInUse> {
        const before = yield* ownedForm(dialect, accountId, id);
        if (before === undefined) return false;
        const users = yield* readersOfFields(dialect, accountId, fieldIdsOf(before));
        if (users.length > 0) return { users };
        const next = edit.change(before);
        const ids = yield* knownIds(accountId, next);
        edit.refitSlices(before, next, yield* slicesOf(id), ids);
        yield* refitAll(accountId, before, null, edit.refit, ids);
        yield* change("DELETE FROM form WHERE id = ?", id);
        yield* addStructureEvent(accountId, "removed", { kind: "form", id, name: before.name });
        return true;
      }),
  };
}

const fieldIdsOf = ({ groups }: NewForm) =>
  groups.flatMap(({ fields }) => fields.map(({ id }) => id)).filter((id) => id !== null);

/** Ids of the fields that the next definition no longer has. */
function withoutKept(before: StoredForm, next: NewForm): readonly number[] {
  const kept = new Set(fieldIdsOf(next));
  return fieldIdsOf(before).filter((id) => !kept.has(id));
}

/** Values may be others after a change of their fields. */
function* markReadersOf(dialect: StoreDialect, accountId: number, form: StoredForm): Steps<void> {
  const readers = yield* readersOfFields(dialect, accountId, fieldIdsOf(form));
  const whole = { inputId: null, ...WHOLE_HISTORY, cause: "slice" as const };
  const marks = readers.map(({ id: variableId }) => ({ variableId, ...whole }));
  yield* markDue(dialect, accountId, marks, nowMs());
}

/** For use inside a write, which holds the account's lane where the definitions must not change meanwhile. */
export function* formsOf(dialect: StoreDialect, accountId: number, entity: FormEntity): Steps<readonly StoredForm[]> {
  const sql = "SELECT * FROM form WHERE account_id = ? AND entity_type = ? ORDER BY display_order, id";
  const found = yield* rows(sql, accountId, entity);
  return found.length === 0 ? [] : yield* withGroups(dialect, found);
}

function* ownedForm(dialect: StoreDialect, accountId: number, id: number): Steps<StoredForm | undefined> {
  const found = yield* rows("SELECT * FROM form WHERE id = ? AND account_id = ?", id, accountId);
  return (yield* withGroups(dialect, found))[0];
}

function* isTaken(accountId: number, { entityType, name }: NewForm, own: number | null): Steps<boolean> {
  const sql = "SELECT id FROM form WHERE account_id = ? AND entity_type = ? AND name_key = ?";
  const found = yield* row(sql, accountId, entityType, foldedText(name));
  return found !== undefined && Number(found["id"]) !== own;
}

function* slicesOf(formId: number): Steps<readonly HeldSlice[]> {
  const found = yield* rows(
    `SELECT ${sliceColumns} FROM attribute_slice WHERE field_id IN (SELECT form_field.id FROM form_field
      JOIN form_group ON form_group.id = form_field.group_id WHERE form_group.form_id = ?) ORDER BY id`,
    formId,
  );
  return found.map(sliceOfRow);
}

function* withGroups({ among }: StoreDialect, forms: readonly Row[]): Steps<readonly StoredForm[]> {
  const ids = forms.map((one) => Number(one["id"]));
  const groupRows = yield* rows(`SELECT * FROM form_group WHERE ${among("form_id")} ORDER BY display_order, id`, ids);
  const groupIds = groupRows.map((one) => Number(one["id"]));
  const sql = `SELECT * FROM form_field WHERE ${among("group_id")} ORDER BY display_order, id`;
  const fields = Map.groupBy(yield* rows(sql, groupIds), (one) => Number(one["group_id"]));
  const groups = Map.groupBy(groupRows, (one) => Number(one["form_id"]));
  return forms.map((one) => ({
    id: Number(one["id"]),
    accountId: Number(one["account_id"]),
    name: String(one["name"]),
    type: Number(one["type"]),
    displayOrder: Number(one["display_order"]),
    entityType: one["entity_type"] === "Site" ? "Site" : "Source",
    groups: (groups.get(Number(one["id"])) ?? []).map((group) => ({
      id: Number(group["id"]),
      name: String(group["name"]),
      displayHeader: group["display_header"] === null ? null : JSON.parse(String(group["display_header"])),
      displayOrder: Number(group["display_order"]),
      fields: (fields.get(Number(group["id"])) ?? []).map(fieldOf),
    })),
  }));
}

function fieldOf(one: Row): StoredField {
  return {
    id: Number(one["id"]),
    name: String(one["name"]),
    type: Number(one["type"]),
    displayOrder: Number(one["display_order"]),
    isList: Boolean(one["is_list"]),
    required: Boolean(one["required"]),
    timeSliced: Boolean(one["time_sliced"]),
    options: one["options"] === null ? null : JSON.parse(String(one["options"])),
    referenceTo: one["reference_to"] === null ? null : Number(one["reference_to"]),
  };
}

function formColumns({ name, type, displayOrder, entityType }: NewForm) {
  return { name, name_key: foldedText(name), type, display_order: displayOrder, entity_type: entityType };
}

/** Groups and fields that are no longer there go, and the slices of the fields with them. */
function* putGroups(formId: number, former: readonly StoredGroup[], after: readonly NewGroup[]): Steps<void> {
  const keptGroups = new Set(after.map(({ id }) => id));
  const keptFields = new Set(after.flatMap(({ fields }) => fields.map(({ id }) => id)));
  for (const { id, fields } of former) {
    for (const field of fields) if (!keptFields.has(field.id)) yield* remove("form_field", field.id);
    if (!keptGroups.has(id)) yield* remove("form_group", id);
  }
  for (const { id, name, displayHeader, displayOrder, fields } of after) {
    const header = displayHeader === null ? null : jsonOf(displayHeader);
    const columns = { form_id: formId, name, display_header: header, display_order: displayOrder };
    const groupId = id ?? (yield* insert("form_group", columns));
    if (id !== null) yield* update("form_group", id, columns);
    for (const field of fields) {
      const own = { group_id: groupId, ...fieldColumns(field) };
      if (field.id === null) yield* insert("form_field", own);
      else yield* update("form_field", field.id, own);
    }
  }
}

function* remove(table: "form_group" | "form_field", id: number): Steps<void> {
  yield* change(`DELETE FROM ${table} WHERE id = ?`, id);
}

function fieldColumns(field: NewField) {
  return {
    name: field.name,
    type: field.type,
    display_order: field.displayOrder,
    is_list: field.isList,
    required: field.required,
    time_sliced: field.timeSliced,
    options: field.options === null ? null : jsonOf(field.options),
    reference_to: field.referenceTo,
  };
}
