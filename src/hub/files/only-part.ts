/** Bodies of multipart/form-data: their only part, of any name, is the file. */
import multipart from "@fastify/multipart";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import type { HubContext } from "../context.ts";
import type { PutBlob } from "./blobs.ts";
import { type Allowance, brokenOff, receive } from "./intake.ts";
import type { StoredFiles } from "./service.ts";

/** Of the parts' headers and boundaries, beside the bytes of the file. */
export const FRAME_BYTES_MAX = 16_384;
const FIELDS_MAX = 20;

export interface OnlyPart {
  readonly put: PutBlob;
  /** As its sender names the file, without folders. */
  readonly fileName: string | undefined;
  readonly contentType: string;
}

/** The limit of the file is that of `BlobStore.put`, which counts what it writes. */
export async function parseMultipart(app: FastifyInstance, fileMax: number): Promise<void> {
  const limits = { fileSize: fileMax + 1, files: 2, fields: FIELDS_MAX };
  await app.register(multipart, { limits, throwFileSizeLimit: false, isPartAFile: () => true });
}

/** Takes the bytes. `judge` throws for a name that is refused. Throws a problem, and then nothing is kept. */
export async function onlyPart(
  context: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  allowance: Allowance,
  judge: (fileName: string) => void = () => undefined,
): Promise<OnlyPart> {
  let only: OnlyPart | null = null;
  try {
    for await (const part of request.parts()) {
      if (part.type !== "file") continue;
      if (only !== null) throw invalidRequest("the body has several parts; send one file per call");
      const fileName = part.filename || undefined;
      if (fileName !== undefined) judge(fileName);
      const put = await receive(context, files, request, part.file, allowance);
      only = { put, fileName, contentType: part.mimetype };
    }
  } catch (thrown) {
    only?.put.release();
    if (only !== null) await files.discard([only.put.sha256]);
    throw brokenOff(request) ?? unreadable(thrown) ?? thrown;
  }
  if (only === null) throw invalidRequest("the body has no part that holds a file");
  return only;
}

/** Words of the multipart parser about a body that it cannot read. */
const UNREADABLE = /end of form|end of multipart|multipart|part header|part terminated/i;

/** Null for every other failure. */
function unreadable(thrown: unknown): HttpProblem | null {
  if (!(thrown instanceof Error) || thrown instanceof HttpProblem || !UNREADABLE.test(thrown.message)) return null;
  return invalidRequest(`the body is no complete multipart/form-data: ${thrown.message}`);
}
