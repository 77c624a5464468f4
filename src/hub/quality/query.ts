/** Parameters of /dataLossDetection and /dataQuality, read as those of /data. */
import { ianaZone, type LossQuery, lossQuery, type QualityQuery, qualityQuery } from "#wire/index.ts";
import { accountOf, boundMs, requireOneZone, zonesOf } from "../data/query.ts";
import { invalidField, parsed } from "../http/problems.ts";
import type { MeasuredVariable } from "../store/quality/variables.ts";
import type { Page } from "../store/store.ts";
import { both, pageOf } from "../structure/pages.ts";
import type { Principal } from "../token/guard.ts";
import type { SeriesJob, VariableAsk } from "./job.ts";

export type Report = SeriesJob["report"];
export interface ReportRequest {
  readonly query: LossQuery | QualityQuery;
  readonly accountId: number;
  readonly page: Page;
  /** Without variables. */
  readonly job: SeriesJob;
}

const DETAILS = 100;
const DETAILS_MAX = 10_000;
const FLAT_POINTS = 8;
const FLAT_HOURS = 24;
const HOUR_MS = 3_600_000;
const OUTLIER_DEVIATIONS = 8;

export function readReport(report: Report, input: unknown, principal: Principal): ReportRequest {
  return report === "losses" ? readLosses(input, principal) : readQuality(input, principal);
}

function readLosses(input: unknown, principal: Principal): ReportRequest {
  const query = parsed(lossQuery, input);
  const settings = {
    period: query.Granularity ?? "All",
    onlyLosses: query.OnlyLosses === true,
    maxDetails: detailsOf(query),
  };
  return { ...common(query, principal), job: { report: "losses", settings, variables: [] } };
}

function readQuality(input: unknown, principal: Principal): ReportRequest {
  const query = parsed(qualityQuery, input);
  const points = query.FlatLinePoints ?? FLAT_POINTS;
  if (points < 2) throw invalidField("FlatLinePoints", "must be at least 2: one value is no line");
  const settings = {
    maxDetails: detailsOf(query),
    maxScore: query.MaxScore ?? null,
    flatLine: {
      points,
      lengthMs: (query.FlatLineHours ?? FLAT_HOURS) * HOUR_MS,
      zeros: query.FlatLineZeros === true,
    },
    outlierDeviations: query.OutlierDeviations ?? OUTLIER_DEVIATIONS,
  };
  return { ...common(query, principal), job: { report: "quality", settings, variables: [] } };
}

function common(query: LossQuery | QualityQuery, principal: Principal) {
  requireOneZone(query);
  // Faults of the period are reported even when no variable is selected.
  boundsOf(query, "UTC");
  return { query, accountId: accountOf(query, principal), page: pageOf(query) };
}

function detailsOf({ MaxDetails: asked = DETAILS }: LossQuery | QualityQuery): number {
  if (asked < 0 || asked > DETAILS_MAX) throw invalidField("MaxDetails", `is from 0 to ${DETAILS_MAX}`);
  return asked;
}

export function filterOf(query: LossQuery | QualityQuery) {
  return {
    ids: both(query.VariableId, query.VariableIds),
    sourceIds: both(query.SourceId, query.SourceIds),
    siteIds: both(query.SiteId, query.SiteIds),
    variableTypeIds: both(query.VariableTypeId, query.VariableTypeIds),
  };
}

export async function* asksOf(
  query: LossQuery | QualityQuery,
  parts: AsyncIterable<readonly MeasuredVariable[]>,
  nowMs: number,
): AsyncGenerator<readonly VariableAsk[], void> {
  const askOf = (variable: MeasuredVariable): VariableAsk => {
    const { period, dates } = zonesOf({ query }, variable);
    const { fromMs, toMs } = boundsOf(query, period);
    const source = ianaZone(variable.sourceZoneId) ?? "UTC";
    // Future points are not missing.
    const untilMs = Math.max(Math.min(toMs ?? nowMs, nowMs), fromMs ?? Number.NEGATIVE_INFINITY);
    return { variable, zones: { source, period, dates }, fromMs, untilMs, nowMs };
  };
  for await (const part of parts) yield part.map(askOf);
}

function boundsOf({ From, To }: LossQuery | QualityQuery, zone: string) {
  const fromMs = boundMs("From", From, zone);
  const toMs = boundMs("To", To, zone);
  if (fromMs !== null && toMs !== null && fromMs > toMs) throw invalidField("From", "is after To");
  return { fromMs, toMs };
}
