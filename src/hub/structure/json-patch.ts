/**
 * Applies a JSON Patch (RFC 6902) to the fields of an entity. Paths reach only own properties, never those that
 * JavaScript gives every object, and growth is limited at each operation, since a series of `copy` operations doubles a
 * document again and again.
 */
import jsonPatch, { type Operation } from "fast-json-patch";
import { shownBeside, shownValue } from "#core/shown-value.ts";
import { invalidRequest } from "#wire/http-problem.ts";
import { isFields, sameName } from "../forms/names.ts";
import { unfit } from "../http/problems.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Operations of one patch. */
const OPERATIONS_MAX = 1_000;
/** Names of the prototype chain; as the name of a field each would mislead the code that reads it. */
const RESERVED: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);
const OPERATIONS = ["add", "remove", "replace", "move", "copy", "test"] as const;
/** Operations whose path must exist already. */
const AT_EXISTING: ReadonlySet<string> = new Set(["remove", "replace", "test"]);

/** `bytesMax`: size limit of the document. Throws a 400 that names the operation; the given fields are not changed. */
export function applyPatch(current: Fields, operations: readonly Operation[], bytesMax: number): Fields {
  if (operations.length > OPERATIONS_MAX)
    throw invalidRequest(
      `the patch has ${operations.length} operations, and at most ${OPERATIONS_MAX} are taken: send it in parts`,
    );
  const why = unfit(operations);
  if (why !== null) throw invalidRequest(why);
  const document = structuredClone(current);
  let bytesLeft = Math.max(0, bytesMax - sizeOf(current));
  for (const [index, operation] of operations.entries()) {
    const misshapen = misshapenWords(operation);
    if (misshapen !== null) throw invalidRequest(`operation ${index} of the patch: ${misshapen}`);
    requireOwn(document, operation, index);
    bytesLeft -= growthBy(document, operation);
    if (bytesLeft < 0)
      throw invalidRequest(
        `operation ${index} of the patch makes the document larger than ${bytesMax} bytes; nothing was changed`,
      );
    applyOne(document, operation, index);
  }
  return document;
}

/** Objects merge level by level (RFC 7396), so that a patch of one field leaves the others. */
export function mergedValues(
  current: Fields,
  entries: readonly (readonly [string, unknown])[],
): readonly (readonly [string, unknown])[] {
  const why = unfit(Object.fromEntries(entries));
  if (why !== null) throw invalidRequest(why);
  return entries.map(([name, value]) => {
    const merged = ["clientData", "calculated"].find((field) => field.toLowerCase() === name.toLowerCase());
    return merged !== undefined && isFields(value) ? [name, mergePatch(current[merged] ?? {}, value)] : [name, value];
  });
}

/** Names are matched without regard to case. */
function mergePatch(current: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const fields = new Map(isFields(current) ? Object.entries(current) : []);
  for (const [name, value] of Object.entries(patch)) {
    const own = fields.has(name) ? name : ([...fields.keys()].find((known) => sameName(known, name)) ?? name);
    if (value === null) fields.delete(own);
    else fields.set(own, mergePatch(fields.get(own), value));
  }
  return Object.fromEntries(fields);
}

function applyOne(document: Fields, operation: Operation, index: number): void {
  try {
    jsonPatch.applyOperation(document, operation, true, true, true, index);
  } catch (thrown) {
    if (!(thrown instanceof jsonPatch.JsonPatchError)) throw thrown;
    throw invalidRequest(`operation ${index} of the patch cannot be done: ${refusalWords(document, operation)}`);
  }
}

/** Why something is no operation; null when it is one. */
function misshapenWords(operation: unknown): string | null {
  if (!isFields(operation)) return `must be an object, and not ${shownValue(operation)}`;
  const { op, path, from, value } = operation;
  if (op === undefined) return `op is missing: one of ${OPERATIONS.join(", ")}`;
  if (!OPERATIONS.some((known) => known === op))
    return `op must be one of ${OPERATIONS.join(", ")}, and not ${shownBeside(op, OPERATIONS)}`;
  const hasFrom = op === "move" || op === "copy";
  for (const [name, pointer] of [["path", path] as const, ...(hasFrom ? [["from", from] as const] : [])]) {
    if (pointer === undefined) return `${name} is missing`;
    if (typeof pointer !== "string" || !/^(?:\/|$)/.test(pointer))
      return `${name} must be a text that begins with a slash, such as "/name", and not ${shownValue(pointer)}`;
  }
  return value === undefined && !hasFrom && op !== "remove" ? "value is missing" : null;
}

/** A well-formed operation at an own path is refused for a test that fails, or for its place in a list. */
function refusalWords(document: Fields, operation: Operation): string {
  const path = shownValue(operation.path);
  const steps = stepsOf(operation.path);
  if (operation.op === "test") {
    const [wanted, found] = [operation.value, valueAt(document, steps)].map(shownValue);
    const differs = wanted === found ? "is another one than the test names" : `is not ${wanted}, but ${found}`;
    return `it is a test, and the value at ${path} ${differs}`;
  }
  const parent = valueAt(document, steps.slice(0, -1));
  if (!Array.isArray(parent)) return `the path ${path} leads to nothing`;
  return `the path ${path} must end in the place of an item, from 0 to ${parent.length}, or in "-" for the end`;
}

/** An upper bound: bytes that an operation removes are not subtracted. */
function growthBy(document: Fields, operation: Operation): number {
  if (operation.op === "add" || operation.op === "replace") return sizeOf(operation.value);
  return operation.op === "copy" ? sizeOf(valueAt(document, stepsOf(operation.from))) : 0;
}

function sizeOf(value: unknown): number {
  return (JSON.stringify(value) ?? "").length;
}

function requireOwn(document: Fields, operation: Operation, index: number): void {
  const refuse = (path: string, why: string) =>
    invalidRequest(`operation ${index} of the patch cannot be done: the path ${path.slice(0, 200)} ${why}`);
  const { path, from } = operation as { readonly path?: unknown; readonly from?: unknown };
  for (const pointer of [path, from]) {
    if (typeof pointer !== "string") continue;
    const steps = stepsOf(pointer);
    const reserved = steps.find((step) => RESERVED.has(step));
    if (reserved !== undefined) throw refuse(pointer, `names ${reserved}, which is no name of a field`);
    if (steps.length === 0 && operation.op !== "test") throw refuse('""', "is the whole entity; name its fields");
    const mayBeNew = pointer === path && !AT_EXISTING.has(operation.op);
    const known = mayBeNew ? steps.slice(0, -1) : steps;
    const found = valueAt(document, known);
    if (found === undefined || (mayBeNew && found === null)) throw refuse(pointer, "leads to nothing");
  }
}

function stepsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Undefined: there is no value. */
function valueAt(document: Fields, steps: readonly string[]): unknown {
  let value: unknown = document;
  for (const step of steps) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Fields)[step];
  }
  return value;
}
