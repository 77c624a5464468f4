/** Slices as rows of their table. */
import type { Row } from "./database.ts";

export interface SliceValue {
  readonly fromMs: number;
  /** Null: no value from then on. */
  readonly value: unknown;
}
export interface HeldSlice extends SliceValue {
  readonly id: number;
  readonly fieldId: number;
}

export const sliceColumns = "id, field_id, from_ms, value";

export function sliceOfRow(one: Row): HeldSlice {
  return {
    id: Number(one["id"]),
    fieldId: Number(one["field_id"]),
    fromMs: Number(one["from_ms"]),
    value: JSON.parse(String(one["value"])),
  };
}
