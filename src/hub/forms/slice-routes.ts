/** Slices of a time-sliced attribute of a site or a source (`docs/hub-choices.md`, *Time-sliced attributes*). */
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import { slice, sliceBody, sliceChange, slicesQuery } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { HeldForms, HeldSlice, ValuesEntity } from "../store/form-values.ts";
import type { JudgeSlice, SliceEdit } from "../store/slices.ts";
import { notFound, ONE, pathId } from "../structure/pages.ts";
import { named, type Placed, pathOf, placesOf, sameName } from "./names.ts";
import { UnfitValue } from "./read-value.ts";
import { momentOf } from "./shown.ts";
import { shownSlices } from "./slices.ts";
import { readSlice, referencesOf } from "./values.ts";

interface OfField {
  Params: { id: string; formName: string; groupName: string; fieldName: string };
}
interface OfSlice {
  Params: OfField["Params"] & { sliceId: string };
}

/** Of fields that are not time-sliced. */
type Values = Readonly<Record<string, unknown>>;

const TAG = "Time-sliced attributes";

function optionsOf(entity: ValuesEntity) {
  const words = `a time-sliced attribute of a ${entity}`;
  return {
    list: described({
      access: "read",
      tag: TAG,
      summary: `Slices of ${words}`,
      query: slicesQuery,
      answer: z.array(slice),
    }),
    add: described({ access: "manage", tag: TAG, summary: `Adds a slice to ${words}`, body: sliceBody, answer: slice }),
    change: described({
      access: "manage",
      tag: TAG,
      summary: `Changes a slice of ${words}`,
      body: sliceChange,
      answer: slice,
    }),
    remove: described({ access: "manage", tag: TAG, summary: `Removes a slice of ${words}`, status: 204 }),
  };
}

export function sliceRoutes(app: FastifyInstance, context: HubContext): void {
  for (const entity of ["site", "source"] as const) {
    const path = `/${entity}s/:id/attributes/:formName/:groupName/:fieldName/slices`;
    const options = optionsOf(entity);
    const edit = (request: FastifyRequest<OfField>, judge: JudgeSlice) => edited(context, entity, request, judge);
    app.get<OfField>(path, options.list, async (request) => {
      const asked = parsed(slicesQuery, request.query);
      const all = await slicesOf(context, entity, request);
      if (asked.AsOf === undefined) return all;
      const atMs = momentOf(context, asked);
      return all.filter(({ EffectiveDate }) => Date.parse(EffectiveDate) <= atMs).slice(-1);
    });
    app.post<OfField>(path, options.add, async (request) =>
      edit(request, (held, values) => added(request, held, values, entity)),
    );
    app.put<OfSlice>(`${path}/:sliceId`, options.change, async (request) =>
      edit(request, (held, values) => changed(request, held, values, entity)),
    );
    app.delete<OfSlice>(`${path}/:sliceId`, options.remove, async (request, reply) => {
      await edit(request, (held, values) => removed(request, held, values, entity));
      return reply.code(204).send();
    });
  }
}

/** The slice that an edit leaves; undefined: none. */
async function edited(
  { store }: HubContext,
  entity: ValuesEntity,
  request: FastifyRequest<OfField>,
  judge: JudgeSlice,
) {
  const { accountId } = callerOf(request);
  const { id } = request.params;
  const sliceId = await store.slices.edit(accountId, entity, pathId(id), judge);
  if (sliceId === "missing") throw notFound(entity, id);
  const all = await store.slices.of(accountId, entity, [pathId(id)]);
  const fieldId = all.find((one) => one.id === sliceId)?.fieldId;
  return listed(all.filter((one) => one.fieldId === fieldId)).find((one) => one.id === sliceId);
}

async function slicesOf({ store }: HubContext, entity: ValuesEntity, request: FastifyRequest<OfField>) {
  const { accountId } = callerOf(request);
  const id = pathId(request.params.id);
  const { structure, forms, slices } = store;
  const list = entity === "site" ? structure.sites : structure.sources;
  const { total } = await list(accountId, { ids: [id] }, ONE);
  if (total === 0) throw notFound(entity, request.params.id);
  const entityTypes = [entity === "site" ? "Site" : "Source"] as const;
  const { rows } = await forms.list(accountId, { entityTypes }, { offset: 0, limit: null });
  const { field } = placeOf(rows, request.params, entity);
  return listed((await slices.of(accountId, entity, [id])).filter(({ fieldId }) => fieldId === field.id));
}

function listed(slices: readonly HeldSlice[]) {
  return shownSlices(slices).map((shown, at) => ({ id: slices[at]?.id ?? 0, ...shown }));
}

/** Throws where the account has no such field, or one that is not time-sliced. */
function placeOf(
  forms: HeldForms["forms"],
  { formName, groupName, fieldName }: OfField["Params"],
  entity: string,
): Placed {
  const form = named(forms, formName);
  const place =
    form === undefined
      ? undefined
      : placesOf(form).find(({ group, field }) => sameName(group.name, groupName) && sameName(field.name, fieldName));
  if (place === undefined)
    throw new HttpProblem(
      404,
      "not-found",
      `no form of ${entity}s in this account has ${formName}.${groupName}.${fieldName}`,
    );
  if (!place.field.timeSliced)
    throw invalidField("fieldName", `${place.field.name} is not time-sliced: it is set by PUT /${entity}s/{id}`);
  return place;
}

