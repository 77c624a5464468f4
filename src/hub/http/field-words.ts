/** Faults of a parameter or a field, in words for its sender: what it has to be, and what came instead. */
import { z } from "zod";
import { shownBeside, shownValue } from "#core/shown-value.ts";

type Issue = Parameters<z.core.$ZodErrorMap>[0];

const UNITS: Readonly<Record<string, string>> = { string: "character", array: "item", map: "entry", set: "item" };
const TYPES: Readonly<Record<string, string>> = {
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  string: "a text",
  array: "a list",
  object: "an object",
  record: "an object",
};

/** For `safeParse`. Undefined: the words of the validator stay. */
export function fieldWords(issue: Issue): string | undefined {
  const { input } = issue;
  if (input === undefined && issue.code !== "unrecognized_keys") return "is missing";
  if (issue.code === "invalid_type") {
    const isInteger = issue.expected === "number" && isWhole(issue.inst);
    const expected = TYPES[isInteger ? "int" : issue.expected];
    return expected === undefined ? undefined : `must be ${expected}, and not ${shownValue(input)}${several(issue)}`;
  }
  if (issue.code === "invalid_union") {
    const kinds = issue.errors.flatMap(([first]) => (first?.code === "invalid_type" ? [TYPES[first.expected]] : []));
    if (kinds.length === 0) return `has no form that is known here: ${shownValue(input)}`;
    return `must be ${[...new Set(kinds)].join(" or ")}, and not ${shownValue(input)}`;
  }
  if (issue.code === "invalid_value") {
    const names = issue.values.map(String);
    return `must be one of ${names.join(", ")}, and not ${shownBeside(input, names)}`;
  }
  if (issue.code === "unrecognized_keys" && issue.inst instanceof z.ZodObject)
    return `has no field ${issue.keys.join(", ")}; it takes ${Object.keys(issue.inst.shape).join(", ")}`;
  if (issue.code === "too_small") return bound("least", issue.origin, Number(issue.minimum), input);
  if (issue.code === "too_big") return bound("most", issue.origin, Number(issue.maximum), input);
  if (issue.code === "invalid_format" && issue.format === "guid")
    return `must be a GUID, such as 01234567-89ab-cdef-0123-456789abcdef, and not ${shownValue(input)}`;
  return undefined;
}

function bound(which: "least" | "most", origin: string, limit: number, input: unknown): string {
  const unit = UNITS[origin];
  if (unit === undefined) return `must be ${limit} at ${which}, and not ${shownValue(input)}`;
  if (which === "least" && limit === 1) return "must not be empty";
  return `must have ${limit} ${unit}s at ${which}`;
}

function isWhole(schema: Issue["inst"]): boolean {
  return schema instanceof z.ZodNumberFormat && schema._zod.def.format === "safeint";
}

/** Many clients write a list with commas. */
function several({ input, path = [] }: Issue): string {
  const isList = typeof input === "string" && /^\s*\d+(\s*,\s*\d+)+\s*$/.test(input);
  const name = String(path[0] ?? "");
  return isList ? `; repeat the name for several, such as ${name}=1&${name}=2` : "";
}
