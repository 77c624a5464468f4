/** Reports and dry runs of files of master data (`docs/master-data.md`). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { RejectedError } from "#core/errors.ts";
import { breath } from "#core/turns.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import {
  dryRunQuery,
  type MasterDataReport,
  masterDataReport,
  masterDataReportQuery,
  type ReportedRow,
  ROW_RESULTS,
  type RowResult,
} from "#wire/index.ts";
import type { HubContext } from "../context.ts";
import { requireScanned } from "../files/content.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import { REPORT_PART_ROWS, type ReportHeader } from "../store/master-data.ts";
import type { Page } from "../store/records.ts";
import type { FileRecord } from "../store/stored-files.ts";
import { sendTexts } from "../structure/lists.ts";
import { notFound, pageOf, pathId, sendCount, wantsCount } from "../structure/pages.ts";
import { isoOfMs } from "../time.ts";

interface WithId {
  Params: { id: string };
}

const OPTIONS = {
  report: described({
    access: "read",
    tag: "Master data",
    summary: "What became of each row of a file of master data",
    query: masterDataReportQuery,
    answer: masterDataReport,
  }),
  dryRun: described({
    access: "manage",
    tag: "Master data",
    summary: "What a stored file would change as master data; changes nothing",
    query: dryRunQuery,
    answer: masterDataReport,
  }),
};

export async function masterDataRoutes(app: FastifyInstance, context: HubContext): Promise<void> {
  const { store, files, masterData } = context;
  // Without a folder the storage says that it is not configured.
  if (files === null) return;
  app.get<WithId>("/storage/:id/report", OPTIONS.report, async (request, reply) => {
    const { accountId } = callerOf(request);
    const file = await existing(context, accountId, request.params.id);
    const query = parsed(masterDataReportQuery, request.query);
    const fileName = await reportedName(context, file, query.File);
    const page = pageOf(query);
    const report = await store.reports.newest(accountId, file.id, fileName);
    if (report === null) throw notFound("report of the file", `${file.id} (${fileName})`);
    const partOf = (part: number) => store.reports.part(report.id, part);
    return sendReport({ request, reply, query, page }, file.id, report, partOf);
  });
  app.post<WithId>("/storage/:id/dryRun", OPTIONS.dryRun, async (request, reply) => {
    const { accountId, user } = callerOf(request);
    const file = await existing(context, accountId, request.params.id);
    const query = parsed(dryRunQuery, request.query);
    const page = pageOf(query);
    requireScanned(file);
    const settings = { delimiter: query.Delimiter, encoding: query.Encoding };
    const local = await files.blobs.local(file.sha256);
    const ended = new AbortController();
    request.raw.once("close", () => ended.abort());
    try {
      const { header, parts } = await masterData
        .dryRun(file, local.path, settings, { sender: user, signal: ended.signal })
        .catch(asProblem);
      const partOf = async (part: number) => parts[part] ?? null;
      return sendReport({ request, reply, query, page }, file.id, header, partOf);
    } finally {
      await local.end();
    }
  });
}

async function existing({ store }: HubContext, accountId: number, id: string): Promise<FileRecord> {
  const file = await store.files.one(accountId, pathId(id));
  if (file === null) throw notFound("file", id);
  return file;
}

/** A container has a report for each file in it. */
async function reportedName({ store }: HubContext, file: FileRecord, wanted: string | undefined): Promise<string> {
  const names = await store.reports.files(file.accountId, file.id);
  const [first, second] = names;
  if (wanted !== undefined && !names.includes(wanted))
    throw invalidField("File", `the file ${file.id} has reports of: ${names.join(", ") || "nothing"}`);
  if (wanted === undefined && second !== undefined)
    throw invalidField("File", `name one of the files in it: ${names.join(", ")}`);
  if (first !== undefined) return wanted ?? first;
  const why =
    file.state === "received" || file.state === "processing"
      ? `it is ${file.state}`
      : "a trigger of the type OpisenseMasterData makes one";
  throw new HttpProblem(404, "not-found", `the file ${file.id} has no report: ${why}`);
}

interface Asked {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly query: z.output<typeof dryRunQuery> | z.output<typeof masterDataReportQuery>;
  readonly page: Page;
}

/** A part of the rows of a report as a JSON array; null behind the last one. */
type PartOf = (part: number) => Promise<string | null>;

/** A report can have a row for each of hundreds of thousands: memory holds a part of them. */
function sendReport({ request, reply, query, page }: Asked, fileId: number, header: ReportHeader, partOf: PartOf) {
  const { fileName, createdMs, dryRun, applied, rows } = header;
  const results = query.Result ?? ROW_RESULTS;
  const total = [...new Set(results)].reduce((sum, result) => sum + rows[result], 0);
  if (wantsCount(request, query)) sendCount(reply, total);
  const facts: Omit<MasterDataReport, "items"> = { fileId, fileName, date: isoOfMs(createdMs), dryRun, applied, rows };
  const begin = `${JSON.stringify(facts).slice(0, -1)},"items":[`;
  return sendTexts(reply, itemTexts(results, page, partOf), { begin, end: "]}" });
}

async function* itemTexts(results: readonly RowResult[], page: Page, partOf: PartOf): AsyncGenerator<string, void> {
  const areAll = ROW_RESULTS.every((result) => results.includes(result));
  let part = areAll ? Math.floor(page.offset / REPORT_PART_ROWS) : 0;
  let before = areAll ? page.offset % REPORT_PART_ROWS : page.offset;
  let left = page.limit ?? Number.POSITIVE_INFINITY;
  for (; left > 0; part += 1) {
    const text = await partOf(part);
    if (text === null) return;
    const all: readonly ReportedRow[] = JSON.parse(text);
    const wanted = all.filter(({ result }) => results.includes(result));
    const shown = wanted.slice(before, before + left);
    before = Math.max(0, before - wanted.length);
    left -= shown.length;
    if (shown.length > 0) yield shown.map((row) => JSON.stringify(row)).join(",");
    await breath();
  }
}

function asProblem(thrown: unknown): never {
  throw thrown instanceof RejectedError ? new HttpProblem(413, "too-large", thrown.message) : thrown;
}
