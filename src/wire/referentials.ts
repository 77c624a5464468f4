/**
 * The referentials: lists of ids and names that fields of structure and parameters refer to (specification,
 * *Referentials*). Values that the specification gives are used as they are; where it gives only a size,
 * usual entries of the field fill the list. The live endpoint of a service has precedence for its own list.
 */
import { AGGREGATES, GRANULARITIES } from "./data.ts";
import energyTypes from "./referentials/energy-types.json" with { type: "json" };
import energyUsages from "./referentials/energy-usages.json" with { type: "json" };
import gatewayTypes from "./referentials/gateway-types.json" with { type: "json" };
import quantityTypes from "./referentials/quantity-types.json" with { type: "json" };
import siteTypes from "./referentials/site-types.json" with { type: "json" };
import sourceTypes from "./referentials/source-types.json" with { type: "json" };
import timePeriods from "./referentials/time-periods.json" with { type: "json" };
import variableTypes from "./referentials/variable-types.json" with { type: "json" };
import windowsZones from "./referentials/windows-zones.json" with { type: "json" };
import { UNITS } from "./units.ts";

export interface Named {
  readonly id: number;
  readonly name: string;
}

export interface EnergyType extends Named {
  readonly energyUsages: readonly Named[];
}

export interface TimeZoneEntry {
  /** Windows or IANA name: every time zone parameter accepts both. */
  readonly id: string;
  /** `(UTC+01:00) Europe/Paris`, with the offset of standard time. */
  readonly displayName: string;
}

export const SITE_TYPES: readonly Named[] = siteTypes;
export const SOURCE_TYPES: readonly Named[] = sourceTypes;
export const ENERGY_TYPES: readonly EnergyType[] = energyTypes;
export const ENERGY_USAGES: readonly Named[] = energyUsages;
export const GATEWAY_TYPES: readonly Named[] = gatewayTypes;
export const VARIABLE_TYPES: readonly Named[] = variableTypes;
/** Key to label. */
export const QUANTITY_TYPES: Readonly<Record<string, string>> = quantityTypes;
/** Keys of `granularityTimeBase`. The scale differs from `GRANULARITY`: 4 is a day here and a month there. */
export const TIME_PERIODS: Readonly<Record<string, string>> = timePeriods;
/** Id to name: `Variable.aggregate` holds the id, the parameter Aggregation the name. */
export const AGGREGATE_NAMES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(AGGREGATES).map(([name, id]) => [id, name]),
);

const namesOf = (map: Readonly<Record<string, string>>) =>
  Object.entries(map).map(([id, name]) => ({ id: Number(id), name }));

/** The fields of sites, sources and variables that hold ids of a referential, and where the service lists it. */
export const REFERENTIAL_FIELDS: Readonly<
  Record<string, { readonly path: string; readonly list: readonly (Named & { readonly symbol?: string })[] }>
> = {
  typeId: { path: "/sitetypes", list: SITE_TYPES },
  sourceTypeId: { path: "/sourceTypes", list: SOURCE_TYPES },
  energyTypeId: { path: "/energyTypes", list: ENERGY_TYPES },
  energyUsageId: { path: "/energyUsages", list: ENERGY_USAGES },
  gatewayTypeId: { path: "/gatewayTypes", list: GATEWAY_TYPES },
  variableTypeId: { path: "/variableTypes", list: VARIABLE_TYPES },
  unitId: { path: "/units", list: UNITS },
  granularityTimeBase: { path: "/timePeriods", list: namesOf(TIME_PERIODS) },
  quantityType: { path: "/quantityTypes", list: namesOf(QUANTITY_TYPES) },
  aggregate: { path: "/aggregates", list: namesOf(AGGREGATE_NAMES) },
};

/** Values of the parameter Granularity of `GET /data`, where it is sent by name. */
export const GRANULARITY_VALUES = Object.entries(GRANULARITIES).map(([name, value]) => ({ name, value }));

/** Windows names first, then every IANA name that the runtime knows. */
export function timeZones(): readonly TimeZoneEntry[] {
  const windows = Object.entries(windowsZones).map(([id, iana]) => zoneEntry(id, iana));
  const iana = Intl.supportedValuesOf("timeZone").filter((id) => !(id in windowsZones));
  return [...windows, ...iana.map((id) => zoneEntry(id, id))];
}

function zoneEntry(id: string, iana: string): TimeZoneEntry {
  return { id, displayName: `(UTC${standardOffset(iana)}) ${id}` };
}

/**
 * Standard time is the smaller of the offsets of January and July, also for Ireland, which names them the
 * other way round.
 */
function standardOffset(iana: string): string {
  const year = 2025;
  const offsets = [1, 7].map((month) => Temporal.ZonedDateTime.from({ year, month, day: 1, timeZone: iana }));
  const [january, july] = offsets.map((date) => ({ ns: date.offsetNanoseconds, text: date.offset }));
  return (january?.ns ?? 0) <= (july?.ns ?? 0) ? (january?.text ?? "") : (july?.text ?? "");
}
