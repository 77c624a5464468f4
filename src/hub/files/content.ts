/** GET and HEAD /storage/file: the content of one file, also in ranges, or of several as a ZIP. */
import { finished, type Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ZipFile } from "yazl";
import { systemCode } from "#core/errors.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import type { FileRecord } from "../store/stored-files.ts";
import type { ByteRange } from "./blobs.ts";
import type { StoredFiles } from "./service.ts";

/** Contents of accounts never run in a browser as pages of the hub. */
const SAFE = { "x-content-type-options": "nosniff", "content-security-policy": "sandbox; default-src 'none'" };

/** Throws a 409 for content that the virus scan found infected, or has not judged yet. */
export function requireScanned({ id, scan }: FileRecord): void {
  if (scan === "infected") throw new HttpProblem(409, "conflict", `the virus scan found the file ${id} infected`);
  if (scan !== "waiting") return;
  const words = `the file ${id} waits for the virus scan: its content can be read when GET /storage/${id} says so`;
  throw new HttpProblem(409, "conflict", `${words} (scan: clean)`);
}

export async function sendOne(
  files: StoredFiles,
  request: FastifyRequest,
  reply: FastifyReply,
  file: FileRecord,
): Promise<FastifyReply> {
  const etag = `"${file.sha256}"`;
  void reply.headers({
    ...SAFE,
    etag,
    "accept-ranges": "bytes",
    "last-modified": new Date(file.createdMs).toUTCString(),
    "content-disposition": disposition(baseName(file.fileName)),
  });
  if (names(request.headers["if-none-match"], etag)) return reply.code(304).send();
  const range = rangeOf(request, etag, file.size);
  if (range === "unsatisfiable") {
    void reply.header("content-range", `bytes */${file.size}`);
    throw new HttpProblem(416, "invalid-request", `the file has ${file.size} bytes, and none of them is in the range`);
  }
  const length = range === null ? file.size : range.end - range.start + 1;
  if (request.method === "HEAD") return reply.type(file.contentType).header("content-length", length).send();
  const stream = await files.blobs.read(file.sha256, range ?? undefined);
  void reply.type(file.contentType).header("content-length", length);
  if (range !== null) void reply.code(206).header("content-range", `bytes ${range.start}-${range.end}/${file.size}`);
  return reply.send(stream);
}

/** Constant memory: an entry is opened when the one before it has been sent. */
export async function sendSeveral(
  { log }: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  reply: FastifyReply,
  records: readonly FileRecord[],
): Promise<FastifyReply> {
  void reply.headers({ ...SAFE, "content-disposition": disposition("files.zip") }).type("application/zip");
  if (request.method === "HEAD") return reply.send();
  const zip = new ZipFile();
  const output = zip.outputStream as Readable;
  let open: Readable | null = null;
  const abandon = (thrown: unknown) => output.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)));
  zip.on("error", abandon);
  finished(output, (fault) => {
    open?.destroy();
    if (!fault) return;
    const words = "an archive of stored files was not sent to its end";
    if (isByClient(fault)) log.info({ err: fault }, words);
    else log.warn({ err: fault }, words);
  });
  const taken = new Set<string>();
  for (const file of records) {
    // Other contents are mostly packed already, and would only cost time.
    const compress = file.cloudItemTypeId === "Text";
    const options = { mtime: new Date(file.createdMs), compress, size: file.size };
    zip.addReadStreamLazy(entryName(file, taken), options, (opened) => {
      files.blobs.read(file.sha256).then((stream) => {
        open = stream;
        if (output.destroyed) stream.destroy();
        else opened(null, stream);
      }, abandon);
    });
  }
  zip.end();
  return reply.send(output);
}

/** Its connection ended; any other fault is one of the stored bytes. */
function isByClient(fault: Error): boolean {
  return systemCode(fault) === "ERR_STREAM_PREMATURE_CLOSE";
}

/** Files of one name get their ids added. */
function entryName({ id, fileName }: FileRecord, taken: Set<string>): string {
  const dot = fileName.lastIndexOf(".");
  const end = dot > fileName.lastIndexOf("/") + 1 ? dot : fileName.length;
  let name = fileName;
  for (let mark = ` (${id})`; taken.has(name); mark += ` (${id})`)
    name = `${fileName.slice(0, end)}${mark}${fileName.slice(end)}`;
  taken.add(name);
  return name;
}

function baseName(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** RFC 6266: a plain name for old clients, and the whole one in UTF-8. */
function disposition(name: string): string {
  const plain = name.replaceAll(/[^\x20-\x7e]|["\\%]/g, "_");
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`);
  return `attachment; filename="${plain}"; filename*=UTF-8''${encoded}`;
}

function names(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header.split(",").some((one) => ["*", etag, `W/${etag}`].includes(one.trim()));
}

/**
 * Null: the whole file. Several ranges, and those that cannot be read, are ignored, as RFC 9110 permits, and so are
 * those of HEAD, for which it has none.
 */
function rangeOf({ method, headers }: FastifyRequest, etag: string, size: number): ByteRange | "unsatisfiable" | null {
  if (method === "HEAD") return null;
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/.exec(headers.range ?? "");
  const condition = headers["if-range"];
  if (match === null || (condition !== undefined && condition !== etag)) return null;
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return null;
  if (first === "") return last === "0" ? "unsatisfiable" : { start: Math.max(0, size - Number(last)), end: size - 1 };
  const start = Number(first);
  const end = last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== "" && Number(last) < start) return null;
  return start >= size ? "unsatisfiable" : { start, end };
}
