/** Reports and dry runs of files of master data (`docs/master-data.md`). */
import type { FastifyInstance } from "fastify";
import { RejectedError } from "../../support/errors.ts";
import { HttpProblem } from "../../wire/http-problem.ts";
import { dryRunQuery, type MasterDataReport, masterDataReport, masterDataReportQuery } from "../../wire/index.ts";
import type { HubContext } from "../context.ts";
import { requireScanned } from "../files/content.ts";
import { callerOf } from "../http/access.ts";
import { invalidField, parsed } from "../http/problems.ts";
import { described } from "../http/route.ts";
import type { KeptReport } from "../store/master-data.ts";
import type { FileRecord } from "../store/store.ts";
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
    const report = await store.reports.newest(accountId, file.id, fileName, query.Result, pageOf(query));
    if (report === null) throw notFound("report of the file", `${file.id} (${fileName})`);
    if (wantsCount(request, query)) sendCount(reply, report.items.total);
    return shown(file.id, report, report.items.rows);
  });
  app.post<WithId>("/storage/:id/dryRun", OPTIONS.dryRun, async (request, reply) => {
    const { accountId, user } = callerOf(request);
    const file = await existing(context, accountId, request.params.id);
    const query = parsed(dryRunQuery, request.query);
    requireScanned(file);
    const settings = { delimiter: query.Delimiter, encoding: query.Encoding };
    const local = await files.blobs.local(file.sha256);
    const ended = new AbortController();
    request.raw.once("close", () => ended.abort());
    try {
      const report = await masterData
        .dryRun(file, local.path, settings, { sender: user, signal: ended.signal })
        .catch(asProblem);
      const wanted = report.items.filter(({ result }) => query.Result?.includes(result) !== false);
      const { offset, limit } = pageOf(query);
      if (wantsCount(request, query)) sendCount(reply, wanted.length);
      return shown(file.id, report, wanted.slice(offset, limit === null ? undefined : offset + limit));
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

function shown(fileId: number, report: Omit<KeptReport, "items">, items: KeptReport["items"]): MasterDataReport {
  const { fileName, createdMs, dryRun, applied, rows } = report;
  return { fileId, fileName, date: isoOfMs(createdMs), dryRun, applied, rows, items: [...items] };
}

function asProblem(thrown: unknown): never {
  throw thrown instanceof RejectedError ? new HttpProblem(413, "too-large", thrown.message) : thrown;
}
