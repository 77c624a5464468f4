/** GET and POST {base_url}/dataLossDetection and {base_url}/dataQuality (docs/data-quality.md). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { HttpProblem } from "#wire/http-problem.ts";
import { lossQuery, lossRows, qualityQuery, qualityRows } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parametersOf } from "../http/parameters.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import type { Page } from "../store/store.ts";
import { partsOf, sendTexts } from "../structure/lists.ts";
import { sendCount, wantsCount } from "../structure/pages.ts";
import { asksOf, filterOf, type Report, readReport } from "./query.ts";
import { createSeriesReports, type SeriesReports, StoreTrouble } from "./service.ts";

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
  losses: both(LOSSES, lossQuery),
  quality: both(QUALITY, qualityQuery),
};

function both<Query extends typeof lossQuery | typeof qualityQuery>(
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
