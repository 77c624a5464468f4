/** Units and their conversion (specification, *Unit*). The list of the live service has precedence. */
import { z } from "zod";
import families from "./referentials/unit-families.json" with { type: "json" };
import spellings from "./referentials/unit-spellings.json" with { type: "json" };
import listed from "./referentials/units.json" with { type: "json" };

/** A unit as `GET /units` lists it; fields that only conversion needs may be missing. */
export const listedUnit = z.object({ id: z.number().int(), name: z.string(), symbol: z.string().nullish() });
export type ListedUnit = z.infer<typeof listedUnit>;

export interface Unit {
  readonly id: number;
  readonly name: string;
  readonly symbol: string;
  /** Units convert only within their family. */
  readonly unitFamilyId: number;
  /** Reference unit of the family; the reference unit has its own id here. */
  readonly parentId: number;
  /** `reference = (value - offset) * divisor` */
  readonly divisor: number;
  readonly offset: number;
}

export interface UnitFamily {
  readonly id: number;
  readonly name: string;
}

export const UNITS: readonly Unit[] = listed;
export const UNIT_FAMILIES: readonly UnitFamily[] = families;

const byId = new Map(UNITS.map((unit) => [unit.id, unit]));
const bySymbol = new Map(UNITS.map((unit) => [folded(unit.symbol), unit]));
const byName = new Map(UNITS.map((unit) => [unit.name.toLowerCase(), unit]));
/**
 * Other spellings of units in files. Prefixes are case-sensitive: `mW` and `MW` differ by a factor of 10⁹.
 */
const bySpelling = new Map(Object.entries(spellings).map(([text, id]) => [folded(text), byId.get(id)]));

/** `m³` and `m3`, `℃` and `°C`, and both signs for micro are the same. */
function folded(symbol: string): string {
  return symbol.trim().normalize("NFKC");
}

/**
 * The unit of a symbol (with regard to case), a name (without), or a known spelling of one; undefined when
 * there is none.
 */
export function findUnit(text: string): Unit | undefined {
  const symbol = folded(text);
  return bySymbol.get(symbol) ?? bySpelling.get(symbol) ?? byName.get(symbol.toLowerCase());
}

/** Whether a text names the unit, which may come from another list than ours. */
export function namesUnit(text: string, unit: ListedUnit): boolean {
  const written = folded(text);
  const spellings = [unit.symbol, unit.name].filter((one) => one !== null && one !== undefined);
  if (written === folded(unit.symbol ?? "") || written.toLowerCase() === folded(unit.name).toLowerCase()) return true;
  const meant = findUnit(text);
  return meant !== undefined && spellings.some((one) => findUnit(one)?.id === meant.id);
}

export function unitFamily(unit: Unit): UnitFamily | undefined {
  return UNIT_FAMILIES.find(({ id }) => id === unit.unitFamilyId);
}

/** A double holds any number to fifteen decimal digits; further digits are rounding noise of the factors. */
const DIGITS = 15;

/**
 * Converts `value` from `from` to `to` by the reference unit of their family, which they share. Between units
 * of different families the result has no meaning, so the caller checks first.
 */
export function convertUnit(value: number, from: Unit, to: Unit): number {
  if (from.id === to.id) return value;
  const factor = from.divisor / to.divisor;
  if (from.offset === 0 && to.offset === 0) {
    // Whole factors are exact, and so is division by their inverse.
    if (Number.isInteger(factor)) return value * factor;
    const inverse = to.divisor / from.divisor;
    if (Number.isInteger(inverse)) return value / inverse;
  }
  return Number(((value - from.offset) * factor + to.offset).toPrecision(DIGITS));
}
