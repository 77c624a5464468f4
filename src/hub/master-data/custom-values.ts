/** Columns `source_custom.…` and `site_custom.…`: fields of forms of the account, and other keys of `clientData`. */
import { isDeepStrictEqual } from "node:util";
import { customKey, customPath, valueAt, withValueAt } from "#mapping/readers/master-data/columns.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import { type Fields, isFields, named, type Placed, pathOf, placesOf, put, sameName } from "../forms/names.ts";
import { readValue, UnfitValue } from "../forms/read-value.ts";
import { judgeValues, valuesAsOf } from "../forms/values.ts";
import type { FoundForms, HeldForms, ValuePlan, ValuesEntity } from "../store/form-values.ts";

interface Holder {
  readonly id?: number;
  readonly clientData?: unknown;
}

interface JudgedColumns {
  /** Null: it is refused. */
  readonly plan: ValuePlan | null;
  readonly faults: readonly { readonly field: string; readonly message: string }[];
}

export class CustomValues {
  readonly #found: FoundForms;
  readonly #atMs: number;

  constructor(found: FoundForms, atMs: number) {
    this.#found = found;
    this.#atMs = atMs;
  }

  /** Whether a cell says another value than the entity has now. */
  differs(entity: ValuesEntity, field: string, value: unknown, current: Holder): boolean {
    const held = this.#held(entity, current);
    const shown = valuesAsOf(held, plainOf(current), this.#atMs);
    const key = customKey(field) ?? "";
    const place = placeOf(held, key);
    if (place === undefined) return !isDeepStrictEqual(valueAt(shown, customPath(key)), value);
    try {
      const { form, group } = place;
      const before = valueAt(shown, [form.name, group.name, place.field.name]) ?? null;
      return !isDeepStrictEqual(readValue(place.field, cellOf(place, value)), before);
    } catch (thrown) {
      if (thrown instanceof UnfitValue) return true;
      throw thrown;
    }
  }

  /** The values that an entity gets; a time-sliced one holds from the moment of the file on. */
  judge(entity: ValuesEntity, fields: Fields, current: Holder = {}): JudgedColumns {
    const before = plainOf(current);
    const columns = Object.entries(fields).filter(([field]) => customKey(field) !== null);
    if (columns.length === 0)
      return {
        plan: { clientData: before === null ? undefined : { ...before }, slices: [], references: [] },
        faults: [],
      };
    const held = this.#held(entity, current);
    let values = valuesAsOf(held, before, this.#atMs);
    const faults: { field: string; message: string }[] = [];
    const fieldOf = new Map<string, string>();
    for (const [field, value] of columns) {
      const key = customKey(field) ?? "";
      const place = placeOf(held, key);
      const form = named(held.forms, key.split(".")[0]?.trim() ?? "");
      if (place !== undefined) {
        values = structuredClone(values);
        put(values, place, cellOf(place, value));
        fieldOf.set(pathOf(place), field);
      } else if (form === undefined) values = withValueAt(values, customPath(key), value) as Record<string, unknown>;
      else faults.push({ field, message: `the form ${form.name} has no such field` });
    }
    if (faults.length > 0) return { plan: null, faults };
    try {
      const plan = judgeValues(held, { values, before, atMs: this.#atMs, absentEnds: false });
      const missing = plan.references.filter(({ table, id }) => !this.#found.ids[table].has(id));
      for (const { missing: fault } of missing) faults.push(...faultsOf(fault, fieldOf));
      return { plan: faults.length > 0 ? null : plan, faults };
    } catch (thrown) {
      return { plan: null, faults: faultsOf(thrown, fieldOf) };
    }
  }

  #held(entity: ValuesEntity, { id = 0 }: Holder): HeldForms {
    const { forms, slices } = this.#found;
    return { forms: forms[entity], slices: slices[entity].get(id) ?? [], zone: "UTC" };
  }
}

function plainOf({ clientData }: Holder): Fields | null {
  return isFields(clientData) ? clientData : null;
}

function placeOf({ forms }: HeldForms, key: string): Placed | undefined {
  const levels = customPath(key).join(".");
  return forms
    .flatMap(placesOf)
    .find(({ form, group, field }) => sameName([form.name, group.name, field.name].join("."), levels));
}

/** Cells hold the values of a list as they hold tags. */
function cellOf({ field }: Placed, value: unknown): unknown {
  if (!field.isList || typeof value !== "string") return value;
  const items = value.split("|").map((item) => item.trim());
  return items.filter((item) => item !== "");
}

/** With the columns of the fields that a problem names. */
function faultsOf(thrown: unknown, fieldOf: ReadonlyMap<string, string>) {
  if (!(thrown instanceof HttpProblem)) throw thrown;
  const faults = thrown.errors ?? [{ path: "", message: thrown.message }];
  return faults.map(({ path, message }) => ({ field: fieldOf.get(path) ?? path, message }));
}
