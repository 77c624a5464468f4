/** Values of forms inside a write: definitions and slices of one entity, the slices that it gets, and references. */
import { FIELD_TYPES, FORM_ENTITIES } from "#wire/index.ts";
import { markReaders, WHOLE_HISTORY } from "./calculated/marks.ts";
import { change, type Row, row, rows, type Steps, type StoreDialect, update } from "./database.ts";
import { formsOf, type HeldSlice, type SliceValue, type StoredForm } from "./forms.ts";
import { isOwned } from "./owned.ts";
import type { ValuesEntity } from "./records.ts";
import { jsonOf } from "./structure-rows.ts";

export const sliceColumns = "id, field_id, from_ms, value";

export function sliceOfRow(one: Row): HeldSlice {
  return {
    id: Number(one["id"]),
    fieldId: Number(one["field_id"]),
    fromMs: Number(one["from_ms"]),
    value: JSON.parse(String(one["value"])),
  };
}

/** The definitions for an entity, and what it has. */
export interface HeldForms {
  readonly forms: readonly StoredForm[];
  /** Of one field in the order of time; none of a new entity. */
  readonly slices: readonly HeldSlice[];
  /** In which its dates are read; Windows or IANA. */
  readonly zone: string;
}

export interface Reference {
  readonly table: ValuesEntity;
  readonly id: number;
  /** Thrown where the account has none with this id. */
  readonly missing: Error;
}

export interface ValuePlan {
  /** Values that are not time-sliced. */
  readonly clientData: Record<string, unknown> | undefined;
  /** `all`: instead of those that the field has; otherwise beside them, or in the place of one with its date. */
  readonly slices: readonly {
    readonly fieldId: number;
    readonly all: boolean;
    readonly values: readonly SliceValue[];
  }[];
  readonly references: readonly Reference[];
}

/** May throw, and then nothing is written. */
export type JudgeValues = (held: HeldForms) => ValuePlan;

export const ENTITY_TYPES = { site: "Site", source: "Source" } as const;

/** `id`: null for a new entity, in whose place `zone` is given. */
export function* heldForms(
  dialect: StoreDialect,
  accountId: number,
  entity: ValuesEntity,
  id: number | null,
  zone: string,
): Steps<HeldForms> {
  const forms = yield* formsOf(dialect, accountId, ENTITY_TYPES[entity]);
  if (forms.length === 0 || id === null) return { forms, slices: [], zone };
  const sql = `SELECT ${sliceColumns} FROM attribute_slice WHERE ${entity}_id = ? ORDER BY from_ms`;
  return { forms, slices: (yield* rows(sql, id)).map(sliceOfRow), zone };
}

/** The zone of a source: its own, or that of its site. */
export function* zoneOfSource(siteId: number, own: string | null | undefined): Steps<string> {
  if (own !== null && own !== undefined) return own;
  const site = yield* row("SELECT time_zone_id FROM site WHERE id = ?", siteId);
  return String(site?.["time_zone_id"] ?? "UTC");
}

export function* requireReferences(
  dialect: StoreDialect,
  accountId: number,
  references: readonly Reference[],
): Steps<void> {
  for (const { table, id, missing } of references) if (!(yield* isOwned(dialect, table, id, accountId))) throw missing;
}

/** Null: there are none. */
export function* putValues(
  dialect: StoreDialect,
  accountId: number,
  entity: ValuesEntity,
  id: number,
  plan: ValuePlan | null,
): Steps<void> {
  if (plan === null) return;
  yield* requireReferences(dialect, accountId, plan.references);
  yield* putSlices(accountId, entity, id, plan);
  const fieldIds = plan.slices.map(({ fieldId }) => fieldId);
  if (fieldIds.length > 0) yield* markReaders(dialect, accountId, { entity, ids: [id], fieldIds, ...WHOLE_HISTORY });
}

/** Each edit reads the slices of its entity. */
const SLICES_MAX = 10_000;

/** A site or a source would have more slices than it may have. */
export class SlicesFull extends Error {
  constructor(entity: ValuesEntity, id: number) {
    super(`a ${entity} may have ${SLICES_MAX} slices, and the ${entity} ${id} would have more: remove some`);
  }
}

/** For use inside a write, after the slices are added. Throws `SlicesFull`. */
export function* requireFewSlices(entity: ValuesEntity, id: number): Steps<void> {
  const held = yield* row(`SELECT count(*) AS slices FROM attribute_slice WHERE ${entity}_id = ?`, id);
  if (Number(held?.["slices"]) > SLICES_MAX) throw new SlicesFull(entity, id);
}

