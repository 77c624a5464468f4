/** Forms of an account: definitions of fields that its sites or sources have. */
import type { FormEntity } from "#wire/index.ts";
import { markDue, nowMs, WHOLE_HISTORY } from "./calculated/marks.ts";
import { type Reader, readersOfFields } from "./calculated/readers.ts";
import { change, insert, type Row, rows, type Steps, type StoreDialect, update } from "./database.ts";
import { addChangeEvent, addStructureEvent } from "./events/structure-events.ts";
import { foldedText } from "./filter-sql.ts";
import type { Listing, Page } from "./records.ts";
import { jsonOf } from "./structure-rows.ts";

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

/** Both may throw. */
export interface FormFit {
  /** Brings slices to the new definition, of which null goes; those that stay as they are are left out. */
  refitSlices(
    before: StoredForm,
    after: NewForm | null,
    slices: readonly HeldSlice[],
    ids: KnownIds,
  ): readonly RefitSlice[];
  readonly refit: Refit;
}

export interface FormEdit extends FormFit {
  /** May throw. */
  change(current: StoredForm): NewForm;
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

/** Changes of many values go in slices; all throw `StructureHeld` where the account is held for too long. */
export interface FormStore {
  /** `taken`: the account has a form of this name for the entity, in whatever case. */
  /** Throws `AccountFull` where the account has `most`. */
  create(accountId: number, form: NewForm, fit: FormFit, most: number): Promise<StoredForm | "taken">;
  /** In their display order. */
  list(accountId: number, filter: FormsFilter, page: Page): Promise<Listing<StoredForm>>;
  /** A field that formulas read is not removed: then nothing is changed, as in the next method. */
  change(accountId: number, id: number, edit: FormEdit): Promise<StoredForm | "missing" | "taken" | FieldsInUse>;
  /** With its slices. False when the account has no such form. */
  remove(accountId: number, id: number, fit: FormFit): Promise<boolean | FieldsInUse>;
  /** Finishes the changes that a hub has begun, and no longer continues. `fit`: values that do not fit go. */
  resume(fit: FormFit, signal: AbortSignal): Promise<void>;
}

export interface FieldsInUse {
  /** Calculated variables. */
  readonly users: readonly Reader[];
}

export const fieldIdsOf = ({ groups }: NewForm, isAsked: (field: NewField) => boolean = () => true) =>
  groups.flatMap(({ fields }) => fields.filter(isAsked).map(({ id }) => id)).filter((id) => id !== null);

/** For use inside a write, when the values fit: the form is as it is after the change, or gone. */
export function* finishForm(
  dialect: StoreDialect,
  accountId: number,
  { before, after }: FormDefinitions,
): Steps<StoredForm | null> {
  if (after === null) {
    if (before === null) return null;
    yield* change("DELETE FROM form WHERE id = ?", before.id);
    yield* addStructureEvent(accountId, "removed", { kind: "form", id: before.id, name: before.name });
    return null;
  }
  const columns = formColumns(after);
  const id = before?.id ?? (yield* insert("form", { account_id: accountId, ...columns }));
  if (before !== null) yield* update("form", id, columns);
  yield* putGroups(id, before?.groups ?? [], after.groups);
  const made = yield* ownedForm(dialect, accountId, id);
  if (made === undefined) throw new Error(`the form ${id} is gone`);
  const about = { kind: "form", id, name: made.name } as const;
  if (before === null) yield* addStructureEvent(accountId, "created", about);
  else {
    yield* markReadersOf(dialect, accountId, before);
    yield* addChangeEvent(accountId, before, made, about);
  }
  return made;
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

export function* ownedForm(dialect: StoreDialect, accountId: number, id: number): Steps<StoredForm | undefined> {
  const found = yield* rows("SELECT * FROM form WHERE id = ? AND account_id = ?", id, accountId);
  return (yield* withGroups(dialect, found))[0];
}

/** The form of this name, in whatever case. */
export function* namedForm(
  dialect: StoreDialect,
  accountId: number,
  { entityType, name }: NewForm,
): Steps<StoredForm | undefined> {
  const sql = "SELECT * FROM form WHERE account_id = ? AND entity_type = ? AND name_key = ?";
  return (yield* withGroups(dialect, yield* rows(sql, accountId, entityType, foldedText(name))))[0];
}

export function* withGroups({ among }: StoreDialect, forms: readonly Row[]): Steps<readonly StoredForm[]> {
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

export interface HeldSlice extends SliceValue {
  readonly id: number;
  readonly fieldId: number;
}

/** Ids of the sites and the sources of the account, as far as a form can name them. */
export type KnownIds = Readonly<Record<"site" | "source", ReadonlySet<number>>>;

/** Brings the values of one entity to the new definition; undefined: they stay as they are. May throw. */
export type Refit = (
  before: StoredForm | null,
  after: NewForm | null,
  held: ValuesOf,
  ids: KnownIds,
) => object | undefined;

/** Null: there is none. */
export interface FormDefinitions {
  readonly before: StoredForm | null;
  readonly after: NewForm | null;
}

export interface SliceValue {
  readonly fromMs: number;
  /** Null: no value from then on. */
  readonly value: unknown;
}

/** A site or a source that has values. */
export interface ValuesOf {
  readonly id: number;
  readonly clientData: Readonly<Record<string, unknown>>;
}
