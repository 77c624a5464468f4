/**
 * A new, changed or removed form, and the values that the account has of it. A few are brought to the definition with
 * it, in one transaction. Many are judged first, beside all writers, and then written in slices, between which other
 * accounts write. The definition changes with the last slice. Until then `structure_change.held` has what is done, and
 * the place: a hub continues there after a kill, since values that were judged fit whatever happens.
 */
import { randomUUID } from "node:crypto";
import { faultPoint } from "#core/faults.ts";
import { breath } from "#core/turns.ts";
import { FORM_ENTITIES } from "#wire/index.ts";
import { change, type Database, type Row, row, rows, type Steps, type StoreDialect, update } from "./database.ts";
import { sliceColumns, sliceOfRow } from "./form-values.ts";
import {
  type FormDefinitions,
  type FormFit,
  fieldIdsOf,
  finishForm,
  type KnownIds,
  type NewForm,
  namedForm,
  ownedForm,
  type StoredForm,
} from "./forms.ts";
import {
  changesOf,
  heldAccounts,
  heldBy,
  putHeld,
  SLICE_ROWS,
  whileChanging,
  writeSlices,
  writeStructure,
} from "./structure-hold.ts";
import { jsonOf } from "./structure-rows.ts";

/** The last row that was brought to the definition: first slices, of one field after the other, then entities. */
interface Place {
  readonly field: number;
  readonly id: number;
  readonly fromMs: number;
}
const START: Place = { field: 0, id: 0, fromMs: 0 };

interface HeldForm {
  readonly key: string;
  /** Null: a new one. */
  readonly formId: number | null;
  /** Null: it is removed. */
  readonly after: NewForm | null;
  readonly place: Place;
}

interface Fitting extends FormDefinitions {
  readonly accountId: number;
  readonly fit: FormFit;
  readonly ids: KnownIds;
}

export type Planned<Refused> = FormDefinitions | { readonly refused: Refused };
/** Null: a form that was removed. */
export type Ended<Refused> = StoredForm | null | { readonly refused: Refused };

type Begun<Refused> =
  | { readonly ended: Ended<Refused> }
  | { readonly held: HeldForm }
  | { readonly planned: FormDefinitions; readonly changes: number };

/** `plan` is asked again where the structure has changed meanwhile. Throws `StructureHeld`. */
export async function changeForm<Refused>(
  database: Database,
  accountId: number,
  plan: () => Steps<Planned<Refused>>,
  fit: FormFit,
): Promise<Ended<Refused>> {
  const { dialect } = database;
  const begin = (judged: Judged | null) =>
    writeStructure(database, accountId, function* (): Steps<Begun<Refused>> {
      const planned = yield* plan();
      if ("refused" in planned) return { ended: planned };
      const isJudged = judged !== null && judged.changes + 1 === (yield* changesOf(accountId));
      if (isJudged ? judged.isFit : !(yield* hasMany(dialect, accountId, planned))) {
        const fitting = { accountId, ...planned, fit, ids: yield* knownIds(accountId, planned.after) };
        if (!isJudged) yield* fitAll(fitting);
        return { ended: yield* finishForm(dialect, accountId, planned) };
      }
      if (!isJudged) return { planned, changes: yield* changesOf(accountId) };
      const held = { key: randomUUID(), formId: planned.before?.id ?? null, after: planned.after, place: START };
      yield* putHeld(accountId, JSON.stringify(held));
      return { held };
    });
  let judged: Judged | null = null;
  const { ended } = await whileChanging(async () => {
    const begun = await begin(judged);
    if ("ended" in begun) return begun;
    if ("held" in begun) return { ended: await continueForm(database, accountId, begun.held, fit) };
    judged = { changes: begun.changes, isFit: await judgeAll(database, accountId, begun.planned, fit) };
    return null;
  });
  return ended;
}

interface Judged {
  /** Changes of the structure when judging began. */
  readonly changes: number;
  /** All values are as they should be. */
  readonly isFit: boolean;
}

/** The forms that were begun and not finished, by this hub before it ended or by another one, which may continue. */
export async function continueForms(
  database: Database,
  fit: FormFit,
  { signal, isOurs }: { readonly signal: AbortSignal; readonly isOurs: (accountId: number) => boolean },
): Promise<void> {
  // Others are files of master data (`structure-hold.ts`) and removals (`structure-changes.ts`).
  for (const { accountId, held } of await heldAccounts(database))
    if ("place" in held && !isOurs(accountId)) await continueForm(database, accountId, held as HeldForm, fit, signal);
}

/** Slice after slice until the last one; two hubs that do so take turns. */
async function continueForm(
  database: Database,
  accountId: number,
  begun: HeldForm,
  fit: FormFit,
  signal?: AbortSignal,
): Promise<StoredForm | null> {
  const { dialect } = database;
  const ids = await database.ask(() => knownIds(accountId, begun.after));
  const slice = function* (): Steps<{ readonly form: StoredForm | null } | null> {
    yield* dialect.holdLane(accountId);
    const held = yield* heldBy(dialect, accountId, begun);
    // Another hub has finished it.
    if (held === null) return { form: yield* formNow(dialect, accountId, begun) };
    const { after } = held;
    const before = held.formId === null ? null : yield* formNow(dialect, accountId, held);
    const place = yield* fitSome({ accountId, before, after, fit, ids }, held.place);
    yield* putHeld(accountId, place === null ? null : JSON.stringify({ ...held, place }));
    return place === null ? { form: yield* finishForm(dialect, accountId, { before, after }) } : null;
  };
  const done = await writeSlices(database, slice, { signal, between: () => faultPoint("hub.form.slice") });
  return done?.form ?? null;
}

