/** Slices as a line of time: the value at a moment, and the dates until which values hold. */
import type { SliceValue } from "../store/forms.ts";
import type { ValuesEntity } from "../store/records.ts";
import type { HubStore } from "../store/store.ts";
import { isoOfMs } from "../time.ts";
import { isFields, type Placed, placesOf } from "./names.ts";

/** Far end of the range of dates: the end of an open-ended slice. */
const FAR_END = "9999-12-31T23:59:59.999Z";
const FAR_END_MS = Date.parse(FAR_END);

/** As the specification writes a slice. */
export interface ShownSlice {
  readonly EffectiveDate: string;
  readonly Value: unknown;
  readonly EndDate: string;
}

/** The value that holds at a moment; null: none. `slices` of one field, in the order of time. */
export function valueAsOf(slices: readonly SliceValue[], atMs: number): unknown {
  return slices.findLast(({ fromMs }) => fromMs <= atMs)?.value ?? null;
}

/** `slices` of one field, in the order of time. */
export function shownSlices(slices: readonly SliceValue[]): ShownSlice[] {
  return slices.map(({ fromMs, value }, at) => {
    const next = slices[at + 1];
    return {
      EffectiveDate: isoOfMs(fromMs),
      Value: value,
      EndDate: next === undefined ? FAR_END : isoOfMs(next.fromMs),
    };
  });
}

/** A field of one site or source. */
export interface FieldOf {
  readonly entity: ValuesEntity;
  readonly id: number;
  readonly fieldId: number;
}

/** The values of a field over time, read once. */
export interface FieldValues {
  /** In the order of time; one since ever of a field that is not time-sliced. */
  readonly slices: readonly (SliceValue & { readonly endMs: number })[];
  /** Null: no value. */
  asOf(ms: number): unknown;
}

type FieldStore = Pick<HubStore, "forms" | "slices" | "structure">;

/** For calculations. Null: the account has no such field, or no such site or source. */
export async function fieldValues(store: FieldStore, accountId: number, of: FieldOf): Promise<FieldValues | null> {
  const { entity, id, fieldId } = of;
  const everything = { offset: 0, limit: null };
  const { rows: forms } = await store.forms.list(accountId, {}, everything);
  const place = forms
    .filter(({ entityType }) => entityType.toLowerCase() === entity)
    .flatMap(placesOf)
    .find(({ field }) => field.id === fieldId);
  const list = entity === "site" ? store.structure.sites : store.structure.sources;
  const { rows } = await list(accountId, { ids: [id] }, everything);
  const [holder] = rows;
  if (place === undefined || holder === undefined) return null;
  const held = place.field.timeSliced
    ? (await store.slices.of(accountId, entity, [id])).filter((slice) => slice.fieldId === fieldId)
    : [{ fromMs: Number.NEGATIVE_INFINITY, value: plainValue(holder.clientData, place) }];
  const slices = held.map(({ fromMs, value }, at) => ({ fromMs, value, endMs: held[at + 1]?.fromMs ?? FAR_END_MS }));
  return { slices, asOf: (ms) => valueAsOf(slices, ms) };
}

/** Of a field that is not time-sliced; null: none. */
export function plainValue(data: unknown, { form, group, field }: Placed): unknown {
  const fields = isFields(data) && isFields(data[form.name]) ? data[form.name] : {};
  const values = isFields(fields) && isFields(fields[group.name]) ? fields[group.name] : {};
  return (isFields(values) ? values[field.name] : null) ?? null;
}
