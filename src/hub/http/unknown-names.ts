/**
 * Parameters and fields that an address does not know. They are refused where ignoring them would do harm: an unknown
 * filter of a list would select everything, and an unknown parameter of a removal remove it. Elsewhere a warning names
 * them, or refuses them where the client is `strict`.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { nearestName } from "#core/nearest-name.ts";
import { knownNames } from "#wire/caseless.ts";
import { type HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import { bareOperationId } from "#wire/push-request.ts";
import type { HubOptions } from "../options.ts";
import { isPage } from "./access.ts";
import { parametersOf } from "./parameters.ts";
import type { RouteFacts } from "./route.ts";
import { warnOfUnknown } from "./warnings.ts";

/** Items of a list that are checked, and fields that are named. */
const ITEMS_MAX = 1_000;
const FOUND_MAX = 100;

/** Some libraries of browsers add it to keep answers out of caches. */
const CACHE_BUSTER = "_";
const NAMED_MAX = 20;
export const STRICT = "this client is strict";

type Clients = Pick<HubOptions, "clients">;

export function installUnknownNames(app: FastifyInstance, options: Clients): void {
  app.addHook("preHandler", async (request, reply) => {
    const { facts } = request.routeOptions.config;
    if (facts === undefined) return;
    judgeParameters(request, reply, facts, isStrict(request, options));
    judgeFields(request, reply, options, fieldsOf(request, facts));
  });
}

export function isStrict({ principal }: FastifyRequest, { clients }: Clients): boolean {
  return clients.some(({ id, strict }) => strict && id === principal?.clientId);
}

/** Throws a 400 where the client is strict. */
export function judgeFields(
  request: FastifyRequest,
  reply: FastifyReply,
  options: Clients,
  unknown: readonly UnknownField[],
): void {
  if (unknown.length === 0) return;
  if (isStrict(request, options)) throw refusedFields(unknown);
  const paths = unknown.map(({ path }) => path);
  warnOfUnknown(reply, paths, "field");
}

function fieldsOf({ body, method }: FastifyRequest, facts: RouteFacts): readonly UnknownField[] {
  if (facts.body === undefined || facts.bodyType !== undefined || facts.parametersInBody === true) return [];
  const isPatch = method === "PATCH";
  const fields = isPatch && Array.isArray(body) ? patchedFields(body) : body;
  return unknownFields(fields, [facts.body, facts.shown ?? facts.answer], isPatch);
}

function judgeParameters(request: FastifyRequest, reply: FastifyReply, facts: RouteFacts, isStrict: boolean): void {
  const known = parametersIn(facts);
  if (known === null) return;
  const given = Object.keys(facts.parametersInBody === true ? parametersOf(request) : (request.query as object));
  const isKnown = (name: string) => known.some((one) => one.toLowerCase() === name.toLowerCase());
  const unknown = given.filter((name) => !isKnown(name) && name !== CACHE_BUSTER && !isBare(request, name));
  if (unknown.length === 0) return;
  const call = `${request.method} ${request.routeOptions.url?.replace(/:(\w+)/g, "{$1}")}`;
  const why = facts.refusesUnknown ?? harmOf(request.method, facts.answer) ?? (isStrict ? STRICT : undefined);
  if (why !== undefined) throw refusedNames(call, unknown, known, why);
  warnOfUnknown(reply, unknown);
}

/** Null: what is open and pages read their own, and what is not supported says that first. */
function parametersIn({ query, body, parametersInBody, access, status }: RouteFacts): readonly string[] | null {
  const schema = query ?? (parametersInBody === true ? body : undefined);
  if (schema !== undefined) return knownNames(schema);
  return access === "open" || isPage({ access }) || status === 501 ? null : [];
}

/** Why an unknown parameter is no small matter. */
function harmOf(method: string, answer: z.ZodType | undefined): string | undefined {
  if (method === "DELETE") return "nothing was removed";
  return answer instanceof z.ZodArray ? "without an unknown filter the list would have everything" : undefined;
}

/** Older clients write the operationId of a push behind the question mark, without a name. */
function isBare(request: FastifyRequest, name: string): boolean {
  return request.routeOptions.config.facts?.access === "push" && bareOperationId(request) === name;
}

/** The fields that a JSON Patch changes, as an object. */
function patchedFields(operations: readonly unknown[]): object {
  const named = operations.flatMap((operation) => {
    const path: unknown = Reflect.get(Object(operation), "path");
    const [, name] = typeof path === "string" ? path.split("/") : [];
    return name === undefined ? [] : [[name, true] as const];
  });
  return Object.fromEntries(named);
}