function heldOf({ slices }: HeldForms, { field }: Placed): readonly HeldSlice[] {
  return slices.filter(({ fieldId }) => fieldId === field.id);
}

function added(
  { body, params }: FastifyRequest<OfField>,
  held: HeldForms,
  values: Values | null,
  entity: ValuesEntity,
): SliceEdit {
  const place = placeOf(held.forms, params, entity);
  const given = named(parametersOf(body), "Value");
  if (given === undefined) throw invalidField("Value", "is missing; null means no value from then on");
  const { value, fromMs } = readOr400(() => readSlice(place, fieldsOf(body), held.zone));
  const same = heldOf(held, place).find((one) => one.fromMs === fromMs);
  // A repeat of the same call changes nothing.
  if (same !== undefined && JSON.stringify(same.value) === JSON.stringify(value)) return { kind: "keep", id: same.id };
  if (same !== undefined) throw taken(same);
  if (value !== null) requireOthers(held, place, values, entity);
  const references = referencesOf(place, value);
  return { kind: "add", fieldId: place.field.id, slice: { fromMs, value }, references };
}

/** The first value of a form comes together with those that it requires. */
function requireOthers(held: HeldForms, { form, field }: Placed, values: Values | null, entity: ValuesEntity): void {
  const places = placesOf(form);
  const hasValues =
    values?.[form.name] !== undefined ||
    places.some((place) => heldOf(held, place).some(({ value }) => value !== null));
  const missing = places.find((place) => place.field.required && place.field.id !== field.id);
  if (hasValues || missing === undefined) return;
  throw invalidField(
    pathOf(missing),
    `is required where the form ${form.name} has values: set it by PUT /${entity}s/{id} first, or both there`,
  );
}

function changed(
  { body, params }: FastifyRequest<OfSlice>,
  held: HeldForms,
  values: Values | null,
  entity: ValuesEntity,
): SliceEdit {
  const place = placeOf(held.forms, params, entity);
  const current = ownSlice(held, place, params.sliceId);
  const names = parametersOf(body);
  const isDated = named(names, "FromDate") !== undefined || named(names, "EffectiveDate") !== undefined;
  const isValued = named(names, "Value") !== undefined;
  if (!isDated && !isValued) throw invalidRequest("the body must have FromDate, Value or both");
  const date = new Date(current.fromMs).toISOString();
  const given = { ...(isDated ? {} : { FromDate: date }), ...fieldsOf(body) };
  const read = readOr400(() => readSlice(place, given, held.zone));
  const { fromMs } = read;
  const same = heldOf(held, place).find((one) => one.fromMs === fromMs && one.id !== current.id);
  if (same !== undefined) throw taken(same);
  if (!isValued) return { kind: "change", id: current.id, slice: { fromMs, value: current.value }, references: [] };
  if (read.value === null) requireKept(held, place, values, current.id);
  const slice = { fromMs, value: read.value };
  return { kind: "change", id: current.id, slice, references: referencesOf(place, read.value) };
}

function removed(
  { params }: FastifyRequest<OfSlice>,
  held: HeldForms,
  values: Values | null,
  entity: ValuesEntity,
): SliceEdit {
  const place = placeOf(held.forms, params, entity);
  const { id } = ownSlice(held, place, params.sliceId);
  requireKept(held, place, values, id);
  return { kind: "remove", id };
}

/** Throws where a slice is the last value of a required field whose form has others. */
function requireKept(held: HeldForms, place: Placed, values: Values | null, id: number): void {
  const others = heldOf(held, place).filter((one) => one.id !== id && one.value !== null);
  const fields = new Set(placesOf(place.form).map(({ field }) => field.id));
  const hasMore =
    values?.[place.form.name] !== undefined ||
    held.slices.some(({ fieldId }) => fieldId !== place.field.id && fields.has(fieldId));
  if (place.field.required && others.length === 0 && hasMore)
    throw new HttpProblem(
      409,
      "conflict",
      `${place.field.name} is required where the form ${place.form.name} has values: give it another value`,
    );
}

function ownSlice(held: HeldForms, place: Placed, sliceId: string): HeldSlice {
  const found = heldOf(held, place).find(({ id }) => id === pathId(sliceId));
  if (found === undefined) throw new HttpProblem(404, "not-found", `${place.field.name} has no slice ${sliceId} here`);
  return found;
}

function taken({ id, fromMs }: HeldSlice): HttpProblem {
  const date = new Date(fromMs).toISOString();
  return new HttpProblem(409, "conflict", `the slice ${id} begins at ${date} with another value: change it by PUT`);
}

function fieldsOf(body: unknown) {
  return parsed(z.looseObject({}), body);
}

function parametersOf(body: unknown) {
  return Object.keys(fieldsOf(body)).map((name) => ({ name }));
}

function readOr400<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof UnfitValue) throw invalidField(thrown.field, thrown.message);
    throw thrown;
  }
}
