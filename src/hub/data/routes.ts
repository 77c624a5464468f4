/** GET and POST {base_url}/data (specification, *Data endpoints*). */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { dataQuery, dataRows } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parametersOf } from "../http/parameters.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import { sendCount, wantsCount } from "../structure/pages.ts";
import { conversionWarning } from "./conversion.ts";
import { rangeOf, readDataRequest, zonedRanges } from "./query.ts";
import { countRows } from "./rows.ts";
import { arrayTexts } from "./texts.ts";

export async function dataRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  app.get("/data", OPTIONS.get, (request, reply) => answer(context, request, reply, request.query));
  app.post("/data", OPTIONS.post, (request, reply) => answer(context, request, reply, parametersOf(request)));
}

const DAILY_SUMS = {
  VariableIds: [1],
  From: "2026-03-01T00:00:00",
  To: "2026-04-01T00:00:00",
  TimeZoneId: "Europe/Paris",
  Granularity: "Day",
  Aggregation: "SUM",
  DisplayLevel: "ValueVariableDate",
};
const OPTIONS = {
  get: described({
    access: "read",
    tag: "Data",
    summary: "Points of variables, or aggregates of them",
    query: dataQuery,
    answer: dataRows,
    example: { query: DAILY_SUMS },
  }),
  post: described({
    access: "read",
    tag: "Data",
    summary: "The same with the parameters in a body, which has no limit of an address",
    body: dataQuery,
    parametersInBody: true,
    answer: dataRows,
    example: { body: DAILY_SUMS },
  }),
};

async function answer(
  { store }: HubContext,
  request: FastifyRequest,
  reply: FastifyReply,
  input: unknown,
): Promise<FastifyReply> {
  const principal = callerOf(request);
  const asked = readDataRequest(input, principal);
  // Faults of the period are reported even when no variable is selected.
  rangeOf(asked, "UTC", asked.page);
  const variables = await store.points.select(asked.accountId, asked.filter);
  variables.forEach(zonedRanges(asked, asked.page));
  if (wantsCount(request, asked.query)) sendCount(reply, await countRows(store.points, asked, variables));
  const warning = conversionWarning(variables, asked.targetUnits);
  if (warning !== null) warn(reply, warning);
  void reply.type("application/json; charset=utf-8");
  // Most answers are one piece, which needs no stream.
  const texts = arrayTexts(store.points, asked, variables);
  const first = await texts.next();
  const second = await texts.next();
  if (second.done === true) return reply.send(first.value ?? "[]");
  return reply.send(Readable.from(joined(first.value, second.value, texts)));
}

async function* joined(first: string, second: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  try {
    yield first;
    yield second;
    yield* rest;
  } finally {
    // A client that leaves early ends what is read for it.
    await rest.return(undefined);
  }
}
