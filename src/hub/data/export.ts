/** GET {base_url}/data/export: values as a file, streamed (an extension). */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { invalidRequest } from "#wire/http-problem.ts";
import { exportQuery } from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { callerOf } from "../http/access.ts";
import { parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { warn } from "../http/warnings.ts";
import { namedColumns } from "./columns.ts";
import { conversionWarning } from "./conversion.ts";
import { csvTexts } from "./csv.ts";
import { readDataRequest, zonedRanges } from "./query.ts";
import { tableRows } from "./table.ts";
import { arrayTexts } from "./texts.ts";
import { sendWorkbook } from "./workbook.ts";

/** Limit on the variables of one file. */
const VARIABLES_MAX = 100;

const OPTIONS = described({
  access: "read",
  tag: "Data",
  summary: "Values as a file: CSV, a workbook, or JSON",
  description:
    "An extension of Headgate. CSV and workbooks have a row for each date and a column for each of at most 100 " +
    "variables and each aggregate; the workbook has a second sheet that says what it holds. In a browser that has " +
    "signed in a link is enough.",
  query: exportQuery,
  answerType: "text/csv",
  example: { query: { VariableIds: [1], Format: "csv", From: "2026-03-01", To: "2026-04-01" } },
});

export async function exportRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  app.get("/data/export", OPTIONS, (request, reply) => exportData(context, request, reply));
}

async function exportData(context: HubContext, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { store } = context;
  const caller = callerOf(request);
  const { Format: format, ...query } = parsed(exportQuery, request.query);
  if (query.AllVersions === true && format !== "json")
    throw invalidRequest("AllVersions goes with Format=json: a table has one value for each date");
  const level = { PagingOrder: "ASC", ...(format === "json" ? {} : { DisplayLevel: "ValueVariableDate" }) };
  const asked = readDataRequest({ ...query, ...level }, caller);
  const variables = await store.points.select(asked.accountId, asked.filter);
  if (format !== "json" && variables.length > VARIABLES_MAX)
    throw invalidRequest(`a table has ${VARIABLES_MAX} variables at most, and these are ${variables.length}`);
  variables.forEach(zonedRanges(asked, asked.page));
  const warning = conversionWarning(variables, asked.targetUnits);
  if (warning !== null) warn(reply, warning);
  void reply.header("content-disposition", `attachment; filename="${fileName(query)}.${format}"`);
  if (format === "json") {
    void reply.type("application/json; charset=utf-8");
    return reply.send(Readable.from(arrayTexts(store.points, asked, variables)));
  }
  const columns = await namedColumns(context, asked, variables);
  const rows = tableRows(store.points, asked, variables);
  if (format === "xlsx") {
    const exported = { at: context.clock.now().toString(), by: caller.user.username, query };
    return sendWorkbook(reply, { columns, rows, exported, log: context.log });
  }
  void reply.type("text/csv; charset=utf-8; header=present");
  return reply.send(Readable.from(csvTexts(columns, rows)));
}

function fileName({ From: from, To: to }: { readonly From?: string | undefined; readonly To?: string | undefined }) {
  const part = (text: string | undefined) => (text ?? "").replaceAll(/[^0-9A-Za-z-]/g, "").slice(0, 20);
  return ["values", part(from), part(to)].filter((text) => text !== "").join("_");
}
