/** Checks and keys of targets: exactly one identifier, with one selector unless it is the variable itself. */
import { type IdentifierKind, TARGET_FIELDS, type TargetField } from "#wire/target.ts";
import type { Target } from "./mapper.ts";

const KNOWN: ReadonlySet<string> = new Set(TARGET_FIELDS);
const NUMERIC: ReadonlySet<string> = new Set(["variableId", "sourceId", "variableTypeId"] satisfies TargetField[]);

export interface KnownTarget {
  readonly kind: IdentifierKind;
  /** JSON with the fields in the order of the contract, so that equal targets have equal texts. */
  readonly json: string;
}

/** The target, or why it names no variable. */
export function checkTarget(target: Target): KnownTarget | string {
  if (typeof target !== "object" || target === null) return "the reading has no target";
  const given = target as Readonly<Record<string, unknown>>;
  const fields: Record<string, string | number> = {};
  let kind: IdentifierKind | undefined;
  let selectors = 0;
  for (const field of TARGET_FIELDS) {
    const value = given[field];
    if (value === undefined || value === null) continue;
    const fault = NUMERIC.has(field) ? integerFault(field, value) : textFault(field, value);
    if (fault !== null) return fault;
    fields[field] = value as string | number;
    if (field === "mappingConfig" || field === "variableTypeId") selectors += 1;
    else if (kind !== undefined) return `the target has two identifiers, ${kind} and ${field}; it takes one`;
    else kind = field;
  }
  const unknown = Object.keys(given).find((field) => !KNOWN.has(field));
  if (unknown !== undefined) return `the target has an unknown field ${unknown}`;
  if (kind === undefined)
    return "the target has no identifier (variableId, or a source with mappingConfig or variableTypeId)";
  if (kind === "variableId" && selectors > 0) return "a target with variableId takes no other field";
  if (kind !== "variableId" && selectors !== 1)
    return `the target with ${kind} takes exactly one of mappingConfig and variableTypeId`;
  return { kind, json: JSON.stringify(fields) };
}

function integerFault(field: string, value: unknown): string | null {
  if (!Number.isSafeInteger(value)) return `${field} is not a whole number: ${shown(value)}`;
  // The service would discard the readings in silence. Types begin at 0.
  return Number(value) < 1 && field !== "variableTypeId" ? `${field} is ${value}, and ids begin at 1` : null;
}

function textFault(field: string, value: unknown): string | null {
  if (typeof value !== "string") return `${field} is not text: ${shown(value)}`;
  if (value.trim() === "") return `${field} is empty`;
  return value.isWellFormed() ? null : `${field} is not valid text: it holds half of a character`;
}

export function shown(value: unknown): string {
  const text = typeof value === "string" ? `"${value}"` : String(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
