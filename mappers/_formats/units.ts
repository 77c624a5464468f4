/** The setting `units` of mappers of fixed formats: the units into which values are converted. */
import { type MapContext, z } from "headgate/mapper";

export function unitsSetting(example: string) {
  return z
    .record(z.string().min(1), z.string().min(1))
    .default({})
    .describe(`Units to convert into, by the unit of the file, such as \`${example}\`. Others stay as they are.`);
}

export interface Converter {
  /** The unit of emitted values that the file gives in `from`. */
  unitOf(from: string): string;
  /** Throws a `RowError` for units of different families. */
  convert(value: number, from: string): number;
}

export function unitConverter(units: Readonly<Record<string, string>>, unit: MapContext<unknown>["unit"]): Converter {
  const unitOf = (from: string): string => (Object.hasOwn(units, from) ? (units[from] ?? from) : from);
  return {
    unitOf,
    convert(value, from) {
      const to = unitOf(from);
      return to === from ? value : unit(value, from, to);
    },
  };
}
