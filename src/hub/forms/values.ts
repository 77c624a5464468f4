/** Judges the values of a body by the forms of the account, and says what is to be written. */
import { isDeepStrictEqual } from "node:util";
import { invalidRequest } from "#wire/http-problem.ts";
import { FIELD_TYPES, FORM_ENTITIES, ianaZone } from "#wire/index.ts";
import { invalidField } from "../http/problems.ts";
import type { HeldForms, Reference, ValuePlan } from "../store/form-values.ts";
import type { HeldSlice, SliceValue, StoredForm } from "../store/forms.ts";
import { PERIOD_RULE, readInstant } from "../time.ts";
import { type Fields, isFields, named, type Placed, pathOf, placesOf, put, sameName } from "./names.ts";
import { type FieldValue, readValue, UnfitValue } from "./read-value.ts";
import { plainValue, valueAsOf } from "./slices.ts";

export interface GivenValues {
  readonly values: Fields | undefined;
  /** Values that are not time-sliced, as they are stored. */
  readonly before: Fields | null;
  /** The moment of the request. */
  readonly atMs: number;
  /** A time-sliced field that is left out has no value from now on; otherwise it stays as it is. */
  readonly absentEnds: boolean;
}

export interface JudgedValues extends ValuePlan {
  /** Forms that the account does not define for the entity; their values are kept as they are. */
  readonly unknown: readonly string[];
}

/** The values that an entity has at a moment, also the time-sliced ones. */
export function valuesAsOf({ forms, slices }: HeldForms, before: Fields | null, atMs: number): Record<string, unknown> {
  const shown = structuredClone(before ?? {}) as Record<string, unknown>;
  for (const place of forms.flatMap(placesOf).filter(({ field }) => field.timeSliced)) {
    const value = valueAsOf(slicesOf(slices, place), atMs);
    if (value !== null) put(shown, place, value);
  }
  return shown;
}

/** Throws a 400 that names each field. */
export function judgeValues(held: HeldForms, given: GivenValues): JudgedValues {
  const judging = new Judging(held, given);
  judging.all();
  const { faults, values, slices, references, unknown } = judging;
  if (faults.length > 0) {
    const some = faults.slice(0, 20);
    throw invalidRequest(some.map(({ path, message }) => `${path}: ${message}`).join("; "), some);
  }
  return { clientData: Object.keys(values).length === 0 ? undefined : values, slices, references, unknown };
}

function slicesOf(slices: readonly HeldSlice[], { field }: Placed): readonly HeldSlice[] {
  return slices.filter(({ fieldId }) => fieldId === field.id);
}

class Judging {
  readonly faults: { readonly path: string; readonly message: string }[] = [];
  readonly out: Record<string, unknown> = {};
  /** Of no form; whatever their names are. */
  readonly #free: [string, unknown][] = [];
  readonly slices: { fieldId: number; all: boolean; values: readonly SliceValue[] }[] = [];
  readonly references: Reference[] = [];
  readonly unknown: string[] = [];
  readonly #held: HeldForms;
  readonly #given: GivenValues;
  readonly #shown: Fields;

  constructor(held: HeldForms, given: GivenValues) {
    this.#held = held;
    this.#given = given;
    this.#shown = valuesAsOf(held, given.before, given.atMs);
  }

