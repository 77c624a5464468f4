/** Parameters of /data (specification, *Data endpoints*): checked, combined, and prepared for the store. */
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import {
  type Aggregated,
  type DataDisplayLevel,
  type DataQuery,
  dataQuery,
  type Granularity,
  ianaZone,
  type Unit,
} from "#wire/index.ts";
import { invalidField, parsed } from "../http/problems.ts";
import type { Page, PointRange, PointView, VariableFacts, VariablesFilter } from "../store/records.ts";
import { both, pageOf } from "../structure/pages.ts";
import { PERIOD_RULE, readInstant } from "../time.ts";
import type { Principal } from "../token/guard.ts";
import { hasRight } from "../token/rights.ts";
import { targetUnits } from "./conversion.ts";

export interface DataRequest {
  /** Null: every account (administrators do not name one). */
  readonly accountId: number;
  readonly filter: VariablesFilter;
  readonly granularity: Granularity;
  readonly aggregates: readonly Aggregated[];
  readonly page: Page;
  readonly order: "ASC" | "DESC";
  readonly level: DataDisplayLevel;
  readonly view: PointView;
  /** In the order of preference; empty: values stay in the unit of their variable. */
  readonly targetUnits: readonly Unit[];
  readonly query: DataQuery;
}

export function readDataRequest(input: unknown, principal: Principal): DataRequest {
  const query = parsed(dataQuery, input);
  requireOneZone(query);
  const filter = {
    ids: both(query.VariableId, query.VariableIds),
    sourceIds: both(query.SourceId, query.SourceIds),
    variableTypeIds: both(query.VariableTypeId, query.VariableTypeIds),
  };
  if (Object.values(filter).every((list) => list === undefined))
    throw invalidRequest("select by VariableId, SourceId or VariableTypeId (or their plural forms)");
  return {
    accountId: accountOf(query, principal),
    filter,
    ...shapeOf(query),
    page: pageOf(query),
    order: query.PagingOrder ?? "ASC",
    level: query.DisplayLevel ?? "Value",
    view: viewOf(query),
    targetUnits: [
      ...targetUnits("TargetUnits", query.TargetUnits),
      ...targetUnits("UnitTransformation", query.UnitTransformation),
    ],
    query,
  };
}

/** How the zone of a period is asked for. */
export type ZoneQuery = Pick<DataQuery, "TimeZoneId" | "UseReportingTimezone">;

export function requireOneZone(query: ZoneQuery): void {
  if (query.TimeZoneId !== undefined && query.UseReportingTimezone === true)
    throw invalidRequest("TimeZoneId and UseReportingTimezone are mutually exclusive");
  if (query.TimeZoneId !== undefined && ianaZone(query.TimeZoneId) === undefined)
    throw invalidField("TimeZoneId", `${query.TimeZoneId} is neither an IANA nor a Windows time zone`);
}

/**
 * "Administrators only; others take the account from the token": another account is refused rather than silently
 * replaced.
 */
export function accountOf(query: Pick<DataQuery, "AccountId">, { user, accountId }: Principal): number {
  const asked = query.AccountId;
  if (asked === undefined || asked === accountId) return accountId;
  if (!hasRight(user, accountId, "every-account"))
    throw new HttpProblem(403, "missing-right", "AccountId is for administrators; others take it from the token");
  return asked;
}

function shapeOf(query: DataQuery): Pick<DataRequest, "granularity" | "aggregates"> {
  const named = [query.Aggregation ?? "None", ...(query.Aggregations ?? [])];
  const aggregates = [...new Set(named)].filter((name) => name !== "None");
  const granularity = query.Granularity ?? "Raw";
  if (granularity === "Raw" && aggregates.length > 0)
    throw invalidRequest(
      query.Granularity === undefined
        ? "an aggregation needs a Granularity: Minute, Hour, Day, Week, Month, Year or All"
        : "Granularity=Raw and an aggregation are mutually exclusive",
    );
  if (granularity !== "Raw" && aggregates.length === 0)
    throw invalidRequest(`Granularity=${granularity} needs an Aggregation`);
  return { granularity, aggregates };
}

