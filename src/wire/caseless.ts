/**
 * The service matches names of query keys and body fields without regard to case
 * (platform facts, *Push* and *Read and management interface*); values keep theirs.
 */
import { z } from "zod";
import { shownBeside } from "#core/shown-value.ts";

/**
 * Wraps an object schema so that keys of the input are first brought to the schema's own spelling; unknown
 * keys are ignored, unless the schema is strict.
 */
export function caseless<Shape extends z.ZodRawShape>(schema: z.ZodObject<Shape>) {
  const spelling = new Map(Object.keys(schema.shape).map((key) => [key.toLowerCase(), key]));
  const isStrict = schema.def.catchall instanceof z.ZodNever;
  return z.preprocess((input) => respell(input, spelling, isStrict), schema);
}

function respell(input: unknown, spelling: ReadonlyMap<string, string>, keepsUnknown: boolean): unknown {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return input;
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    const known = spelling.get(key.toLowerCase());
    // "Null fields are ignored" (specification, Push endpoints).
    if (value === null || value === undefined) continue;
    if (known === undefined) {
      if (keepsUnknown) out[key] = value;
      continue;
    }
    // Two spellings of one name are that name given twice: a list where the schema takes lists, an error
    // elsewhere; neither is dropped.
    out[known] = Object.hasOwn(out, known) ? [out[known], value].flat() : value;
  }
  return out;
}

/** Of a schema made by `caseless`, in its own spelling; of any other schema none. */
export function knownNames(schema: z.ZodType): readonly string[] {
  return schema instanceof z.ZodPipe && schema.out instanceof z.ZodObject ? Object.keys(schema.out.shape) : [];
}

/** A repeated query key arrives as a list or as a single value; both become a list. */
export function listOf<Item extends z.ZodType>(item: Item) {
  return z.preprocess((input) => (input === undefined || Array.isArray(input) ? input : [input]), z.array(item));
}

/** A value of the list, written in any case, or by its number where `numbers` has them. */
export function anyCase<const Names extends readonly string[]>(
  names: Names,
  numbers: Readonly<Record<string, number>> = {},
) {
  const isMeant = (name: string, text: string) => name.toLowerCase() === text || String(numbers[name]) === text;
  return z.preprocess((input) => {
    if (typeof input !== "string" && typeof input !== "number") return input;
    const text = String(input).toLowerCase();
    return names.find((name) => isMeant(name, text)) ?? input;
  }, z.enum(names));
}

/**
 * A value of the list, written in any case, or by its place in the list from 0: where no client shows other numbers,
 * values are counted as enumerations of .NET are.
 */
export function inOrder<const Names extends readonly string[]>(names: Names) {
  return anyCase(names, Object.fromEntries(names.map((name, place) => [name, place])));
}

/** The number of a list, also as text, or its name in any case. Whether the list has a number is not checked. */
export function numberOrName(numbers: Readonly<Record<string, number>>) {
  const known = new Map(Object.entries(numbers).map(([name, number]) => [name.toLowerCase(), number]));
  const read = (text: string) => known.get(text.toLowerCase()) ?? (WHOLE.test(text) ? Number(text) : text);
  const names = Object.keys(numbers);
  const error = ({ input }: { readonly input?: unknown }) =>
    input === undefined
      ? "is missing"
      : `must be one of ${names.join(", ")}, or the number of one, and not ${shownBeside(input, names)}`;
  return z.preprocess((input) => (typeof input === "string" ? read(input) : input), z.int({ error }));
}

/** A name for people, of at most so many characters. */
export function nameText(charactersMax: number) {
  return z
    .string()
    .max(charactersMax)
    .refine((text) => text.trim() !== "", { error: "must not be blank" });
}

const WHOLE = /^-?\d+$/;
const NUMBER = /^-?\d+(\.\d+)?$/;
const TRUTHS = new Map([
  ["true", true],
  ["false", false],
]);

/** `true`/`false` in any case, as query strings carry them. */
export const queryBoolean = z.preprocess(
  (input) => (typeof input === "string" ? (TRUTHS.get(input.toLowerCase()) ?? input) : input),
  z.boolean(),
);

export const queryInteger = z.preprocess(
  (input) => (typeof input === "string" && WHOLE.test(input) ? Number(input) : input),
  z.int(),
);

export function queryNumber(number: z.ZodNumber) {
  return z.preprocess((input) => (typeof input === "string" && NUMBER.test(input) ? Number(input) : input), number);
}

/** Parameters of lists. */
export const paging = {
  "Paging.PageNumber": queryInteger.optional(),
  "Paging.ItemsPerPage": queryInteger.optional(),
  IncludeItemsCount: queryBoolean.optional(),
};
