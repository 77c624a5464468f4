/**
 * Sites, sources and variables as the read and management interface shows them (specification, *Resources*).
 */
import { z } from "zod";
import { caseless, listOf, queryBoolean, queryInteger } from "./caseless.ts";

const paging = {
  "Paging.PageNumber": queryInteger.optional(),
  "Paging.ItemsPerPage": queryInteger.optional(),
  IncludeItemsCount: queryBoolean.optional(),
};

export const siteBody = caseless(
  z.object({
    name: z.string().min(1),
    typeId: z.number().int(),
    timeZoneId: z.string().min(1),
    street: z.string().optional(),
    postalCode: z.string().optional(),
    city: z.string().optional(),
    country: z.string().optional(),
  }),
);
export type SiteBody = z.infer<typeof siteBody>;

export const site = z.object({
  id: z.number().int(),
  name: z.string(),
  typeId: z.number().int().nullish(),
  timeZoneId: z.string().nullish(),
  street: z.string().nullish(),
  postalCode: z.string().nullish(),
  city: z.string().nullish(),
  country: z.string().nullish(),
});
export type Site = z.infer<typeof site>;

export const sourceBody = caseless(
  z.object({
    name: z.string().min(1),
    siteId: z.number().int(),
    serialNumber: z.string().optional(),
    ean: z.string().optional(),
    meterNumber: z.string().optional(),
    sourceTypeId: z.number().int(),
    energyTypeId: z.number().int().optional(),
    energyUsageId: z.number().int().optional(),
    gatewayTypeId: z.number().int().optional(),
    timeZoneId: z.string().optional(),
    description: z.string().optional(),
    localisation: z.string().optional(),
    meterAddress: z.string().optional(),
    tags: z.array(z.string()).optional(),
    clientData: z.record(z.string(), z.unknown()).optional(),
  }),
);
export type SourceBody = z.infer<typeof sourceBody>;

export const source = z.object({
  id: z.number().int(),
  name: z.string(),
  siteId: z.number().int(),
  serialNumber: z.string().nullish(),
  ean: z.string().nullish(),
  meterNumber: z.string().nullish(),
  sourceTypeId: z.number().int().nullish(),
  energyTypeId: z.number().int().nullish(),
  energyUsageId: z.number().int().nullish(),
  gatewayTypeId: z.number().int().nullish(),
  timeZoneId: z.string().nullish(),
  description: z.string().nullish(),
  localisation: z.string().nullish(),
  meterAddress: z.string().nullish(),
  state: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  clientData: z.record(z.string(), z.unknown()).nullish(),
  siteName: z.string().nullish(),
  /** Present at DisplayLevel Site. */
  site: site.nullish(),
});
export type Source = z.infer<typeof source>;

export const variableBody = caseless(
  z.object({
    name: z.string().min(1),
    sourceId: z.number().int(),
    variableTypeId: z.number().int(),
    unitId: z.number().int(),
    granularity: z.number().int().optional(),
    granularityTimeBase: z.number().int().optional(),
    quantityType: z.number().int().optional(),
    aggregate: z.number().int().optional(),
    mappingConfig: z.string().optional(),
    tags: z.array(z.string()).optional(),
    isVersioned: z.boolean().optional(),
    /** Extension of Headgate: versions kept of each point, instead of the account's setting. */
    versionsMax: z.int().positive().max(10_000).optional(),
    divider: z.number().optional(),
  }),
);
export type VariableBody = z.infer<typeof variableBody>;

export const variable = z.object({
  id: z.number().int(),
  name: z.string(),
  sourceId: z.number().int(),
  variableTypeId: z.number().int().nullish(),
  unitId: z.number().int().nullish(),
  granularity: z.number().int().nullish(),
  granularityTimeBase: z.number().int().nullish(),
  quantityType: z.number().int().nullish(),
  aggregate: z.number().int().nullish(),
  mappingConfig: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  isVersioned: z.boolean().nullish(),
  versionsMax: z.number().int().nullish(),
  divider: z.number().nullish(),
});
export type Variable = z.infer<typeof variable>;

export const sitesQuery = caseless(
  z.object({
    DisplayLevel: z.string().optional(),
    Id: listOf(queryInteger).optional(),
    Ids: listOf(queryInteger).optional(),
    CustomFilter: z.string().optional(),
    ViewId: queryInteger.optional(),
    ...paging,
  }),
);
export type SitesQuery = z.infer<typeof sitesQuery>;

export const sourcesQuery = caseless(
  z.object({
    DisplayLevel: z.string().optional(),
    Id: listOf(queryInteger).optional(),
    Ids: listOf(queryInteger).optional(),
    SiteId: listOf(queryInteger).optional(),
    SiteIds: listOf(queryInteger).optional(),
    State: listOf(z.string()).optional(),
    States: listOf(z.string()).optional(),
    Ean: listOf(z.string()).optional(),
    Eans: listOf(z.string()).optional(),
    SerialNumber: listOf(z.string()).optional(),
    SerialNumbers: listOf(z.string()).optional(),
    MeterNumber: listOf(z.string()).optional(),
    MeterNumbers: listOf(z.string()).optional(),
    Name: listOf(z.string()).optional(),
    Names: listOf(z.string()).optional(),
    Tags: listOf(z.string()).optional(),
    CustomFilter: z.string().optional(),
    OdmSqlFilter: z.string().optional(),
    ViewId: queryInteger.optional(),
    includeTimeSlicedValues: queryBoolean.optional(),
    ...paging,
  }),
);
export type SourcesQuery = z.infer<typeof sourcesQuery>;

/** Query of GET /sources/{sourceId}. */
export const sourceQuery = caseless(
  z.object({
    DisplayLevel: z.string().optional(),
    includeTimeSlicedValues: queryBoolean.optional(),
  }),
);

export const variablesQuery = caseless(
  z.object({
    DisplayLevel: z.string().optional(),
    Id: listOf(queryInteger).optional(),
    Ids: listOf(queryInteger).optional(),
    SourceId: listOf(queryInteger).optional(),
    SourceIds: listOf(queryInteger).optional(),
    VariableTypeId: listOf(queryInteger).optional(),
    VariableTypeIds: listOf(queryInteger).optional(),
    Tags: listOf(z.string()).optional(),
    "CalculatedFilter.ImpactingVariableId": queryInteger.optional(),
    ...paging,
  }),
);
export type VariablesQuery = z.infer<typeof variablesQuery>;
