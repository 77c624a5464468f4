/** The JSON Schema of a configuration, derived once for each schema: that takes longer than to read a document. */
import { z } from "zod";

const derived = new WeakMap<z.ZodType, object>();

/** Callers name the parts that they read; they must not change it. */
export function inputSchemaOf(schema: z.ZodType): object {
  const known = derived.get(schema);
  if (known !== undefined) return known;
  const made = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  derived.set(schema, made);
  return made;
}