export function* putSlices(accountId: number, entity: ValuesEntity, id: number, plan: ValuePlan): Steps<void> {
  for (const { fieldId, all, values } of plan.slices) {
    const own = `DELETE FROM attribute_slice WHERE ${entity}_id = ? AND field_id = ?`;
    if (all) yield* change(own, id, fieldId);
    for (const { fromMs, value } of values) {
      yield* change(`${own} AND from_ms = ?`, id, fieldId, fromMs);
      yield* change(
        `INSERT INTO attribute_slice (account_id, field_id, ${entity}_id, from_ms, value) VALUES (?, ?, ?, ?, ?)`,
        ...[accountId, fieldId, id, fromMs, jsonOf(value)],
      );
    }
  }
  if (plan.slices.length > 0) yield* requireFewSlices(entity, id);
}

/** More ids than these are sought in all values. */
const IDS_IN_FILTER = 20;

/** Values that refer to removed entities go: a slice then has no value. */
export function* clearReferences(
  dialect: StoreDialect,
  accountId: number,
  target: ValuesEntity,
  ids: readonly number[],
): Steps<void> {
  const gone = new Set(ids);
  const filter = ids.length > IDS_IN_FILTER ? [] : ids;
  const mentions = (column: string) =>
    filter.length === 0 ? "" : ` AND (${filter.map(() => `CAST(${column} AS TEXT) LIKE ?`).join(" OR ")})`;
  const patterns = filter.map((id) => `%${id}%`);
  for (const entity of ["site", "source"] as const) {
    const forms = yield* formsOf(dialect, accountId, ENTITY_TYPES[entity]);
    const fields = forms.flatMap((form) =>
      form.groups.flatMap((group) =>
        group.fields
          .filter((field) => field.type === FIELD_TYPES.Reference)
          .filter((field) => field.referenceTo === FORM_ENTITIES[ENTITY_TYPES[target]])
          .map((field) => ({ id: field.id, path: [form.name, group.name, field.name] })),
      ),
    );
    if (fields.length === 0) continue;
    const isHolder = `account_id = ? AND client_data IS NOT NULL${mentions("client_data")}`;
    const plain = yield* rows(`SELECT id, client_data FROM ${entity} WHERE ${isHolder}`, ...[accountId, ...patterns]);
    for (const one of plain) {
      const data = JSON.parse(String(one["client_data"]));
      let isChanged = false;
      for (const { path } of fields) isChanged = clearAt(data, path, gone) || isChanged;
      const left = Object.keys(data).length === 0 ? null : jsonOf(data);
      if (isChanged) yield* update(entity, Number(one["id"]), { client_data: left });
    }
    const slices = yield* rows(
      `SELECT id, value FROM attribute_slice WHERE ${dialect.among("field_id")}${mentions("value")}`,
      ...[fields.map(({ id }) => id), ...patterns],
    );
    for (const one of slices) {
      const value = JSON.parse(String(one["value"]));
      const left = without(value, gone);
      if (left !== value) yield* update("attribute_slice", Number(one["id"]), { value: jsonOf(left) });
    }
  }
}

function without(value: unknown, gone: ReadonlySet<number>): unknown {
  if (!Array.isArray(value)) return gone.has(value as number) ? null : value;
  const left = value.filter((one) => !gone.has(one));
  return left.length === value.length ? value : left.length === 0 ? null : left;
}

/** Returns whether there was such a value; what is empty then goes as well. */
function clearAt(
  data: Record<string, unknown>,
  [name = "", ...rest]: readonly string[],
  gone: ReadonlySet<number>,
): boolean {
  const value = data[name];
  let left: unknown = value;
  let isChanged = false;
  if (rest.length === 0) {
    left = without(value, gone);
    isChanged = left !== value;
  } else if (typeof value === "object" && value !== null) {
    isChanged = clearAt(value as Record<string, unknown>, rest, gone);
    if (Object.keys(value).length === 0) left = null;
  }
  if (isChanged && left === null) delete data[name];
  else if (isChanged) data[name] = left;
  return isChanged;
}

/** The forms of an account with the slices of some sites and sources, for a file of master data. */
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

/** A body whose values are as the plan says. */
export interface ChangedValues<Body> {
  readonly body: Body;
  readonly values: ValuePlan | null;
}
