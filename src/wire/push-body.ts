/**
 * The body of a push (specification, *Push endpoints*): the shape is checked before the response, the content
 * afterwards. Written by hand since bodies hold tens of thousands of readings; `push.ts` is the same contract
 * as a schema.
 */
import { shownValue } from "#core/shown-value.ts";
import { jsonFaultWords } from "./json-fault.ts";
import type { PushElement, PushReading } from "./push.ts";

/** A fault of a body. `path` is its place, such as `[0].data[3].value`; null when the body is not JSON. */
export class PushBodyFault extends Error {
  readonly path: string | null;
  /** The fault at the path, such as `must be a number`. */
  readonly words: string;

  constructor(path: string | null, words: string) {
    super(path === null ? words : `${path === "" ? "the body" : path} ${words}`);
    this.name = "PushBodyFault";
    this.path = path;
    this.words = words;
  }
}

const ELEMENT_FIELDS = {
  variableid: ["variableId", "integer"],
  sourceid: ["sourceId", "integer"],
  variabletypeid: ["variableTypeId", "integer"],
  sourceserialnumber: ["sourceSerialNumber", "string"],
  sourceean: ["sourceEan", "string"],
  sourcename: ["sourceName", "string"],
  meternumber: ["meterNumber", "string"],
  mappingconfig: ["mappingConfig", "string"],
  version: ["version", "string"],
  tags: ["tags", "tags"],
  data: ["data", "data"],
} as const;
const READING_FIELDS = {
  date: ["date", "string"],
  value: ["value", "number"],
  version: ["version", "string"],
  tags: ["tags", "tags"],
} as const;
/** The service reads these from the token; in a body they would claim another identity. */
const FORBIDDEN = new Set(["accountid", "userid", "role"]);

type Fields = Readonly<Record<string, readonly [string, string]>>;

/** Names of fields that no push has, each with where it first stands and the names that are known there. */
export type UnknownNames = Map<string, { readonly path: string; readonly known: readonly string[] }>;
const UNKNOWN_MAX = 100;

function noteUnknown(unknown: UnknownNames, name: string, { path, fields }: { path: string; fields: Fields }): void {
  if (unknown.size >= UNKNOWN_MAX || unknown.has(name)) return;
  unknown.set(name, { path, known: Object.values(fields).map(([known]) => known) });
}

/**
 * The elements with the names of the contract, without nulls and unknown fields. Throws a `PushBodyFault`.
 * See `readPushParts` for large bodies.
 */
export function readPushBody(bytes: Uint8Array, unknown?: UnknownNames): readonly PushElement[] {
  const body = parseJson(bytes);
  if (!Array.isArray(body)) throw fault("", `must be an array of elements, and not ${shownValue(body)}`);
  return body.map((element, index) => readElement(element, index, 0, unknown));
}

export function countReadings(elements: readonly PushElement[]): number {
  return elements.reduce((sum, element) => sum + element.data.length, 0);
}

function parseJson(bytes: Uint8Array): unknown {
  let text: string | null = null;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return JSON.parse(text);
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError || thrown instanceof TypeError)) throw thrown;
    const why = text === null ? "it is not UTF-8" : jsonFaultWords(text);
    throw new PushBodyFault(null, `the body is not valid JSON: ${why}`);
  }
}

/**
 * Faults name the `index` of the element in the body, and the index of its first reading in the element's
 * data.
 */
export function readElement(input: unknown, index: number, firstReading = 0, unknown?: UnknownNames): PushElement {
  const element = isPlain(input, PLAIN_ELEMENT) ? input : readFields(input, ELEMENT_FIELDS, `[${index}]`, unknown);
  const data = element["data"];
  if (!Array.isArray(data)) throw fault(`[${index}].data`, "is missing");
  for (let reading = 0; reading < data.length; reading += 1)
    if (!isPlain(data[reading], PLAIN_READING) || !hasDateAndValue(data[reading]))
      data[reading] = readReading(data[reading], `[${index}].data[${firstReading + reading}]`, unknown);
  return element as unknown as PushElement;
}

/** The usual form of fields, which need no further check: exact names, no nulls, no tags. */
const PLAIN_READING = new Map(plainFields(READING_FIELDS));
const PLAIN_ELEMENT = new Map(plainFields(ELEMENT_FIELDS));

function plainFields(fields: Fields): [string, string][] {
  return Object.values(fields)
    .filter(([, type]) => type !== "tags")
    .map(([name, type]) => [name, type]);
}

function isPlain(input: unknown, fields: ReadonlyMap<string, string>): input is Record<string, unknown> {
  if (typeof input !== "object" || input === null || Array.isArray(input)) return false;
  const values = input as Record<string, unknown>;
  for (const name in values) {
    const type = fields.get(name);
    if (type === undefined || !hasType(values[name], type)) return false;
  }
  return true;
}

function hasDateAndValue(reading: Record<string, unknown>): boolean {
  return reading["date"] !== undefined && reading["value"] !== undefined;
}

function readReading(input: unknown, path: string, unknown: UnknownNames | undefined): PushReading {
  const reading = readFields(input, READING_FIELDS, path, unknown);
  if (reading["date"] === undefined) throw fault(`${path}.date`, "is missing");
  if (reading["value"] === undefined) throw fault(`${path}.value`, "is missing");
  return reading as PushReading;
}

/** Names in any case, nulls and unknown names ignored, types checked. */
function readFields(
  input: unknown,
  fields: Fields,
  path: string,
  unknown: UnknownNames | undefined,
): Record<string, unknown> {
  if (typeof input !== "object" || input === null || Array.isArray(input))
    throw fault(path, `must be an object, and not ${shownValue(input)}`);
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(input)) {
    const lower = key.toLowerCase();
    if (FORBIDDEN.has(lower)) throw fault(`${path}.${key}`, "must not be in the body; it is read from the token");
    const field = Object.hasOwn(fields, lower) ? fields[lower] : undefined;
    if (value === null) continue;
    if (field === undefined) {
      if (unknown !== undefined) noteUnknown(unknown, key, { path: `${path}.${key}`, fields });
      continue;
    }
    if (!hasType(value, field[1])) throw fault(`${path}.${key}`, misfitWords(field[1], value));
    out[field[0]] = field[1] === "tags" ? withoutNulls(value) : value;
  }
  return out;
}

const EXPECTED: Readonly<Record<string, string>> = {
  integer: "an integer",
  string: "a string",
  number: "a number",
  tags: "an object of string to string",
  data: "an array of readings",
};

/** Of tags, the first that is no text is named. */
function misfitWords(type: string, value: unknown): string {
  const words = `must be ${EXPECTED[type]}, and not `;
  if (type !== "tags" || typeof value !== "object" || value === null || Array.isArray(value))
    return words + shownValue(value);
  const misfit = Object.entries(value).find(([, tag]) => typeof tag !== "string" && tag !== null);
  return `${words}${shownValue(misfit?.[1])} (${shownValue(misfit?.[0])})`;
}

function hasType(value: unknown, type: string): boolean {
  if (type === "integer") return Number.isSafeInteger(value);
  if (type === "data") return Array.isArray(value);
  if (type !== "tags") return typeof value === type;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((tag) => typeof tag === "string" || tag === null);
}

function withoutNulls(tags: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries(tags as object).filter(([, tag]) => tag !== null));
}

function fault(path: string, message: string): PushBodyFault {
  return new PushBodyFault(path, message);
}
