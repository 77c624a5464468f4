/** Fields of a form, from the JSON Schema of a mapper's settings. */

export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** `json`: what has no field of its own, as JSON. */
export type FieldKind = "choice" | "boolean" | "number" | "zone" | "unit" | "text" | "group" | "json";
export type Settings = Readonly<Record<string, unknown>>;

export function kindOf(name: string, schema: Schema): FieldKind {
  if (schema.enum !== undefined) return "choice";
  if (schema.properties !== undefined) return "group";
  if (schema.type === "boolean") return "boolean";
  if (schema.type === "number" || schema.type === "integer") return "number";
  if (schema.type === "string" || isScalar(schema)) {
    if (/zone$/i.test(name)) return "zone";
    return /^unit/i.test(name) ? "unit" : "text";
  }
  return "json";
}

const SCALARS: ReadonlySet<unknown> = new Set(["string", "integer", "number", "null", "boolean"]);

/** A text, a number or nothing, such as the name or the number of a column; or a text or a list of them. */
function isScalar({ anyOf = [] }: Schema): boolean {
  return (
    anyOf.some(({ type }) => type === "string") && anyOf.every(({ type }) => SCALARS.has(type) || type === "array")
  );
}

export interface Parsed {
  /** Undefined: the default. */
  readonly value: unknown;
  readonly isFault: boolean;
}

const NO_VALUE: Parsed = { value: undefined, isFault: false };

/** An empty text is the default. */
export function parse(kind: FieldKind, schema: Schema, text: string): Parsed {
  if (text === "") return NO_VALUE;
  switch (kind) {
    case "choice": {
      const value = schema.enum?.find((one) => String(one) === text);
      return { value, isFault: value === undefined };
    }
    case "boolean":
      return { value: text === "true", isFault: false };
    case "number": {
      const value = Number(text);
      return { value, isFault: !Number.isFinite(value) || (schema.type === "integer" && !Number.isInteger(value)) };
    }
    case "json":
    case "group":
      try {
        return { value: JSON.parse(text), isFault: false };
      } catch {
        // It is being typed.
        return { value: undefined, isFault: true };
      }
    default:
      if (text.startsWith("[") && schema.anyOf?.some(({ type }) => type === "array"))
        return parse("json", schema, text);
      return { value: scalar(schema, text), isFault: false };
  }
}

function scalar({ anyOf = [] }: Schema, text: string): unknown {
  const has = (type: string) => anyOf.some((one) => one.type === type);
  if (text === "null" && has("null")) return null;
  if (/^-?\d+$/.test(text) && (has("integer") || has("number"))) return Number(text);
  return text;
}

export function textOf(kind: FieldKind, value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "object" && kind === "text") return JSON.stringify(value);
  return kind === "json" || typeof value === "object" ? JSON.stringify(value, null, 1) : String(value);
}

/** Without the name where the value is the default; a group without values, too. */
export function withValue(settings: Settings, path: readonly string[], value: unknown): Settings {
  const [name = "", ...rest] = path;
  const { [name]: before, ...others } = settings;
  const next = rest.length === 0 ? value : withValue(Object(before ?? {}), rest, value);
  const isEmpty = next === undefined || (rest.length > 0 && Object.keys(Object(next)).length === 0);
  if (isEmpty) return others;
  // The order of what was written stays.
  return name in settings
    ? Object.fromEntries(Object.entries(settings).map(([key, held]) => [key, key === name ? next : held]))
    : { ...settings, [name]: next };
}

/** All settings whose name or description has the words, with their paths. */
export function found(schema: Schema, words: string, path: readonly string[] = []): readonly (readonly string[])[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, own]) => {
    const here = [...path, name];
    if (own.properties !== undefined) return found(own, words, here);
    const text = `${here.join(".")} ${own.description ?? ""}`.toLowerCase();
    return words
      .toLowerCase()
      .split(/\s+/)
      .every((word) => text.includes(word))
      ? [here]
      : [];
  });
}

/** Fields that most files need come first. */
export function ordered(
  schema: Schema,
  settings: Settings,
  most: number,
): { readonly first: readonly string[]; readonly more: readonly string[] } {
  const names = Object.keys(schema.properties ?? {});
  if (names.length <= most) return { first: names, more: [] };
  const required = new Set(schema.required ?? []);
  const isFirst = (name: string) => required.has(name) || name in settings || /zone$/i.test(name);
  return { first: names.filter(isFirst), more: names.filter((name) => !isFirst(name)) };
}
