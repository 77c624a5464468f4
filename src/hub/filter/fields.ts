/** The fields that expressions may name: the documented model of sites, sources and variables. */
import leven from "leven";
import type { FilterEntity } from "../store/filter.ts";

export type FieldType = "number" | "text" | "boolean" | "labels" | "date";

const FILTER_FIELDS: Readonly<Record<FilterEntity, Readonly<Record<string, FieldType>>>> = {
  site: {
    id: "number",
    name: "text",
    typeId: "number",
    timeZoneId: "text",
    street: "text",
    postalCode: "text",
    city: "text",
    country: "text",
  },
  source: {
    id: "number",
    name: "text",
    siteId: "number",
    serialNumber: "text",
    ean: "text",
    meterNumber: "text",
    sourceTypeId: "number",
    energyTypeId: "number",
    energyUsageId: "number",
    gatewayTypeId: "number",
    timeZoneId: "text",
    description: "text",
    localisation: "text",
    meterAddress: "text",
    state: "text",
    tags: "labels",
  },
  variable: {
    id: "number",
    name: "text",
    sourceId: "number",
    variableTypeId: "number",
    unitId: "number",
    granularity: "number",
    granularityTimeBase: "number",
    quantityType: "number",
    aggregate: "number",
    mappingConfig: "text",
    isVersioned: "boolean",
    versionsMax: "number",
    tags: "labels",
  },
};

const ENTITIES = Object.keys(FILTER_FIELDS) as FilterEntity[];

export function entityNamed(name: string): FilterEntity | undefined {
  return ENTITIES.find((entity) => entity === name.toLowerCase() || `${entity}s` === name.toLowerCase());
}

/** The field's own spelling and type; names are matched without regard to case. */
export function fieldNamed(
  entity: FilterEntity,
  name: string,
): { readonly name: string; readonly type: FieldType } | undefined {
  const found = Object.entries(FILTER_FIELDS[entity]).find(([field]) => field.toLowerCase() === name.toLowerCase());
  return found === undefined ? undefined : { name: found[0], type: found[1] };
}

/** The fields of an entity, the most similar first, as text. */
export function nearestFields(entity: FilterEntity, name: string): string {
  const names = Object.keys(FILTER_FIELDS[entity]);
  const far = (field: string) => leven(field.toLowerCase(), name.toLowerCase());
  const [nearest = ""] = names.toSorted((one, other) => far(one) - far(other));
  return far(nearest) <= 2 ? `did you mean ${nearest}?` : `the fields of a ${entity} are ${names.join(", ")}`;
}
