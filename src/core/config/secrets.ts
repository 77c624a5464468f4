/** Finds the secrets of a configuration by the `secret` marks of its schema. */
import type { z } from "zod";
import { inputSchemaOf } from "./json-schema.ts";

/** The parts of a JSON Schema that are read here. */
export interface Marked {
  readonly secret?: boolean;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Marked>>;
  readonly additionalProperties?: Marked | boolean;
  readonly items?: Marked;
  readonly anyOf?: readonly Marked[];
  readonly oneOf?: readonly Marked[];
  readonly allOf?: readonly Marked[];
}

/** Keys that hold a secret wherever they appear, for data without a schema. */
const KEYS = ["password", "passphrase", "privateKey", "clientSecret", "secret", "key", "headers"];

/** Finds secrets in `data`, raw or parsed; also when it does not fit the schema as a whole. */
export function secretsOf(data: unknown, schema?: z.ZodType): readonly string[] {
  const found = new Set<string>();
  const visit = (value: unknown, places: readonly Marked[], isSecret: boolean): void => {
    const here = places.flatMap(variants);
    const secret = isSecret || here.some((place) => place.secret === true);
    if (typeof value === "string") {
      if (secret) found.add(value);
      return;
    }
    if (typeof value !== "object" || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      const isNamed = schema === undefined && KEYS.includes(key);
      visit(inner, here.flatMap(belowOf(value, key)), secret || isNamed);
    }
  };
  const root: Marked = schema === undefined ? {} : inputSchemaOf(schema);
  visit(data, [root], false);
  return [...found];
}

/**
 * Names of settings and the words that they accept: a secret equal to one of them cannot be masked without masking
 * ordinary text.
 */
export function wordsOfSchema(schema: z.ZodType): ReadonlySet<string> {
  const words = new Set<string>();
  const visit = (place: unknown): void => {
    if (typeof place !== "object" || place === null) return;
    const { properties, enum: values, const: value } = place as Readonly<Record<string, unknown>>;
    if (typeof properties === "object" && properties !== null)
      for (const name of Object.keys(properties)) words.add(name);
    for (const word of Array.isArray(values) ? values : [value]) if (typeof word === "string") words.add(word);
    for (const inner of Object.values(place)) visit(inner);
  };
  visit(inputSchemaOf(schema));
  return words;
}

export function belowOf(value: object, key: string): (place: Marked) => readonly Marked[] {
  return ({ items, properties, additionalProperties: others }) => {
    if (Array.isArray(value)) return items === undefined ? [] : [items];
    const own = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (own !== undefined) return [own];
    return typeof others === "object" ? [others] : [];
  };
}

export function variants(place: Marked): readonly Marked[] {
  const inner = [...(place.anyOf ?? []), ...(place.oneOf ?? []), ...(place.allOf ?? [])];
  return [place, ...inner.flatMap(variants)];
}
