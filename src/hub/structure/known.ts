/** Checks ids of referentials in bodies: an unknown id would be stored silently without a meaning. */
import {
  AGGREGATE_NAMES,
  ENERGY_TYPES,
  ENERGY_USAGES,
  GATEWAY_TYPES,
  ianaZone,
  type Named,
  QUANTITY_TYPES,
  SITE_TYPES,
  SOURCE_TYPES,
  TIME_PERIODS,
  UNITS,
  VARIABLE_TYPES,
} from "../../wire/index.ts";
import { invalidField } from "../http/problems.ts";
import type { StructureEntity } from "../store/store.ts";

const idsOf = (list: readonly Pick<Named, "id">[]) => new Set(list.map(({ id }) => id));
const keysOf = (map: Readonly<Record<string, string>>) => new Set(Object.keys(map).map(Number));

type Referential = { readonly ids: ReadonlySet<number>; readonly path: string };

const REFERENTIALS: Readonly<Record<StructureEntity, Readonly<Record<string, Referential>>>> = {
  site: { typeId: { ids: idsOf(SITE_TYPES), path: "/sitetypes" } },
  source: {
    sourceTypeId: { ids: idsOf(SOURCE_TYPES), path: "/sourceTypes" },
    energyTypeId: { ids: idsOf(ENERGY_TYPES), path: "/energyTypes" },
    energyUsageId: { ids: idsOf(ENERGY_USAGES), path: "/energyUsages" },
    gatewayTypeId: { ids: idsOf(GATEWAY_TYPES), path: "/gatewayTypes" },
  },
  variable: {
    variableTypeId: { ids: idsOf(VARIABLE_TYPES), path: "/variableTypes" },
    unitId: { ids: idsOf(UNITS), path: "/units" },
    granularityTimeBase: { ids: keysOf(TIME_PERIODS), path: "/timePeriods" },
    quantityType: { ids: keysOf(QUANTITY_TYPES), path: "/quantityTypes" },
    aggregate: { ids: keysOf(AGGREGATE_NAMES), path: "/aggregates" },
  },
};

/**
 * Throws a 400 that names the field and the list of its values. Values that the entity already had (`current`) are not
 * checked.
 */
export function requireKnown(entity: StructureEntity, body: object, current: object = {}): void {
  const before = new Map(Object.entries(current));
  for (const [field, value] of Object.entries(body)) {
    if (value === undefined || value === before.get(field)) continue;
    if (field === "timeZoneId" && ianaZone(String(value)) === undefined)
      throw invalidField(field, `${value} is neither an IANA nor a Windows time zone (GET /timezones)`);
    const referential = REFERENTIALS[entity][field];
    if (referential !== undefined && !referential.ids.has(Number(value)))
      throw invalidField(field, `${value} is no id of GET ${referential.path}`);
  }
}