  all(): void {
    const { values = {}, before } = this.#given;
    const left = new Set(this.#held.forms);
    for (const [name, groups] of Object.entries(values)) {
      const form = named(this.#held.forms, name);
      if (form === undefined) {
        this.#free.push([name, groups]);
        const stored = Object.hasOwn(before ?? {}, name) ? before?.[name] : undefined;
        if (!isDeepStrictEqual(groups, stored)) this.unknown.push(name);
      } else if (!left.delete(form)) this.#fault(`clientData.${name}`, `the form ${form.name} is there twice`);
      // Only what changes is judged, since a definition may have become stricter.
      else if (name === form.name && isDeepStrictEqual(groups, this.#shown[name])) this.#keep(form);
      else if (groups !== null) this.#form(form, groups);
      else left.add(form);
    }
    for (const form of left) this.#form(form, {}, true);
  }

  get values(): Record<string, unknown> {
    return { ...Object.fromEntries(this.#free), ...this.out };
  }

  #keep({ name }: StoredForm): void {
    const stored = this.#given.before?.[name];
    if (stored !== undefined) this.out[name] = stored;
  }

  /** `isAbsent`: the values have no such form. */
  #form(form: StoredForm, groups: unknown, isAbsent = false): void {
    const path = `clientData.${form.name}`;
    if (!isFields(groups)) {
      this.#fault(path, "must be an object of groups");
      return;
    }
    const found = new Map<number, boolean>();
    for (const [groupName, fields] of Object.entries(groups)) {
      const group = named(form.groups, groupName);
      const words = `the form ${form.name} has no group ${groupName}`;
      if (group === undefined) this.#fault(`${path}.${groupName}`, `${words}; it has ${namesOf(form.groups)}`);
      else if (fields !== null && !isFields(fields))
        this.#fault(`${path}.${group.name}`, "must be an object of fields");
      else
        for (const [name, value] of Object.entries(fields ?? {})) {
          const field = named(group.fields, name);
          const why = `the group ${group.name} has no field ${name}; it has ${namesOf(group.fields)}`;
          if (field === undefined) this.#fault(`${path}.${group.name}.${name}`, why);
          else if (found.has(field.id)) this.#fault(`${path}.${group.name}.${name}`, "is there twice");
          else found.set(field.id, this.#value({ form, group, field }, value));
        }
    }
    const places = placesOf(form);
    for (const place of places) if (!found.has(place.field.id)) found.set(place.field.id, this.#absent(place));
    if ((isAbsent && this.#given.absentEnds) || ![...found.values()].includes(true)) return;
    // A form that is left out keeps its slices, and so what is required beside them.
    const isLost = (place: Placed) => !isAbsent || plainValue(this.#given.before, place) !== null;
    for (const place of places)
      if (place.field.required && found.get(place.field.id) === false && isLost(place))
        this.#fault(pathOf(place), `is required where the form ${form.name} has values`);
  }

  /** Returns whether the field has a value, as the next two methods. */
  #value(place: Placed, raw: unknown): boolean {
    try {
      if (place.field.timeSliced) return this.#sliced(place, raw);
      const value = readValue(place.field, raw);
      if (value !== null) put(this.out, place, value);
      this.#refer(place, value);
      return value !== null;
    } catch (thrown) {
      if (!(thrown instanceof UnfitValue)) throw thrown;
      this.#fault(pathOf(place), thrown.message);
      return true;
    }
  }

  #absent(place: Placed): boolean {
    const held = slicesOf(this.#held.slices, place);
    if (this.#given.absentEnds && valueAsOf(held, this.#given.atMs) !== null) return this.#sliced(place, null);
    return held.length > 0;
  }

  /** A list of slices replaces those that are there; another value than the current one holds from now on. */
  #sliced(place: Placed, raw: unknown): boolean {
    const { field } = place;
    const held = slicesOf(this.#held.slices, place);
    const values = listedSlices(field.isList, raw)?.map((one) => this.#slice(place, one));
    if (values !== undefined) {
      const sorted = values.toSorted((one, other) => one.fromMs - other.fromMs);
      const twice = sorted.find(({ fromMs }, at) => sorted[at + 1]?.fromMs === fromMs);
      if (twice !== undefined) throw new UnfitValue(`has two slices from ${new Date(twice.fromMs).toISOString()}`);
      const before = held.map(({ fromMs, value }) => ({ fromMs, value }));
      if (!isDeepStrictEqual(before, sorted)) this.slices.push({ fieldId: field.id, all: true, values: sorted });
      return sorted.some(({ value }) => value !== null);
    }
    const value = readValue(field, raw);
    const { atMs } = this.#given;
    if (!isDeepStrictEqual(value, valueAsOf(held, atMs))) {
      this.#refer(place, value);
      this.slices.push({ fieldId: field.id, all: false, values: [{ fromMs: atMs, value }] });
    }
    return value !== null || held.some((slice) => slice.value !== null);
  }

  #slice(place: Placed, raw: Fields): SliceValue {
    if (!Object.keys(raw).some((name) => sameName(name, "Value")))
      throw new UnfitValue("has a slice without a Value; null means no value from then on");
    const slice = readSlice(place, raw, this.#held.zone);
    this.#refer(place, slice.value as FieldValue);
    return slice;
  }

  #refer(place: Placed, value: FieldValue): void {
    this.references.push(...referencesOf(place, value));
  }

  #fault(path: string, message: string): void {
    this.faults.push({ path, message });
  }
}

export function referencesOf(place: Placed, value: FieldValue): Reference[] {
  if (place.field.type !== FIELD_TYPES.Reference || value === null) return [];
  const table = place.field.referenceTo === FORM_ENTITIES.Site ? "site" : "source";
  return [value].flat().map((id) => {
    const missing = invalidField(pathOf(place), `no ${table} ${id} in this account`);
    return { table, id: Number(id), missing };
  });
}

/** The date and the value of a slice, whose names come in any case. Throws `UnfitValue`. */
export function readSlice({ field }: Placed, raw: Fields, zone: string): SliceValue & { readonly value: FieldValue } {
  const given = (name: string) => Object.entries(raw).find(([key]) => sameName(key, name))?.[1];
  const fromMs = readFrom(given("FromDate") ?? given("EffectiveDate"), zone);
  return { fromMs, value: readValue(field, given("Value")) };
}

/** A date without a zone is in that of the site or the source. Throws `UnfitValue`. */
function readFrom(raw: unknown, zone: string): number {
  const read = readInstant(typeof raw === "string" ? raw : "", ianaZone(zone) ?? "UTC", PERIOD_RULE);
  if (read.kind === "instant") return read.ms;
  throw new UnfitValue(
    `needs a FromDate such as 2026-03-01 or 2026-03-01T00:00:00Z, and not ${JSON.stringify(raw) ?? "none"}` +
      (typeof raw === "string" ? `: ${read.reason}` : ""),
    "FromDate",
  );
}

/** Undefined: it is a value, and no list of slices. */
function listedSlices(isList: boolean, raw: unknown): readonly Fields[] | undefined {
  if (!Array.isArray(raw) || (isList && raw.length === 0)) return undefined;
  return raw.every(isFields) ? raw : undefined;
}

function namesOf(items: readonly { readonly name: string }[]): string {
  return items.length === 0 ? "none" : items.map(({ name }) => name).join(", ");
}
