/**
 * Checks a `provision` template against the service: before the first new meter arrives, and not when its run is
 * held.
 */
import type { Clock } from "#core/clock.ts";
import { type HttpTimeouts, type ServiceAccess, ServiceClient } from "#wire/client/index.ts";
import { namesUnit } from "#wire/units.ts";
import { ianaZone } from "#wire/zones.ts";
import type { ProvisionTemplate } from "./options.ts";

/** A field of the template whose value the service does not know. */
export interface TemplateFault {
  /** Such as `variable.unit`. */
  readonly field: string;
  readonly what: string;
}

/** Returns an empty list when the service knows every value. Throws as the client of the service does. */
export async function checkTemplate(
  template: ProvisionTemplate,
  access: ServiceAccess,
  means: { readonly timeouts: HttpTimeouts; readonly clock: Clock },
  signal: AbortSignal,
): Promise<readonly TemplateFault[]> {
  const client = new ServiceClient(access, { connections: 1, ...means });
  try {
    return [
      ...zoneFaults(template),
      ...(await unitFaults(template, client, signal)),
      ...(await typeFaults(template, client, signal)),
    ];
  } finally {
    await client.close();
  }
}

function zoneFaults({ site, source }: ProvisionTemplate): TemplateFault[] {
  const zones = { "site.timeZoneId": site.timeZoneId, "source.timeZoneId": source.timeZoneId };
  return Object.entries(zones).flatMap(([field, zone]) =>
    zone === undefined || ianaZone(zone) !== undefined
      ? []
      : [{ field, what: `${zone} is neither an IANA nor a Windows time zone` }],
  );
}

async function unitFaults(
  { variable: { unit } }: ProvisionTemplate,
  client: ServiceClient,
  signal: AbortSignal,
): Promise<TemplateFault[]> {
  if (unit === undefined) return [];
  const units = await client.getUnits(signal);
  if (units.some((one) => namesUnit(unit, one))) return [];
  return [{ field: "variable.unit", what: `the service has no unit ${unit}` }];
}

async function typeFaults(
  { site, source, variable }: ProvisionTemplate,
  client: ServiceClient,
  signal: AbortSignal,
): Promise<TemplateFault[]> {
  const ids = [
    ["site.typeId", "/sitetypes", site.typeId],
    ["source.sourceTypeId", "/sourceTypes", source.sourceTypeId],
    ["source.energyTypeId", "/energyTypes", source.energyTypeId],
    ["variable.variableTypeId", "/variableTypes", variable.variableTypeId],
  ] as const;
  const faults: TemplateFault[] = [];
  for (const [field, path, id] of ids) {
    if (id === undefined) continue;
    const known = await client.getNamed(path, signal);
    if (!known.some((one) => one.id === id)) faults.push({ field, what: `the service lists no ${id} at GET ${path}` });
  }
  return faults;
}
