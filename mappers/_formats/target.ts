/**
 * The setting `target` of mappers of fixed formats: which identifiers of a file name the variables, as texts with
 * `{placeholders}`.
 */
import { RowError, type Target, type TargetFields, z } from "headgate/mapper";

const PLACEHOLDER = /\{([^{}]*)\}/g;
const NUMERIC: ReadonlySet<string> = new Set(["variableId", "sourceId", "variableTypeId"]);
const SELECTORS: ReadonlySet<string> = new Set(["mappingConfig", "variableTypeId"]);

/** Fields of a target: texts with `{placeholders}`, or numbers. */
export type TargetTemplate = { readonly [Field in keyof TargetFields]?: string | number | undefined };

/** Values for the placeholders of a template. */
export type Identifiers = Readonly<Record<string, string>>;

/**
 * Schema of the setting: one identifier, with mappingConfig or variableTypeId unless it is variableId. `placeholders`
 * are the names that a template may use; `standard` is the default.
 */
export function targetSetting(placeholders: readonly string[], standard: TargetTemplate) {
  const field = z.union([z.string().min(1), z.int()]).optional();
  return z
    .strictObject({
      variableId: field,
      sourceId: field,
      sourceSerialNumber: field,
      sourceEan: field,
      sourceName: field,
      meterNumber: field,
      mappingConfig: field,
      variableTypeId: field,
    })
    .superRefine((template, check) => {
      for (const [name, text] of Object.entries(template)) {
        const unknown = namesIn(text).find((placeholder) => !placeholders.includes(placeholder));
        if (unknown !== undefined)
          check.addIssue({
            code: "custom",
            path: [name],
            message: `there is no {${unknown}}; there are ${braced(placeholders)}`,
          });
      }
      const fault = templateFault(template);
      if (fault !== null) check.addIssue({ code: "custom", message: fault });
    })
    .default(standard)
    .describe(
      "What names a variable: one identifier with mappingConfig or variableTypeId, as texts that may " +
        `hold ${braced(placeholders)}.`,
    );
}

/** The setting `rename` beside it. */
export function renameSetting(example: string) {
  return z
    .record(z.string(), z.string().min(1))
    .default({})
    .describe(`Other names for a filled mappingConfig, such as \`${example}\`.`);
}

function namesIn(text: string | number | undefined): string[] {
  return [...String(text ?? "").matchAll(PLACEHOLDER)].map(([, name = ""]) => name);
}

function braced(placeholders: readonly string[]): string {
  return placeholders.map((name) => `{${name}}`).join(", ");
}

function templateFault(template: TargetTemplate): string | null {
  const fields = Object.entries(template).flatMap(([field, text]) => (text === undefined ? [] : [field]));
  const identifiers = fields.filter((field) => !SELECTORS.has(field));
  const selectors = fields.length - identifiers.length;
  if (identifiers.length !== 1)
    return `give exactly one identifier, beside mappingConfig or variableTypeId; there are ${identifiers.length}`;
  if (identifiers[0] === "variableId") return selectors > 0 ? "variableId takes no other field" : null;
  return selectors === 1 ? null : "give exactly one of mappingConfig and variableTypeId";
}

/**
 * Makes targets of a template. `rename` replaces a filled mappingConfig that it names; `suffix` is appended to it
 * afterwards. Equal values give the same frozen object, which `emit` takes fastest. Throws a `RowError` when a required
 * value is empty, or is not a whole number where one is needed.
 */
export function targetMaker(
  template: TargetTemplate,
  rename: Readonly<Record<string, string>> = {},
): (values: Identifiers, suffix?: string) => Target {
  const needed = [...new Set(Object.values(template).flatMap(namesIn))];
  const made = new Map<string, Target>();
  return (values, suffix = "") => {
    let key = suffix;
    // With lengths, so that no text can look like the border between two.
    for (const name of needed) key += `\n${values[name]?.length ?? 0}:${values[name] ?? ""}`;
    let target = made.get(key);
    if (target === undefined) {
      target = Object.freeze(fill(template, values, rename, suffix));
      made.set(key, target);
    }
    return target;
  };
}

function fill(
  template: TargetTemplate,
  values: Identifiers,
  rename: Readonly<Record<string, string>>,
  suffix: string,
): Target {
  const target: Record<string, string | number> = {};
  for (const [field, text] of Object.entries(template)) {
    if (text === undefined) continue;
    const filled = String(text).replace(PLACEHOLDER, (_, name: string) => textFor(name, values, field));
    if (NUMERIC.has(field)) target[field] = wholeNumber(field, filled);
    else if (field !== "mappingConfig") target[field] = filled;
    else target[field] = (Object.hasOwn(rename, filled) ? rename[filled] : filled) + suffix;
  }
  // The schema guarantees that the fields name a variable.
  return target as unknown as Target;
}

function textFor(name: string, values: Identifiers, field: string): string {
  const value = values[name] ?? "";
  if (value !== "") return value;
  throw new RowError(`the target needs {${name}} as ${field}, and it is empty here`, {
    hint: "Name another identifier in the setting `target` of the trigger's metadata.",
  });
}

function wholeNumber(field: string, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new RowError(`${field} is not a whole number: "${text}"`, { text });
}
