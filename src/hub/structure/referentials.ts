/** The referentials: plain GETs without parameters, each with the full list. */
import type { FastifyInstance } from "fastify";
import {
  AGGREGATE_NAMES,
  ENERGY_TYPES,
  ENERGY_USAGES,
  GATEWAY_TYPES,
  GRANULARITY_VALUES,
  QUANTITY_TYPES,
  SITE_TYPES,
  SOURCE_TYPES,
  TIME_PERIODS,
  timeZones,
  UNIT_FAMILIES,
  UNITS,
  VARIABLE_TYPES,
} from "../../wire/index.ts";
import type { HubContext } from "../context.ts";

export async function referentialRoutes(app: FastifyInstance, { guard }: HubContext): Promise<void> {
  const lists: Readonly<Record<string, unknown>> = {
    "/sitetypes": SITE_TYPES,
    "/sourceTypes": SOURCE_TYPES,
    "/energyTypes": ENERGY_TYPES,
    "/energyUsages": ENERGY_USAGES,
    "/gatewayTypes": GATEWAY_TYPES,
    "/variableTypes": VARIABLE_TYPES,
    "/units": UNITS,
    "/unitFamily": UNIT_FAMILIES,
    "/quantityTypes": QUANTITY_TYPES,
    "/granularity": GRANULARITY_VALUES,
    "/timePeriods": TIME_PERIODS,
    "/aggregates": AGGREGATE_NAMES,
    "/timezones": timeZones(),
  };
  for (const [path, list] of Object.entries(lists)) {
    app.get(path, async (request) => {
      await guard.authenticate(request, ["datahub-api"]);
      return list;
    });
  }
}
