/** GET and POST {base_url}/dataLossDetection and /dataQuality: how complete and how plausible stored points are. */
import { z } from "zod";
import { anyCase, caseless, listOf, paging, queryBoolean, queryInteger, queryNumber } from "./caseless.ts";
import { GRANULARITIES } from "./data.ts";

/** Periods of a report of losses; of the granularities of /data those of a day or longer. */
export const LOSS_PERIODS = ["Day", "Week", "Month", "Year", "All"] as const;
export type LossPeriod = (typeof LOSS_PERIODS)[number];

const details = queryInteger
  .optional()
  .describe("Entries of each list of a row, 100 by default, at most 10,000; a row says when a list was cut.");

const selected = {
  VariableId: listOf(queryInteger).optional(),
  VariableIds: listOf(queryInteger).optional(),
  SourceId: listOf(queryInteger).optional(),
  SourceIds: listOf(queryInteger).optional(),
  SiteId: listOf(queryInteger).optional(),
  SiteIds: listOf(queryInteger).optional(),
  VariableTypeId: listOf(queryInteger).optional(),
  VariableTypeIds: listOf(queryInteger).optional(),
  AccountId: queryInteger.optional(),
  From: z
    .string()
    .optional()
    .describe("Beginning of the period, included; without it, the first point of each variable."),
  To: z.string().optional().describe("End of the period, not included; without it, and later than now, now."),
  TimeZoneId: z.string().optional(),
  UseReportingTimezone: queryBoolean.optional(),
  MaxDetails: details,
  ...paging,
};

/** Parameters of /dataLossDetection, in the query or in the JSON body. */
export const lossQuery = caseless(
  z.object({
    ...selected,
    Granularity: anyCase(LOSS_PERIODS, GRANULARITIES)
      .optional()
      .describe("A row for each period of this length (Day, Week, Month, Year), or one for the whole (All, default)."),
    OnlyLosses: queryBoolean
      .optional()
      .describe("Only rows with missing points, and those of which it is not known how many are expected."),
  }),
);
export type LossQuery = z.infer<typeof lossQuery>;

/** Parameters of /dataQuality, in the query or in the JSON body. */
export const qualityQuery = caseless(
  z.object({
    ...selected,
    MaxScore: queryNumber(z.number().min(0).max(100))
      .optional()
      .describe("Only rows with at most this score, or without one."),
    FlatLinePoints: queryInteger.optional().describe("A flat line has at least this many equal values; 8 by default."),
    FlatLineHours: queryNumber(z.number().min(0))
      .optional()
      .describe("A flat line lasts at least so long; 24 hours by default."),
    FlatLineZeros: queryBoolean.optional().describe("Zeros make flat lines, too."),
    OutlierDeviations: queryNumber(z.number().positive())
      .optional()
      .describe("Robust standard deviations from the usual value beyond which a value is an outlier; 8 by default."),
  }),
);
export type QualityQuery = z.infer<typeof qualityQuery>;

export const stepFacts = z.object({
  /** `declared` on the variable, `learned` from the dates of its points, or `unknown`. */
  origin: z.enum(["declared", "learned", "unknown"]),
  granularity: z.int().nullable(),
  granularityTimeBase: z.int().nullable(),
});
export type StepFacts = z.infer<typeof stepFacts>;

/** `from`: date of the first missing point; `to`: that of the next one that is there, or the end of the period. */
export const missingInterval = z.object({ from: z.string(), to: z.string(), missing: z.int() });
export type MissingInterval = z.infer<typeof missingInterval>;

const variableColumns = {
  variableId: z.int(),
  variableName: z.string(),
  sourceId: z.int(),
  siteId: z.int(),
  from: z.string().nullable(),
  to: z.string(),
  step: stepFacts,
};

/** A row of /dataLossDetection: a variable, or a period of it. */
export const lossRow = z.object({
  ...variableColumns,
  /** Null: not known, and `warnings` says why. The same for `missing` and `missingShare`. */
  expected: z.int().nullable(),
  present: z.int(),
  missing: z.int().nullable(),
  /** Missing among the expected points, 0 to 1. */
  missingShare: z.number().nullable(),
  intervals: z.array(missingInterval),
  intervalsTotal: z.int(),
  warnings: z.array(z.string()),
});
export type LossRow = z.infer<typeof lossRow>;
export const lossRows = z.array(lossRow);

const listed = <Entry extends z.ZodType>(entry: Entry) => ({ count: z.int(), list: z.array(entry) });

/** A row of /dataQuality: a variable. */
export const qualityRow = z.object({
  ...variableColumns,
  unitId: z.int(),
  points: z.int(),
  /** 100 without any finding, 0 at worst; null where it is not known how many points are expected. */
  score: z.int().nullable(),
  /** Findings that lower the score, the worst first. */
  reasons: z.array(z.object({ check: z.string(), penalty: z.number(), words: z.string() })),
  gaps: z.object({
    ...listed(missingInterval),
    expected: z.int().nullable(),
    missing: z.int().nullable(),
    missingShare: z.number().nullable(),
  }),
  duplicates: z.object({
    /** Points beyond the first of a step. */
    crowded: z.int(),
    /** Versions that replaced an earlier one of the same date; null on variables that keep none. */
    replaced: z.int().nullable(),
    /** Replacing versions with the very value of the version before: the same was pushed again. */
    repeated: z.int().nullable(),
  }),
  flatLines: z.object({
    ...listed(z.object({ from: z.string(), to: z.string(), points: z.int(), value: z.number() })),
    points: z.int(),
  }),
  outliers: z.object(
    listed(
      z.object({
        date: z.string(),
        /** On a counter the difference to the point before. */
        value: z.number(),
        usual: z.number(),
        /** How many robust standard deviations away. */
        deviations: z.number(),
      }),
    ),
  ),
  /** Negative values of an integrated quantity, steps back of a counter; null for other quantities. */
  negative: z
    .object(listed(z.object({ date: z.string(), value: z.number(), before: z.number().nullable() })))
    .nullable(),
  offGrid: z.object(listed(z.object({ date: z.string(), seconds: z.number() }))).nullable(),
  freshness: z.object({
    newest: z.string().nullable(),
    /** Between the newest point and the end of the period. */
    ageSeconds: z.number().nullable(),
    /** Steps that are over since then. */
    stepsLate: z.int().nullable(),
  }),
  warnings: z.array(z.string()),
});
export type QualityRow = z.infer<typeof qualityRow>;
export const qualityRows = z.array(qualityRow);
