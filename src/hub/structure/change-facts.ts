/** Facts of the routes that change and remove sites, sources and variables. */
import { z } from "zod";
import { caseless, queryBoolean } from "#wire/caseless.ts";
import { site, siteBody, source, sourceBody, variable, variableBody } from "#wire/index.ts";
import { described, type RouteFacts } from "../http/route.ts";
import type { StructureEntity } from "../store/store.ts";

export const SCHEMAS = { site: siteBody, source: sourceBody, variable: variableBody } as const;

const SHOWN = { site, source, variable } as const;
const TAGS: Readonly<Record<StructureEntity, string>> = {
  site: "Sites",
  source: "Sources",
  variable: "Variables",
};

export const removalQuery = caseless(
  z.object({
    WithData: queryBoolean.optional().describe("Removes the points below, too. It cannot be undone."),
  }),
);
const removed = z.object({
  removed: z.looseObject({ sources: z.int(), variables: z.int(), points: z.int() }),
});

export function changeFacts(entity: StructureEntity) {
  const base = { access: "manage", tag: TAGS[entity], answer: SHOWN[entity] } as const;
  const fields = SCHEMAS[entity].out.partial();
  const example = { body: { name: "Another name" } };
  return {
    put: described({
      ...base,
      summary: `Changes a ${entity} that the body names by its id`,
      description: "Fields that the body leaves out stay as they are. The answer is the whole entity.",
      body: fields.extend({ id: z.int() }),
      example: { body: { id: 1, ...example.body } },
    }),
    putById: described({ ...base, summary: `Changes a ${entity}`, body: fields, example }),
    patch: described({
      ...base,
      summary: `Changes a ${entity} by a JSON Patch or by an object of fields, in which null clears`,
      body: z.union([z.array(z.looseObject({ op: z.string(), path: z.string() })), z.object(clearable(fields.shape))]),
      example: { body: [{ op: "replace", path: "/name", value: "Another name" }] },
    }),
    remove: described({
      ...base,
      summary: `Removes a ${entity} with everything below it`,
      query: removalQuery,
      answer: removed,
      example: { query: { WithData: true } },
    }),
  };
}

/** Null clears a field in a patch. */
function clearable(fields: z.ZodRawShape): z.ZodRawShape {
  return Object.fromEntries(Object.entries(fields).map(([name, type]) => [name, z.nullable(type)]));
}

export const VARIABLE_OF_SOURCE: RouteFacts = {
  access: "manage",
  tag: "Variables",
  summary: "Changes a variable of a source",
  body: variableBody.out.partial(),
  shown: variable,
  status: 204,
  example: { body: { name: "Another name" } },
};