function refusedNames(call: string, unknown: readonly string[], known: readonly string[], why: string): HttpProblem {
  const near = unknown.map((name) => ({ name, nearest: nearestParameter(name, known) }));
  return refused(`${call} knows no parameter`, near, `it takes ${known.length === 0 ? "none" : known.join(", ")}`, why);
}

/** Names behind dots are compared without what stands before, too: `PageNumber` is near `Paging.PageNumber`. */
function nearestParameter(name: string, known: readonly string[]): string | undefined {
  const bare = (text: string) => text.slice(text.lastIndexOf(".") + 1);
  const nearest = nearestName(name, known) ?? nearestName(bare(name), known.map(bare));
  return known.find((one) => one === nearest || bare(one) === nearest);
}

function refusedFields(unknown: readonly UnknownField[]): HttpProblem {
  const near = unknown.map(({ path, name, known }) => ({ name: path, nearest: nearestName(name, known) }));
  const others = [...new Set(unknown.map(({ known }) => known.join(", ")))].join("; or ");
  return refused("the body knows no field", near, `it takes ${others}`, STRICT);
}

interface Near {
  readonly name: string;
  readonly nearest: string | undefined;
}

function refused(what: string, near: readonly Near[], takes: string, why: string): HttpProblem {
  const shown = near.slice(0, NAMED_MAX);
  const hint = ({ nearest }: Near) => (nearest === undefined ? "" : ` (did you mean ${nearest}?)`);
  const named = shown.map((one) => `${one.name}${hint(one)}`).join(", ");
  const rest = shown.every(({ nearest }) => nearest !== undefined) ? "" : `; ${takes}`;
  const errors = shown.map((one) => ({ path: one.name, message: `is not known${hint(one)}` }));
  return invalidRequest(`${what} ${named}${rest}; ${why}`, errors);
}

// Fields of a body that its schema does not have, at every depth.

interface UnknownField {
  /** Such as `groups.0.fields.1.timeslice`. */
  readonly path: string;
  readonly name: string;
  /** The names that are known there. */
  readonly known: readonly string[];
}

/**
 * `schemas`: of the body, and of what answers show, since clients write back what they read. A null is no value and
 * passes, unless `nullsCount`.
 */
function unknownFields(
  body: unknown,
  schemas: readonly (z.ZodType | undefined)[],
  nullsCount = false,
): readonly UnknownField[] {
  const found: UnknownField[] = [];
  const walk = (value: unknown, path: string, given: readonly z.core.$ZodType[]): void => {
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || found.length >= FOUND_MAX) return;
    const options = given.flatMap(plain);
    // A body may be nested far deeper than any schema.
    if (options.length === 0) return;
    if (Array.isArray(value)) {
      const items = options.flatMap((one) => (one instanceof z.ZodArray ? [one.element] : []));
      for (const [at, item] of value.slice(0, ITEMS_MAX).entries()) walk(item, `${path}${at}.`, items);
      return;
    }
    const objects = options.filter((one) => one instanceof z.ZodObject);
    // A schema that takes any field, or that is none of an object, knows nothing better.
    if (objects.length === 0 || objects.some(({ def }) => def.catchall !== undefined && !isNever(def.catchall))) return;
    if (options.some((one) => one instanceof z.ZodRecord)) return;
    const known = [...new Set(objects.flatMap(({ shape }) => Object.keys(shape)))];
    for (const [name, inner] of Object.entries(value)) {
      const isSame = (field: string) => field.toLowerCase() === name.toLowerCase();
      if (known.some(isSame)) {
        const below = objects.flatMap(({ shape }) => Object.entries(shape).filter(([field]) => isSame(field)));
        walk(
          inner,
          `${path}${name}.`,
          below.map(([, schema]) => schema),
        );
      } else if (inner !== null || nullsCount) found.push({ path: `${path}${name}`, name, known });
    }
  };
  walk(
    body,
    "",
    schemas.filter((one) => one !== undefined),
  );
  return found;
}

function isNever(schema: z.core.$ZodType): boolean {
  return schema instanceof z.ZodNever;
}

/** Without what wraps it; the options of a union. */
function plain(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  if (schema instanceof z.ZodPipe)
    return plain(schema.def.in instanceof z.ZodTransform ? schema.def.out : schema.def.in);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap(plain);
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return plain(schema.def.innerType);
  return [schema];
}
