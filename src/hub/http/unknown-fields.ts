/** Fields of a body that its schema does not have, at every depth. */
import { z } from "zod";

export interface UnknownField {
  /** Such as `groups.0.fields.1.timeslice`. */
  readonly path: string;
  readonly name: string;
  /** The names that are known there. */
  readonly known: readonly string[];
}

/** Items of a list that are checked, and fields that are named. */
const ITEMS_MAX = 1_000;
const FOUND_MAX = 100;

/**
 * `schemas`: of the body, and of what answers show, since clients write back what they read. A null is no value and
 * passes, unless `nullsCount`.
 */
export function unknownFields(
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
