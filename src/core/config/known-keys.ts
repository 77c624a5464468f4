/** The names of keys that a schema knows, for the suggestions beside an unknown one. */
import type { z } from "zod";
import { inputSchemaOf } from "./json-schema.ts";

type Path = readonly PropertyKey[];

interface JsonSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
}

/** The names of keys that may stand at a path, from the schema's JSON Schema. */
export function knownKeys(schema: z.ZodType): (path: Path) => readonly string[] {
  const root: JsonSchema = inputSchemaOf(schema);
  return (path) => {
    let here = [root];
    for (const part of path) {
      here = here.flatMap(variants).flatMap((one) => {
        const next = typeof part === "number" ? one.items : ownProperty(one, String(part));
        return next === undefined ? [] : [next];
      });
    }
    return [...new Set(here.flatMap(variants).flatMap((one) => Object.keys(one.properties ?? {})))];
  };
}

function ownProperty({ properties }: JsonSchema, name: string): JsonSchema | undefined {
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function variants(schema: JsonSchema): JsonSchema[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  return [schema, ...inner.flatMap(variants)];
}
