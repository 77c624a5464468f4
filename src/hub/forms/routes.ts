/** Forms of the account (`docs/hub/structure.md`, *Forms*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import {
  form,
  formBody,
  formChange,
  formDataQuery,
  formsQuery,
  newFormQuery,
  slice,
  sliceBody,
  sliceChange,
  slicesQuery,
} from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import { inUse } from "../calculated/definition/in-use.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { HeldForms } from "../store/form-values.ts";
import type { HeldSlice, StoredForm } from "../store/forms.ts";
import type { ValuesEntity } from "../store/records.ts";
import type { JudgeSlice, SliceEdit } from "../store/slices.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, ONE, pathId, rowOfPath, type WithId } from "../structure/pages.ts";
import { entityOf, fitOf, formOf, shownForm } from "./definition.ts";
import { namedForms, viewsThatLost } from "./named-by-views.ts";
import { named, type Placed, pathOf, placesOf, sameName } from "./names.ts";
import { UnfitValue } from "./read-value.ts";
import { momentOf } from "./shown.ts";
import { shownSlices } from "./slices.ts";
import { readSlice, referencesOf } from "./values.ts";

const SLICE_TAG = "Time-sliced attributes";
const TAG = "Forms";
const EXAMPLE = {
  name: "Billing",
  entityType: 2,
  groups: [{ name: "Contract", fields: [{ name: "Tariff", type: 2, required: true, timeSliced: true }] }],
};

const OPTIONS = {
  list: described({
    access: "read",
    tag: TAG,
    summary: "Forms of the account",
    query: formsQuery,
    answer: z.array(form),
    example: { query: { Name: ["Billing"], EntityType: 2 } },
  }),
  one: described({ access: "read", tag: TAG, summary: "One form", answer: form }),
  create: described({
    access: "manage",
    tag: TAG,
    summary: "Adds a form",
    description:
      "The answer is the whole form. Values that are there under its name must fit (409), unless WithData=true " +
      "removes those that do not. A body with the id of a form changes that one, as PUT does.",
    query: newFormQuery,
    body: formBody,
    answer: form,
    example: { body: EXAMPLE },
  }),
  change: described({
    access: "manage",
    tag: TAG,
    summary: "Changes a form that the body names by its id",
    description: "What the body leaves out stays; groups are replaced as a whole. The answer is the whole form.",
    query: formDataQuery,
    refusesUnknown: "nothing was changed",
    body: formChange,
    answer: form,
    example: { body: { id: "1", name: "Invoices" } },
  }),
  changeById: described({
    access: "manage",
    tag: TAG,
    summary: "Changes a form",
    query: formDataQuery,
    refusesUnknown: "nothing was changed",
    body: formChange,
    answer: form,
    example: { body: { name: "Invoices" } },
  }),
  remove: described({
    access: "manage",
    tag: TAG,
    summary: "Removes a form",
    description: "Values of it are a 409, unless WithData=true removes them too.",
    query: formDataQuery,
    status: 204,
    example: { query: { WithData: true } },
  }),
};

export async function formRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store } = context;
  const { forms } = store;
  sliceRoutes(app, context);
  app.get("/form", OPTIONS.list, async (request, reply) => {
    const query = parsed(formsQuery, request.query);
    const entityTypes = query.EntityType === undefined ? undefined : [entityOf(query.EntityType)];
    const filter = { names: query.Name, entityTypes };
    const { accountId } = callerOf(request);
    return sendList(request, reply, query, {
      rows: (page) => forms.list(accountId, filter, page),
      shown: (rows) => rows.map(shownForm),
      keyOf: null,
    });
  });
  app.get<WithId>("/form/:id", OPTIONS.one, async (request) => shownForm(await rowOfPath(forms.list, request, "form")));
  app.post("/form", OPTIONS.create, (request, reply) =>
    reportingViews(store, request, reply, () => create(context, request)),
  );
  app.put("/form", OPTIONS.change, (request, reply) => {
    const { id } = parsed(formChange, request.body);
    if (id === undefined) throw invalidField("id", "the body must name the form to change by its id");
    return reportingViews(store, request, reply, () => change(store, request, String(id)));
  });
  app.put<WithId>("/form/:id", OPTIONS.changeById, (request, reply) =>
    reportingViews(store, request, reply, () => change(store, request, request.params.id)),
  );
  app.delete<WithId>("/form/:id", OPTIONS.remove, async (request, reply) => {
    const { id } = request.params;
    const fit = fitOf(withData(request));
    await reportingViews(store, request, reply, async () => {
      const removed = await forms.remove(callerOf(request).accountId, pathId(id), fit);
      if (removed === false) throw notFound("form", id);
      if (removed !== true) throw inUse(`the form ${id}`, removed.users);
    });
    return reply.code(204).send();
  });
}

/** Makes a change, and warns of views that name what it took away: from then on they would find nothing. */
async function reportingViews<Result>(
  store: HubStore,
  request: FastifyRequest,
  reply: FastifyReply,
  work: () => Promise<Result>,
): Promise<Result> {
  const { accountId } = callerOf(request);
  const before = await namedForms(store, accountId);
  const result = await work();
  if (before.views.length === 0) return result;
  const lost = viewsThatLost(before, (await namedForms(store, accountId)).forms);
  if (lost.length > 0) warn(reply, `views that name what is gone: ${lost.join(", ")} (GET /views)`);
  return result;
}

