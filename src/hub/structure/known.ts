/** Checks ids of referentials in bodies: an unknown id would be stored silently without a meaning. */
import { ianaZone, REFERENTIAL_FIELDS, spacingFault, type VariableBody } from "#wire/index.ts";
import { invalidField } from "../http/problems.ts";

/**
 * Throws a 400 that names the field and the list of its values. Values that the entity already had (`current`) are not
 * checked.
 */
export function requireKnown(body: object, current: object = {}): void {
  const before = new Map(Object.entries(current));
  for (const [field, value] of Object.entries(body)) {
    if (value === undefined || value === before.get(field)) continue;
    if (field === "timeZoneId" && ianaZone(String(value)) === undefined)
      throw invalidField(field, `${value} is neither an IANA nor a Windows time zone (GET /timezones)`);
    const referential = REFERENTIAL_FIELDS[field];
    if (referential !== undefined && !referential.list.some(({ id }) => id === Number(value)))
      throw invalidField(field, `${value} is no id of GET ${referential.path}`);
  }
}

/** Throws a 400 where the points of a variable would be further apart than any calendar reaches. */
export function requireSpacing({ granularity, granularityTimeBase }: VariableBody): void {
  const fault = spacingFault(granularity, granularityTimeBase);
  if (fault !== null) throw invalidField("granularity", fault);
}
