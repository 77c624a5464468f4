/** The referentials: plain GETs without parameters, each with the full list. */
import type { FastifyInstance } from "fastify";
import { z } from "zod";
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
} from "#wire/index.ts";
import { described, type RouteFacts } from "../http/route.ts";

const named = z.object({ id: z.int(), name: z.string() });
const list = z.array(named);
const map = z.record(z.string(), z.string());
const SHAPES: Readonly<Record<string, z.ZodType>> = {
  "/energyTypes": z.array(named.extend({ energyUsages: list })),
  "/units": z.array(
    named.extend({
      symbol: z.string(),
      unitFamilyId: z.int(),
      parentId: z.int(),
      divisor: z.number(),
      offset: z.number(),
    }),
  ),
  "/quantityTypes": map,
  "/granularity": z.array(z.object({ name: z.string(), value: z.int() })),
  "/timePeriods": map,
  "/aggregates": map,
  "/timezones": z.array(z.object({ id: z.string(), displayName: z.string() })),
};

export async function referentialRoutes(app: FastifyInstance): Promise<void> {
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
  for (const [path, values] of Object.entries(lists)) {
    const facts: RouteFacts = {
      access: "read",
      tag: "Referentials",
      summary: `All of ${path}`,
      answer: SHAPES[path] ?? list,
    };
    app.get(path, described(facts), async () => values);
  }
}
