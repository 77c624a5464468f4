/**
 * Sites, sources and variables as the read and management interface shows them (specification, *Resources*).
 */
import { z } from "zod";
import { calculatedBody } from "./calculated.ts";
import {
  anyCase,
  caseless,
  inOrder,
  listOf,
  nameText,
  numberOrName,
  paging,
  queryBoolean,
  queryInteger,
} from "./caseless.ts";
import { AGGREGATES } from "./data.ts";
import { FORM_ENTITIES } from "./form.ts";
import quantityTypes from "./referentials/quantity-types.json" with { type: "json" };
import timePeriods from "./referentials/time-periods.json" with { type: "json" };

/** Sites of one body. */
const SITES_MAX = 10_000;

const siteIds = z.array(z.int()).max(SITES_MAX);

export const groupBody = caseless(
  z.object({ name: nameText(200), siteIds: siteIds.optional().describe("Sites of the group.") }),
);

/** POST /groups/{id}/sites. */
export const groupSitesBody = caseless(z.object({ siteIds: siteIds.min(1).describe("Sites to add.") }));

export const group = z.object({ id: z.number().int(), name: z.string(), siteIds: z.array(z.number().int()) });

export const groupsQuery = caseless(
  z.object({
    ...paging,
  }),
);

export const VIEW_TYPES = ["Site", "Source"] as const;

const entityType = anyCase(VIEW_TYPES, FORM_ENTITIES).describe(
  "What the view selects: it serves as ViewId of /sites or of /sources.",
);

export const viewBody = caseless(
  z.object({
    name: nameText(200),
    entityType,
    customFilter: z.string().min(1).max(10_000).describe("An expression, as the parameter CustomFilter takes it."),
  }),
);

export const view = z.object({
  id: z.number().int(),
  name: z.string(),
  entityType: z.enum(VIEW_TYPES),
  customFilter: z.string(),
});

export const viewsQuery = caseless(
  z.object({
    EntityType: entityType.optional(),
    "Paging.PageNumber": queryInteger.optional(),
    "Paging.ItemsPerPage": queryInteger.optional(),
  }),
);

/** Name to number. */
const numbersOf = (names: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(names).map(([number, name]) => [name, Number(number)]));

const TEXT_CHARACTERS_MAX = 4_000;
/** Of all values of forms, or all tags, as JSON. */
const JSON_CHARACTERS_MAX = 100_000;
/** Time periods of one step between points. */
const GRANULARITY_MAX = 1_000_000;

/** The fields of a body as answers have them: a service may leave out or null any. */
function answered<Shape extends z.core.$ZodShape>(fields: Shape) {
  const optional = Object.entries(fields).map(([name, type]) => [name, z.nullish(type)]);
  return Object.fromEntries(optional) as { [Name in keyof Shape]: z.ZodOptional<z.ZodNullable<Shape[Name]>> };
}

const named = nameText(TEXT_CHARACTERS_MAX);
const integer = z.int();
const text = z.string().optional();

/** Values of forms: form, then group, then field. */
const clientData = z.record(z.string(), z.unknown()).optional();

/**
 * The fields of a body with the bounds that the hub sets; answers have none, since another service may have longer
 * texts.
 */
function bounded<Shape extends Readonly<Record<string, z.ZodType>>>(fields: Shape): Shape {
  const all = Object.entries(fields).map(([name, type]) => [name, type.superRefine(boundTexts)]);
  return Object.fromEntries(all) as Shape;
}

function boundTexts(value: unknown, context: z.RefinementCtx): void {
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  if (typeof value !== "object" || value === null) {
    if (isLong(value)) refuse(`must have ${TEXT_CHARACTERS_MAX} characters at most, and not ${String(value).length}`);
    return;
  }
  let longest = 0;
  const json = JSON.stringify(value, (_, inner) => {
    if (isLong(inner)) longest = Math.max(longest, inner.length);
    return inner;
  });
  if (longest > 0)
    refuse(`must have ${TEXT_CHARACTERS_MAX} characters at most in each of its texts, and one has ${longest}`);
  else if (json.length > JSON_CHARACTERS_MAX)
    refuse(`must have ${JSON_CHARACTERS_MAX} characters at most in all, as JSON, and not ${json.length}`);
}

function isLong(value: unknown): value is string {
  return typeof value === "string" && value.length > TEXT_CHARACTERS_MAX;
}

const siteFields = {
  name: z.string(),
  typeId: integer,
  timeZoneId: z.string(),
  street: text,
  postalCode: text,
  city: text,
  country: text,
  clientData,
};
export const siteBody = caseless(z.object({ ...bounded(siteFields), name: named, timeZoneId: z.string().min(1) }));
export type SiteBody = z.infer<typeof siteBody>;

