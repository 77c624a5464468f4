/** The unit tool of the mapper contract: the service does not convert pushed values, so a mapper does. */
import leven from "leven";
import { convertUnit, findUnit, UNITS, type Unit, unitFamily } from "#wire/units.ts";
import { RowError } from "./readers/row-error.ts";
import { shown } from "./targets.ts";

/** The value in the unit `to`. Throws a `RowError` for an unknown unit, and for units of different families. */
export type UnitTool = (value: number, from: string, to: string) => number;

/** Cached, since a file names a handful of units, once a row. */
export function createUnitTool(): UnitTool {
  let fromText: string | undefined;
  let toText: string | undefined;
  let from: Unit | undefined;
  let to: Unit | undefined;

  return (value, fromUnit, toUnit) => {
    if (from === undefined || to === undefined || fromUnit !== fromText || toUnit !== toText) {
      const [knownFrom, knownTo] = convertible(fromUnit, toUnit);
      from = knownFrom;
      to = knownTo;
      fromText = fromUnit;
      toText = toUnit;
    }
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new RowError(`the value to convert from ${from.symbol} to ${to.symbol} is not a finite number`);
    return convertUnit(value, from, to);
  };
}

function convertible(fromText: string, toText: string): [Unit, Unit] {
  const from = knownUnit(fromText);
  const to = knownUnit(toText);
  if (from.unitFamilyId !== to.unitFamilyId)
    throw new RowError(
      `${from.symbol} cannot be converted to ${to.symbol}: one is a unit of ${familyWords(from)}, the ` +
        `other of ${familyWords(to)}`,
      { text: fromText, hint: `Units of ${familyWords(to)} are ${symbolsOf(to)}.` },
    );
  return [from, to];
}

function knownUnit(text: string): Unit {
  if (typeof text !== "string" || text.trim() === "")
    throw new RowError("the unit is missing", {
      hint: "The column of the unit is empty or not in the file.",
    });
  const unit = findUnit(text);
  if (unit !== undefined) return unit;
  const near = nearestUnits(text);
  throw new RowError(`there is no unit ${shown(text)}`, {
    text,
    ...(near.length === 0
      ? {}
      : { hint: `Is ${near.map((one) => `${one.symbol} (${one.name})`).join(" or ")} meant?` }),
  });
}

/** The symbol without case, blanks, dots and repeated letters. */
function spelling(symbol: string): string {
  return symbol
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[\s._^*]/g, "")
    .replaceAll(/(.)\1+/g, "$1");
}

/**
 * The units with the most similar spelling; several only when they differ in case alone. One letter more, less or
 * different is another unit for a symbol (qm/h is not km/h), so only names may differ in letters.
 */
function nearestUnits(text: string): readonly Unit[] {
  const wanted = text.trim().slice(0, 60).normalize("NFKC").toLowerCase();
  const ranked = UNITS.map((unit) => {
    const symbol = spelling(wanted) === spelling(unit.symbol) ? 0 : Number.POSITIVE_INFINITY;
    const name = wanted.length < NAME_MIN ? Number.POSITIVE_INFINITY : leven(wanted, unit.name.toLowerCase());
    return { unit, distance: Math.min(symbol, name) };
  }).sort((a, b) => a.distance - b.distance);
  const best = ranked[0]?.distance ?? Number.POSITIVE_INFINITY;
  if (best > Math.max(1, wanted.length / 3)) return [];
  return ranked
    .filter(({ distance }) => distance === best)
    .map(({ unit }) => unit)
    .slice(0, 3);
}

/** Number of letters from which a text may be a misspelt name. */
const NAME_MIN = 5;

function familyWords(unit: Unit): string {
  return unitFamily(unit)?.name.toLowerCase() ?? `family ${unit.unitFamilyId}`;
}

function symbolsOf({ unitFamilyId }: Unit): string {
  return UNITS.filter((unit) => unit.unitFamilyId === unitFamilyId)
    .map(({ symbol }) => symbol)
    .join(", ");
}