/** Returns whether all values are as they should be. Throws where one does not fit. */
async function judgeAll(database: Database, accountId: number, definitions: FormDefinitions, fit: FormFit) {
  const ids = await database.ask(() => knownIds(accountId, definitions.after));
  const count = { changes: 0 };
  const fitting = { accountId, ...definitions, fit, ids };
  for (let place: Place | null = START; place !== null; await breath()) {
    const from: Place = place;
    place = await database.ask(() => fitSome(fitting, from, count));
  }
  return count.changes === 0;
}

function* fitAll(fitting: Fitting): Steps<void> {
  for (let place: Place | null = START; place !== null; ) place = yield* fitSome(fitting, place);
}

/** Brings the rows behind a place to the definition; returns the next place, null at the end. */
function* fitSome(fitting: Fitting, place: Place, trial?: { changes: number }): Steps<Place | null> {
  const fields = slicedFieldsOf(fitting);
  const fieldId = fields[place.field];
  const found = yield* rowsBehind(fitting, fieldId, place);
  const changes = fieldId === undefined ? fittedEntities(fitting, found) : fittedSlices(fitting, found);
  if (trial !== undefined) trial.changes += changes.length;
  else for (const one of changes) yield* one();
  const last = found.at(-1);
  if (found.length === SLICE_ROWS && last !== undefined)
    return { field: place.field, id: Number(last["entity_id"] ?? last["id"]), fromMs: Number(last["from_ms"] ?? 0) };
  return fieldId === undefined ? null : { ...START, field: place.field + 1 };
}

type Change = () => Steps<unknown>;

function fittedSlices({ before, after, fit, ids }: Fitting, found: readonly Row[]): readonly Change[] {
  if (before === null) return [];
  return fit.refitSlices(before, after, found.map(sliceOfRow), ids).map(
    ({ id, value }) =>
      () =>
        value === null
          ? change("DELETE FROM attribute_slice WHERE id = ?", id)
          : update("attribute_slice", id, { value: jsonOf(value) }),
  );
}

function fittedEntities(fitting: Fitting, found: readonly Row[]): readonly Change[] {
  const { before, after, fit, ids } = fitting;
  return found.flatMap(({ id: rowId, client_data: held }): Change[] => {
    const id = Number(rowId);
    const fitted = fit.refit(before, after, { id, clientData: JSON.parse(String(held)) }, ids);
    if (fitted === undefined) return [];
    const columns = { client_data: Object.keys(fitted).length === 0 ? null : jsonOf(fitted) };
    return [() => update(tableOf(fitting), id, columns)];
  });
}

function rowsBehind(fitting: Fitting, fieldId: number | undefined, { id, fromMs }: Place): Steps<readonly Row[]> {
  const table = tableOf(fitting);
  if (fieldId === undefined)
    return rows(
      `SELECT id, client_data FROM ${table} WHERE account_id = ? AND client_data IS NOT NULL AND id > ?
        ORDER BY id LIMIT ${SLICE_ROWS}`,
      ...[fitting.accountId, id],
    );
  return rows(
    `SELECT ${sliceColumns}, ${table}_id AS entity_id FROM attribute_slice
      WHERE field_id = ? AND (${table}_id, from_ms) > (?, ?) ORDER BY ${table}_id, from_ms LIMIT ${SLICE_ROWS}`,
    ...[fieldId, id, fromMs],
  );
}

function* formNow(
  dialect: StoreDialect,
  accountId: number,
  { formId, after }: Pick<HeldForm, "formId" | "after">,
): Steps<StoredForm | null> {
  if (formId !== null) return (yield* ownedForm(dialect, accountId, formId)) ?? null;
  return after === null ? null : ((yield* namedForm(dialect, accountId, after)) ?? null);
}

const tableOf = ({ before, after }: FormDefinitions) =>
  (after ?? before)?.entityType === "Site" ? ("site" as const) : ("source" as const);

/** Others have no slices. */
const slicedFieldsOf = ({ before }: FormDefinitions) =>
  before === null ? [] : fieldIdsOf(before, ({ timeSliced }) => timeSliced);

function* hasMany({ among }: StoreDialect, accountId: number, definitions: FormDefinitions): Steps<boolean> {
  const own = "account_id = ? AND client_data IS NOT NULL";
  const found = yield* row(
    `SELECT (SELECT count(*) FROM (SELECT 1 FROM ${tableOf(definitions)} WHERE ${own} LIMIT ${SLICE_ROWS}) AS entities)
      + (SELECT count(*) FROM (SELECT 1 FROM attribute_slice WHERE ${among("field_id")} LIMIT ${SLICE_ROWS}) AS slices)
      AS held`,
    ...[accountId, slicedFieldsOf(definitions)],
  );
  return Number(found?.["held"]) >= SLICE_ROWS;
}

function* knownIds(accountId: number, after: NewForm | null): Steps<KnownIds> {
  const targets = (after?.groups ?? []).flatMap(({ fields }) => fields.map(({ referenceTo }) => referenceTo));
  const idsOf = function* (table: "site" | "source", target: number): Steps<ReadonlySet<number>> {
    if (!targets.includes(target)) return new Set();
    return new Set(
      (yield* rows(`SELECT id FROM ${table} WHERE account_id = ?`, accountId)).map(({ id }) => Number(id)),
    );
  };
  return { site: yield* idsOf("site", FORM_ENTITIES.Site), source: yield* idsOf("source", FORM_ENTITIES.Source) };
}
