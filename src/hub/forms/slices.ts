/** Slices as a line of time: the value at a moment, and the dates until which values hold. */
import type { SliceValue } from "../store/form-values.ts";
import { isoOfMs } from "../time.ts";

/** Far end of the range of dates: the end of an open-ended slice. */
const FAR_END = "9999-12-31T23:59:59.999Z";

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
