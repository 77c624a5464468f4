/** Forms of the account (`docs/hub-choices.md`, *Forms*). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { HttpProblem } from "#wire/http-problem.ts";
import { form, formBody, formChange, formDataQuery, formsQuery, newFormQuery } from "#wire/index.ts";
import { limitOf } from "../account-limits.ts";
import { inUse } from "../calculated/definition/in-use.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { StoredForm } from "../store/forms.ts";
import type { HubStore } from "../store/store.ts";
import { sendList } from "../structure/lists.ts";
import { notFound, pathId, rowOfPath, type WithId } from "../structure/pages.ts";
import { entityOf, fitOf, formOf, shownForm } from "./definition.ts";
import { namedForms, viewsThatLost } from "./named-by-views.ts";
import { sameName } from "./names.ts";
import { sliceRoutes } from "./slice-routes.ts";

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
