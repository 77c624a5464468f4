/** GET and POST {base_url}/dataLossDetection and {base_url}/dataQuality (docs/data-quality.md). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  ianaZone,
  type LossQuery,
  lossQuery,
  lossRows,
  type QualityQuery,
  qualityQuery,
  qualityRows,
} from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { accountOf, boundMs, requireOneZone, zonesOf } from "../data/query.ts";
import { callerOf } from "../http/access.ts";
import { parametersOf } from "../http/parameters.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { MeasuredVariable } from "../store/quality/variables.ts";
import type { Page } from "../store/records.ts";
import { partsOf, sendTexts } from "../structure/lists.ts";
import { both, pageOf, sendCount, wantsCount } from "../structure/pages.ts";
import type { Principal } from "../token/guard.ts";
import type { SeriesJob, VariableAsk } from "./losses.ts";
import { createSeriesReports, type SeriesReports, StoreTrouble } from "./service.ts";

const DETAILS = 100;
const DETAILS_MAX = 10_000;
const FLAT_POINTS = 8;
const FLAT_HOURS = 24;
const HOUR_MS = 3_600_000;
const OUTLIER_DEVIATIONS = 8;
const MARCH = { VariableIds: [1], From: "2026-03-01T00:00:00", To: "2026-04-01T00:00:00", TimeZoneId: "Europe/Paris" };
const LOSSES = {
  summary: "Expected and missing points of variables, by period",
  answer: lossRows,
  example: { ...MARCH, Granularity: "Week", OnlyLosses: true },
};
const QUALITY = {
  summary: "Gaps, duplicates, flat lines, outliers and more of variables, with a score",
  answer: qualityRows,
  example: MARCH,
};
const BODY = "The parameters are in a body, which has no limit of an address.";

const OPTIONS = {
  losses: listedWith(LOSSES, lossQuery),
  quality: listedWith(QUALITY, qualityQuery),
};

function listedWith<Query extends typeof lossQuery | typeof qualityQuery>(
  { summary, answer, example }: typeof LOSSES | typeof QUALITY,
  query: Query,
) {
  const shared = { access: "read", tag: "Data", summary, answer } as const;
  return {
    get: described({ ...shared, query, example: { query: example } }),
    post: described({
      ...shared,
      description: BODY,
      body: query,
      parametersInBody: true,
      example: { body: example },
    }),
  };
}

const ADDRESSES: Readonly<Record<Report, string>> = { losses: "/dataLossDetection", quality: "/dataQuality" };

export async function qualityRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const reports = createSeriesReports(context.options);
  app.addHook("onClose", () => reports.close());
  for (const report of ["losses", "quality"] as const) {
    const { get, post } = OPTIONS[report];
    const url = ADDRESSES[report];
    app.get(url, get, (request, reply) => answer({ report, reports, ...context }, request, reply, request.query));
    app.post(url, post, (request, reply) =>
      answer({ report, reports, ...context }, request, reply, parametersOf(request)),
    );
  }
}

/** Limit on the variables of one answer without paging. */
const VARIABLES_MAX = 10_000;
const AGAIN_SEC = 10;

type Asked = Pick<HubContext, "store" | "clock" | "log"> & {
  readonly report: Report;
  readonly reports: SeriesReports;
};

async function answer(
  { report, reports, store, clock, log }: Asked,
  request: FastifyRequest,
  reply: FastifyReply,
  input: unknown,
): Promise<FastifyReply> {
  const { query, accountId, page, job } = readReport(report, input, callerOf(request));
  const limit = Math.min(page.limit ?? VARIABLES_MAX, VARIABLES_MAX);
  const count = (total: number) => {
    if (wantsCount(request, query)) sendCount(reply, total);
    if (limit === VARIABLES_MAX && total > page.offset + VARIABLES_MAX)
      warn(reply, `only the first ${VARIABLES_MAX} of ${total} variables are listed; Paging leads to the others`);
  };
  const filter = filterOf(query);
  const listed = (part: Page) => store.measured.list(accountId, filter, part);
  const parts = partsOf(listed, { ...page, limit }, { keyOf: ({ id }) => id, count });
  const nowMs = clock.now().epochMilliseconds;
  const texts = reports.texts({ accountId, job, variables: asksOf(query, parts, nowMs) });
  return sendTexts(reply, texts).catch((thrown: unknown) => {
    if (!(thrown instanceof StoreTrouble)) throw thrown;
    log.warn({ err: thrown }, "series cannot be read");
    throw new HttpProblem(503, "unavailable", "the store does not answer; ask again later", undefined, AGAIN_SEC);
  });
}

// Parameters of /dataLossDetection and /dataQuality, read as those of /data.

type Report = SeriesJob["report"];
interface ReportRequest {
  readonly query: LossQuery | QualityQuery;
  readonly accountId: number;
  readonly page: Page;
  /** Without variables. */
  readonly job: SeriesJob;
}

function readReport(report: Report, input: unknown, principal: Principal): ReportRequest {
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

function filterOf(query: LossQuery | QualityQuery) {
  return {
    ids: both(query.VariableId, query.VariableIds),
    sourceIds: both(query.SourceId, query.SourceIds),
    siteIds: both(query.SiteId, query.SiteIds),
    variableTypeIds: both(query.VariableTypeId, query.VariableTypeIds),
  };
}

async function* asksOf(
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
