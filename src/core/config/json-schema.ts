/** The JSON Schema of a configuration. */
import { readFileSync } from "node:fs";
import { z } from "zod";

const derived = new WeakMap<z.ZodType, object>();
const files = new WeakMap<z.ZodType, URL>();

/**
 * Names the file of `config/` that `npm run generate` derives from the schema. Reading it takes a millisecond, and
 * deriving it thirty, at each start of each command.
 */
export function generatedAs<Schema extends z.ZodType>(schema: Schema, file: string): Schema {
  files.set(schema, new URL(`../../../config/${file}`, import.meta.url));
  return schema;
}

/** Callers name the parts that they read; they must not change it. */
export function inputSchemaOf(schema: z.ZodType): object {
  const known = derived.get(schema);
  if (known !== undefined) return known;
  const made = readGenerated(schema) ?? z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  derived.set(schema, made);
  return made;
}

/** Null where there is none: a schema that is derived when it is asked for is the same. */
function readGenerated(schema: z.ZodType): object | null {
  const file = files.get(schema);
  if (file === undefined) return null;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as object;
  } catch {
    return null;
  }
}
