/** The data interface: GET and POST {base_url}/data (specification, *Data endpoints*). */
import { z } from "zod";
import { anyCase, caseless, inOrder, listOf, paging, queryBoolean, queryInteger } from "./caseless.ts";
import { AGGREGATES, type Aggregate } from "./referentials/aggregates.ts";

export const GRANULARITIES = {
  Raw: 0,
  Minute: 1,
  Hour: 2,
  Day: 3,
  Month: 4,
  Year: 5,
  All: 6,
  Week: 7,
} as const;
export type Granularity = keyof typeof GRANULARITIES;

export {
  AGGREGATE_FACTS,
  AGGREGATED,
  AGGREGATES,
  type Aggregate,
  type Aggregated,
  aggregateUnit,
  isOfParts,
  usualAggregate,
  WITHOUT_QUANTITY,
} from "./referentials/aggregates.ts";

export const DATA_DISPLAY_LEVELS = ["Value", "ValueVariable", "ValueVariableDate", "ValueVariableDateSource"] as const;
export type DataDisplayLevel = (typeof DATA_DISPLAY_LEVELS)[number];

/**
 * Parameters of /data, in the query or in the JSON body. Names without regard to case; lists are repeated
 * keys.
 */
const dataFields = {
  VariableId: listOf(queryInteger).optional(),
  VariableIds: listOf(queryInteger).optional(),
  SourceId: listOf(queryInteger).optional(),
  SourceIds: listOf(queryInteger).optional(),
  VariableTypeId: listOf(queryInteger).optional(),
  VariableTypeIds: listOf(queryInteger).optional(),
  AccountId: queryInteger.optional(),
  From: z.string().optional(),
  To: z.string().optional(),
  IncludeToBoundary: queryBoolean.optional(),
  TimeZoneId: z.string().optional(),
  UseReportingTimezone: queryBoolean.optional(),
  Granularity: anyCase(Object.keys(GRANULARITIES) as Granularity[], GRANULARITIES).optional(),
  Aggregation: anyCase(Object.keys(AGGREGATES) as Aggregate[], AGGREGATES).optional(),
  Aggregations: listOf(anyCase(Object.keys(AGGREGATES) as Aggregate[], AGGREGATES)).optional(),
  TargetUnits: listOf(queryInteger).optional(),
  UnitTransformation: listOf(queryInteger).optional(),
  DisplayLevel: inOrder(DATA_DISPLAY_LEVELS).optional(),
  ...paging,
  PagingOrder: inOrder(["ASC", "DESC"]).optional(),
  // Extensions of Headgate, since the specification shows no way to read versions (docs/hub/readings.md):
  /** Only the version with this VersionTag of each point. */
  VersionTag: z.string().optional(),
  /** Every version of each point, oldest first, with the columns version, versionTimestamp and tags. */
  AllVersions: queryBoolean.optional(),
  /** The version most recent as of this instant. */
  AsOf: z.string().optional(),
  VersionSince: z.string().optional(),
};
export const dataQuery = caseless(z.object(dataFields));
export type DataQuery = z.infer<typeof dataQuery>;

export const EXPORT_FORMATS = ["csv", "xlsx", "json"] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Parameters of GET /data/export, an extension of Headgate: those of /data, and the format of the file. */
export const exportQuery = caseless(
  z.object({
    Format: anyCase(EXPORT_FORMATS).describe(
      "A table with a column for each variable and aggregate, or rows as /data.",
    ),
    ...dataFields,
  }),
);

/** One row of the response. The aggregation and DisplayLevel decide which columns are present. */
export const dataRow = z.object({
  rawValue: z.number().optional(),
  sumValue: z.number().optional(),
  minValue: z.number().optional(),
  maxValue: z.number().optional(),
  avgValue: z.number().optional(),
  countValue: z.number().optional(),
  stdevValue: z.number().optional(),
  varianceValue: z.number().optional(),
  unitId: z.number().int().nullish(),
  variableId: z.number().int().optional(),
  /** In the requested zone, with its offset; see docs/hub/readings.md. */
  date: z.string().optional(),
  sourceId: z.number().int().optional(),
  version: z.string().nullish(),
  versionTimestamp: z.string().optional(),
  tags: z.record(z.string(), z.string()).nullish(),
  /**
   * Tags given on the element of the push, when it carried any; `tags` holds both levels, the reading's own
   * first.
   */
  batchTags: z.record(z.string(), z.string()).nullish(),
});
export type DataRow = z.infer<typeof dataRow>;
export const dataRows = z.array(dataRow);

/** Parameters of DELETE /data. */
export interface RemovalQuery {
  readonly [parameter: string]: unknown;
  readonly VariableIds: readonly number[];
  readonly FromDateUtc?: string | undefined;
  /** End of the period, exclusive. */
  readonly ToDateUtc?: string | undefined;
  readonly WhatIf?: boolean | undefined;
}

/** Response of DELETE /data. */
export const removal = z.object({
  whatIf: z.boolean(),
  points: z.number().int(),
  versions: z.number().int(),
});
export type Removal = z.infer<typeof removal>;
