/** Parameters in the address, in a JSON body, or in both. */
import type { FastifyRequest } from "fastify";
import { invalidRequest } from "#wire/http-problem.ts";

/**
 * A parameter that differs between the two counts as given twice: a list where lists are allowed, an error elsewhere;
 * neither is silently dropped. Null: not given. `Paging` may be an object in the body.
 */
export function parametersOf(request: FastifyRequest): Record<string, unknown> {
  const body = request.body ?? {};
  if (typeof body !== "object" || Array.isArray(body)) throw invalidRequest("the body must be a JSON object");
  const parameters: Record<string, unknown> = { ...(request.query as object) };
  for (const [name, value] of Object.entries(body).flatMap(flattened)) {
    if (value === null) continue;
    const before = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    parameters[name] = before === undefined || String(before) === String(value) ? value : [before, value].flat();
  }
  return parameters;
}

function flattened([name, value]: readonly [string, unknown]): [string, unknown][] {
  if (name.toLowerCase() !== "paging" || typeof value !== "object" || value === null) return [[name, value]];
  return Object.entries(value).map(([inner, own]) => [`Paging.${inner}`, own]);
}