function viewOf(query: DataQuery): PointView {
  const { VersionTag: tag, AllVersions: all, AsOf: asOf, VersionSince: since } = query;
  if ([tag !== undefined, all === true, asOf !== undefined, since !== undefined].filter(Boolean).length > 1)
    throw invalidRequest("VersionTag, AllVersions, AsOf and VersionSince are mutually exclusive");
  if (tag !== undefined) return { kind: "tag", tag };
  if (asOf !== undefined) return { kind: "asOf", versionUs: instantUs("AsOf", asOf) };
  if (since !== undefined) return { kind: "since", versionUs: instantUs("VersionSince", since) };
  if (all !== true) return { kind: "latest" };
  if ((query.Granularity ?? "Raw") !== "Raw")
    throw invalidRequest("AllVersions shows versions one by one: it goes with Granularity=Raw only");
  return { kind: "all" };
}

/** Microseconds, since VersionTimestamps are that fine. */
function instantUs(name: string, text: string): number {
  try {
    return Number(Temporal.Instant.from(text).epochNanoseconds / 1_000n);
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    throw invalidField(name, "is an ISO 8601 instant with a designator, such as 2026-03-01T00:00:00Z");
  }
}

export interface Zones {
  /** Zone of From, To and the edges of aggregates. IANA. */
  readonly period: string;
  /** Zone of the dates in the response. Windows or IANA. */
  readonly dates: string;
}

/**
 * Without TimeZoneId and UseReportingTimezone: bounds in UTC, dates in the zone of the source (platform facts, *Time*).
 */
export function zonesOf(
  { query }: { readonly query: ZoneQuery },
  variable: Pick<VariableFacts, "siteZoneId" | "sourceZoneId">,
): Zones {
  const asked = query.UseReportingTimezone === true ? variable.siteZoneId : query.TimeZoneId;
  const zone = asked === undefined ? "UTC" : (ianaZone(asked) ?? "UTC");
  return {
    // One name for what may be stored by zone.
    period: zone === "Etc/UTC" ? "UTC" : zone,
    dates: asked ?? variable.sourceZoneId,
  };
}

/** Without `page`: everything. */
export function rangeOf(request: DataRequest, zone: string, page: Page): PointRange {
  const { query, order, view } = request;
  const fromMs = boundMs("From", query.From, zone);
  const toMs = boundMs("To", query.To, zone);
  if (fromMs !== null && toMs !== null && fromMs > toMs) throw invalidField("From", "is after To");
  const lastMs = toMs === null || query.IncludeToBoundary === true ? toMs : toMs - 1;
  return { fromMs, lastMs, order, page, view };
}

export interface ZonedRange {
  readonly zones: Zones;
  readonly range: PointRange;
}

/** The zones and the range of each variable: variables that follow each other mostly share them. */
export function zonedRanges(request: DataRequest, page: Page): (variable: VariableFacts) => ZonedRange {
  let last: (Pick<VariableFacts, "siteZoneId" | "sourceZoneId"> & ZonedRange) | null = null;
  return ({ siteZoneId, sourceZoneId }) => {
    if (last?.siteZoneId === siteZoneId && last.sourceZoneId === sourceZoneId) return last;
    const zones = zonesOf(request, { siteZoneId, sourceZoneId });
    last = { siteZoneId, sourceZoneId, zones, range: rangeOf(request, zones.period, page) };
    return last;
  };
}

/** Throws a 400 that names the parameter. */
export function boundMs(name: string, text: string | undefined, zone: string): number | null {
  if (text === undefined) return null;
  const read = readInstant(text, zone, PERIOD_RULE);
  if (read.kind === "instant") return read.ms;
  // An unescaped + of an offset arrives as a blank.
  const hint = /\s\d{2}:?\d{2}$/.test(text) ? " (write the + of an offset as %2B)" : "";
  throw invalidField(name, `${read.reason}: ${JSON.stringify(text)}${hint}`);
}