export const site = z.object({ id: integer, ...answered(siteFields), name: z.string() });
export type Site = z.infer<typeof site>;

const sourceFields = {
  name: z.string(),
  siteId: integer,
  serialNumber: text,
  ean: text,
  meterNumber: text,
  sourceTypeId: integer,
  energyTypeId: integer.optional(),
  energyUsageId: integer.optional(),
  gatewayTypeId: integer.optional(),
  timeZoneId: text,
  description: text,
  localisation: text,
  meterAddress: text,
  tags: z.array(z.string()).optional(),
  clientData,
};
export const sourceBody = caseless(z.object({ ...bounded(sourceFields), name: named }));
export type SourceBody = z.infer<typeof sourceBody>;

export const source = z.object({
  id: integer,
  ...answered(sourceFields),
  name: z.string(),
  siteId: integer,
  state: z.string().nullish(),
  siteName: z.string().nullish(),
  /** Another name of `ean`. */
  eanNumber: z.string().nullish(),
  /** Present at DisplayLevel Site. */
  site: site.nullish(),
});
export type Source = z.infer<typeof source>;

const variableFields = {
  name: z.string(),
  sourceId: integer,
  variableTypeId: integer,
  unitId: integer,
  granularity: integer.optional(),
  granularityTimeBase: numberOrName(numbersOf(timePeriods)).optional(),
  quantityType: numberOrName(numbersOf(quantityTypes)).optional(),
  aggregate: numberOrName(AGGREGATES).optional(),
  mappingConfig: text,
  tags: z.array(z.string()).optional(),
  isVersioned: z.boolean().optional(),
  /** Extension of Headgate: versions kept of each point, instead of the account's setting. */
  versionsMax: integer.optional(),
  divider: z.number().optional(),
  calculated: calculatedBody.optional(),
};
export const variableBody = caseless(
  z.object({
    ...bounded(variableFields),
    calculated: variableFields.calculated,
    name: named,
    granularity: z.int().min(1).max(GRANULARITY_MAX).optional(),
    versionsMax: z.int().positive().max(10_000).optional(),
  }),
);
export type VariableBody = z.infer<typeof variableBody>;

export const variable = z.object({
  id: integer,
  ...answered(variableFields),
  name: z.string(),
  sourceId: integer,
  /** Clients read no formulas: another service may write them as it likes. */
  calculated: calculatedBody.nullish().catch(null),
});
export type Variable = z.infer<typeof variable>;

const timeSliced = {
  includeTimeSlicedValues: queryBoolean.optional().describe("All slices instead of the value that is valid now."),
  AsOf: z.string().optional().describe("The moment at which time-sliced values are read; the present when left out."),
};

export const SITE_LEVELS = ["SiteLight", "Site", "VerboseSite"] as const;
export const SOURCE_LEVELS = ["Light", "Normal", "Verbose", "Site"] as const;
export const VARIABLE_LEVELS = ["Normal", "Verbose"] as const;

export const sitesQuery = caseless(
  z.object({
    DisplayLevel: inOrder(SITE_LEVELS).optional(),
    Id: listOf(queryInteger).optional(),
    Ids: listOf(queryInteger).optional(),
    CustomFilter: z.string().optional(),
    ViewId: queryInteger.optional(),
    ...timeSliced,
    ...paging,
  }),
);
export type SitesQuery = z.infer<typeof sitesQuery>;

/** Query of GET /sites/{siteId}. */
export const siteQuery = caseless(z.object({ ...timeSliced }));

export const sourcesQuery = caseless(
  z.object({
    DisplayLevel: inOrder(SOURCE_LEVELS).optional(),
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
    ...timeSliced,
    ...paging,
  }),
);
export type SourcesQuery = z.infer<typeof sourcesQuery>;

/** Query of GET /sources/{sourceId}. */
export const sourceQuery = caseless(
  z.object({
    DisplayLevel: inOrder(SOURCE_LEVELS).optional(),
    ...timeSliced,
  }),
);

export const variablesQuery = caseless(
  z.object({
    DisplayLevel: inOrder(VARIABLE_LEVELS).optional(),
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

// Views: named selections of sites or sources that `ViewId` uses again. The specification shows no way to
// create them; this one is an extension of Headgate (`docs/hub/structure.md`).

export type ViewBody = z.infer<typeof viewBody>;

export type View = z.infer<typeof view>;

// Groups of sites, which `GroupId` of /storage selects by. The specification shows no way to create them; this one is
// an extension of Headgate (`docs/hub/structure.md`).

export type GroupBody = z.infer<typeof groupBody>;

export type Group = z.infer<typeof group>;
