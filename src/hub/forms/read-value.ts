/** Values of form fields: what each type takes, and how it is kept. */
import { FIELD_TYPES } from "#wire/index.ts";
import type { NewField } from "../store/forms.ts";
import { readInstant } from "../time.ts";

export type Scalar = string | number | boolean;
/** Null: no value. */
export type FieldValue = Scalar | readonly Scalar[] | null;

/** A value that cannot be taken; the message completes the name of the field. */
export class UnfitValue extends Error {
  /** Of a slice. */
  readonly field: "Value" | "FromDate";

  constructor(message: string, field: "Value" | "FromDate" = "Value") {
    super(message);
    this.field = field;
  }
}

const TEXT_MAX = 4_000;
const ITEMS_MAX = 1_000;
/** Of all texts of a list. */
const LIST_CHARACTERS_MAX = 100_000;
const QUOTED_MAX = 60;

/** Throws `UnfitValue`. A list without items, an empty text and null are no value. */
export function readValue(field: NewField, raw: unknown): FieldValue {
  if (raw === null || raw === undefined || raw === "") return null;
  if (!field.isList) return readScalar(field, raw);
  const items = Array.isArray(raw) ? raw : [raw];
  if (items.length > ITEMS_MAX) throw new UnfitValue(`must have ${ITEMS_MAX} values at most, and not ${items.length}`);
  const values = items.map((item) => readScalar(field, item));
  const characters = values.reduce((sum: number, value) => sum + String(value).length, 0);
  if (characters > LIST_CHARACTERS_MAX)
    throw new UnfitValue(
      `must have ${LIST_CHARACTERS_MAX} characters at most in all its values, and not ${characters}`,
    );
  return values.length === 0 ? null : values;
}

function readScalar(field: NewField, raw: unknown): Scalar {
  switch (field.type) {
    case FIELD_TYPES.Number:
      return readNumber(raw);
    case FIELD_TYPES.Boolean:
      return readBoolean(raw);
    case FIELD_TYPES.Date:
      return readDate(raw);
    case FIELD_TYPES.Reference:
      return readReference(field, raw);
    case FIELD_TYPES.List:
      return readOption(field, raw);
    default:
      return readText(raw);
  }
}

function readText(raw: unknown): string {
  if (typeof raw !== "string") throw unfit("a text", raw);
  if (raw.length > TEXT_MAX) throw new UnfitValue(`must have ${TEXT_MAX} characters at most`);
  return raw.toWellFormed();
}

/** Null: the text is no number. */
export function numberOf(text: string): number | null {
  const number = Number(text);
  return /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) && Number.isFinite(number) ? number : null;
}

function readNumber(raw: unknown): number {
  const number = typeof raw === "string" ? numberOf(raw) : raw;
  if (typeof number !== "number" || !Number.isFinite(number))
    throw unfit(hasComma(raw) ? "a number with a decimal point" : "a number", raw);
  return number;
}

function hasComma(raw: unknown): boolean {
  return typeof raw === "string" && /^\s*[+-]?\d+,\d+\s*$/.test(raw);
}

function readBoolean(raw: unknown): boolean {
  const word = String(raw).toLowerCase();
  if (typeof raw !== "boolean" && word !== "true" && word !== "false") throw unfit("true or false", raw);
  return word === "true";
}

/**
 * A date alone is kept as it is, and so is a midnight without a zone; an instant is kept in UTC. Kept texts are in the
 * order of time.
 */
function readDate(raw: unknown): string {
  const text = typeof raw === "string" ? raw.trim() : "";
  const [, day, time] = /^(\d{4}-\d{2}-\d{2})(?:T(.*))?$/i.exec(text) ?? [];
  if (day === undefined) throw unfit("a date, such as 2026-03-01 or 2026-03-01T06:00:00Z", raw);
  const read = readInstant(text, "UTC", { repeated: "earlier", skipped: "refuse" });
  if (read.kind === "refused") throw unfit("a date that exists", raw);
  if (time === undefined || /^00:00(:00([.,]0+)?)?$/.test(time)) return day;
  if (!/(Z|[+-]\d{2}(:?\d{2})?)$/i.test(time)) throw unfit("a date alone, or a time with Z or an offset", raw);
  return new Date(read.ms).toISOString();
}

function readReference(field: NewField, raw: unknown): number {
  const id = typeof raw === "string" && /^\d{1,15}$/.test(raw) ? Number(raw) : raw;
  const what = field.referenceTo === 1 ? "site" : "source";
  if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 1) throw unfit(`the id of a ${what}`, raw);
  return id;
}

function readOption(field: NewField, raw: unknown): string {
  const text = readText(raw);
  if (field.options === null) return text;
  const found = field.options.find((option) => option.toLowerCase() === text.toLowerCase());
  if (found !== undefined) return found;
  const some = field.options.slice(0, 20).join(", ");
  throw unfit(`one of ${some}${field.options.length > 20 ? ", …" : ""}`, raw);
}

function unfit(expected: string, raw: unknown): UnfitValue {
  const words = JSON.stringify(raw) ?? "nothing";
  const shown = Array.isArray(raw) ? "a list" : words.length > QUOTED_MAX ? `${words.slice(0, QUOTED_MAX)}…` : words;
  return new UnfitValue(`must be ${expected}, and not ${shown}`);
}
