/**
 * Fields of a body that its address does not change, though answers show them. Clients write back what they read, and
 * that passes; a value of their own is named or refused, since it would be dropped in silence.
 */
import { isDeepStrictEqual } from "node:util";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import type { HubOptions } from "../options.ts";
import { invalidField } from "./problems.ts";
import { isStrict, STRICT } from "./unknown-names.ts";
import { warn } from "./warnings.ts";

/** Characters of an id that are quoted. */
const ID_SHOWN = 20;

type Fields = Readonly<Record<string, unknown>>;

/** Without the fields that have no value, which libraries write for each field that they know. */
export function withValues(body: unknown): Fields {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return {};
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}

/** Names of the list that `wanted` has otherwise than `current`, without regard to the case of names. */
export function changedFixed(wanted: Fields, current: Fields, names: readonly string[]): readonly string[] {
  const given = new Map(Object.entries(wanted).map(([name, value]) => [name.toLowerCase(), value]));
  return names.filter((name) => {
    const value = given.get(name.toLowerCase());
    return value !== undefined && !isSame(value, current[name]);
  });
}

/** Throws a 400 where the client is strict. */
export function judgeFixed(
  request: FastifyRequest,
  reply: FastifyReply,
  options: Pick<HubOptions, "clients">,
  changed: readonly string[],
): void {
  if (changed.length === 0) return;
  if (isStrict(request, options)) throw refusedFixed(changed);
  warn(reply, `not changed, since this address only shows it: ${changed.join(", ")}`);
}

function refusedFixed(changed: readonly string[]): HttpProblem {
  const message = "is shown by this address, and not changed";
  const errors = changed.map((path) => ({ path, message }));
  return invalidRequest(`${changed.join(", ")}: ${message}; ${STRICT}`, errors);
}

/**
 * Throws a 400 for a body that names another entity than the address does: a change of the one would look like a change
 * of the other. Null and 0 are no id, as libraries write a field that was not set.
 */
export function requireSameIds({ params, body, routeOptions }: FastifyRequest): void {
  // Behind `/groups/:id/sites` an id would be that of something else.
  const isOfId = (name: string) => (name === "id" ? routeOptions.url?.endsWith("/:id") === true : name.endsWith("Id"));
  const ids = Object.entries(params as Readonly<Record<string, string>>).filter(([name]) => isOfId(name));
  if (ids.length === 0 || typeof body !== "object" || body === null || ArrayBuffer.isView(body)) return;
  const given = Array.isArray(body) ? patchedValues(body) : Object.entries(body);
  for (const [name, id] of ids)
    for (const [field, value] of given) {
      const isId = typeof value === "number" || typeof value === "string";
      if (field.toLowerCase() !== name.toLowerCase() || !isId || String(value) === id || Number(value) === 0) continue;
      throw invalidField(name, `must be ${id.slice(0, ID_SHOWN)}, as in the address, or left out`);
    }
}

/** The fields that a JSON Patch sets. */
function patchedValues(operations: readonly unknown[]): readonly (readonly [string, unknown])[] {
  return operations.flatMap((operation) => {
    const { op, path, value } = Object(operation) as Fields;
    return typeof path === "string" && (op === "add" || op === "replace") ? [[path.slice(1), value] as const] : [];
  });
}

function isSame(one: unknown, other: unknown): boolean {
  if (typeof one === "string" && typeof other === "string") return one.toLowerCase() === other.toLowerCase();
  return isDeepStrictEqual(one ?? null, other ?? null);
}