async function create({ store, options }: HubContext, request: FastifyRequest) {
  const { accountId } = callerOf(request);
  const { Name, WithData } = parsed(newFormQuery, request.query);
  const given = request.body;
  const isUnnamed =
    typeof given === "object" && given !== null && !Object.keys(given).some((key) => key.toLowerCase() === "name");
  const body = parsed(formBody, isUnnamed && Name !== undefined ? { ...given, name: Name } : given);
  if (Name !== undefined && !sameName(Name, body.name))
    throw invalidField("Name", `the address says ${Name}, and the body ${body.name}`);
  // Clients that know no PUT send a form back as they got it, with their change.
  if (body.id !== undefined) return change(store, request, String(body.id));
  requireOwn(body.accountId, accountId);
  const most = limitOf(options, accountId, "form");
  return made(await store.forms.create(accountId, formOf(body, null), fitOf(WithData === true), most), body.name);
}

async function change({ forms }: HubStore, request: FastifyRequest, id: string) {
  const { accountId } = callerOf(request);
  const body = parsed(formChange, request.body);
  requireOwn(body.accountId, accountId);
  const to = (current: StoredForm) => formOf({ ...body, name: body.name ?? current.name }, current);
  const edit = { ...fitOf(withData(request)), change: to };
  const changed = await forms.change(accountId, pathId(id), edit);
  if (changed === "missing") throw notFound("form", id);
  if (changed !== "taken" && "users" in changed)
    throw inUse(`a field that form ${id} would no longer have`, changed.users);
  return made(changed, body.name);
}

function made(result: StoredForm | "taken", name: string | undefined) {
  if (result !== "taken") return shownForm(result);
  throw new HttpProblem(
    409,
    "conflict",
    `the account has a form named ${name} for the same entity: send its id to change it (GET /form)`,
  );
}

function withData(request: FastifyRequest): boolean {
  return parsed(formDataQuery, request.query).WithData === true;
}

function requireOwn(given: number | undefined, accountId: number): void {
  if (given !== undefined && given !== accountId)
    throw invalidField("accountId", "is that of the token, and may be left out");
}

interface OfField {
  Params: { id: string; formName: string; groupName: string; fieldName: string };
}
interface OfSlice {
  Params: OfField["Params"] & { sliceId: string };
}

/** Of fields that are not time-sliced. */
type Values = Readonly<Record<string, unknown>>;

function optionsOf(entity: ValuesEntity) {
  const words = `a time-sliced attribute of a ${entity}`;
  return {
    list: described({
      access: "read",
      tag: SLICE_TAG,
      summary: `Slices of ${words}`,
      query: slicesQuery,
      answer: z.array(slice),
    }),
    add: described({
      access: "manage",
      tag: SLICE_TAG,
      summary: `Adds a slice to ${words}`,
      body: sliceBody,
      answer: slice,
    }),
    change: described({
      access: "manage",
      tag: SLICE_TAG,
      summary: `Changes a slice of ${words}`,
      body: sliceChange,
      answer: slice,
    }),
    remove: described({ access: "manage", tag: SLICE_TAG, summary: `Removes a slice of ${words}`, status: 204 }),
  };
}

/** Slices of a time-sliced attribute of a site or a source (`docs/hub/structure.md`, *Time-sliced attributes*). */
function sliceRoutes(app: FastifyInstance, context: HubContext): void {
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
