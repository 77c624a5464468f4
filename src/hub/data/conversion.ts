/**
 * `TargetUnits`: values in the first unit of the list that belongs to the variable's family (specification, *Data
 * endpoints* and *Unit*). Without such a unit values stay unconverted, as specified; a header of Headgate says so.
 */
import { convertUnit, UNITS, type Unit } from "#wire/index.ts";
import { invalidField } from "../http/problems.ts";
import type { VariableFacts } from "../store/records.ts";

/** Limit on the ids that a warning names; further ones are counted. */
const NAMED_MAX = 20;

const unitsById = new Map(UNITS.map((unit) => [unit.id, unit]));

export interface Conversion {
  /** Unit of the returned values. */
  readonly unitId: number;
  /** Null: as stored. */
  readonly convert: ((value: number) => number) | null;
}

/** Throws a 400 for an unknown unit id. */
export function targetUnits(name: string, ids: readonly number[] | undefined): readonly Unit[] {
  return (ids ?? []).map((id) => {
    const unit = unitsById.get(id);
    if (unit === undefined) throw invalidField(name, `${id} is the id of no unit (GET /units lists them)`);
    return unit;
  });
}

export function conversionOf({ unitId }: Pick<VariableFacts, "unitId">, targets: readonly Unit[]): Conversion {
  const from = unitsById.get(unitId);
  const to = from === undefined ? undefined : targets.find((unit) => unit.unitFamilyId === from.unitFamilyId);
  if (from === undefined || to === undefined) return { unitId, convert: null };
  return { unitId: to.id, convert: to.id === from.id ? null : (value) => convertUnit(value, from, to) };
}

/** Warning about unconverted values; null when there are none. */
export function conversionWarning(variables: readonly VariableFacts[], targets: readonly Unit[]): string | null {
  if (targets.length === 0) return null;
  const families = new Set(targets.map((unit) => unit.unitFamilyId));
  const left = variables.filter(({ unitId }) => !families.has(unitsById.get(unitId)?.unitFamilyId ?? -1));
  if (left.length === 0) return null;
  const named = left.slice(0, NAMED_MAX).map(({ id, unitId }) => `${id} (unit ${unitId})`);
  const more = left.length > NAMED_MAX ? ` and ${left.length - NAMED_MAX} more` : "";
  return `not converted, since no target unit is of their family: variables ${named.join(", ")}${more}`;
}
