/**
 * The steps that every way of sending a file shares: it is refused before a byte of its body is read where the
 * headers suffice, its bytes are durable before the record, and the record before the answer.
 */
import type { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { faultPoint } from "#core/faults.ts";
import { HttpProblem, invalidRequest } from "#wire/http-problem.ts";
import { idempotencyKeyOf, REPLAYED_HEADER } from "#wire/push-request.ts";
import type { HubContext } from "../context.ts";
import { admitAgain, callerOf } from "../http/access.ts";
import { invalidField } from "../http/problems.ts";
import type { NewFile } from "../store/stored-files.ts";
import { BlobTooLarge, type PutBlob } from "./blobs.ts";
import { kindOf } from "./kinds.ts";
import type { StoredFiles } from "./service.ts";

export type FileDraft = Pick<
  NewFile,
  "fileName" | "tags" | "siteId" | "via" | "triggerId" | "idempotencyKey" | "webhookUrl"
>;

export type IntakeParts = Pick<HubContext, "options" | "store" | "clock" | "log">;

/** Largest number of bytes that the file may have. */
export interface Allowance {
  readonly bytesMax: number;
  /** Whether the quota of the account, and not the limit of one file, sets `bytesMax`. */
  readonly byQuota: boolean;
  readonly idempotencyKey: string | null;
  /** A file came before with the key: the same one costs nothing. */
  readonly isRepeat: boolean;
}

/** For `onRequest`. `frame`: bytes that a body may have beside the file. Throws what the headers show to be refused. */
export async function allowed(context: HubContext, request: FastifyRequest, frame: number): Promise<Allowance> {
  const { accountId } = callerOf(request);
  const { file: limit } = context.options.limits;
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity")
    throw new HttpProblem(415, "unsupported-media-type", `the body is ${encoding}; send it without Content-Encoding`);
  const length = Number(request.headers["content-length"] ?? 0);
  if (length > limit + frame) throw tooLarge(context);
  const quota = quotaOf(context, accountId);
  const idempotencyKey = idempotencyKeyOf(request);
  const isRepeat = idempotencyKey !== null && (await context.store.files.hasKey(accountId, idempotencyKey));
  const key = { idempotencyKey, isRepeat };
  if (quota === null || isRepeat) return { bytesMax: limit, byQuota: false, ...key };
  const rest = quota - (await context.store.files.usedBytes(accountId));
  if (rest <= 0 || length > rest + frame) throw quotaExceeded(quota);
  return { bytesMax: Math.min(limit, rest), byQuota: rest < limit, ...key };
}

/** Throws a problem where the sender or the disk is at fault; then nothing is kept. */
export async function receive(
  context: HubContext,
  files: StoredFiles,
  request: FastifyRequest,
  stream: Readable,
  { bytesMax, byQuota }: Pick<Allowance, "bytesMax" | "byQuota">,
): Promise<PutBlob> {
  try {
    return await files.blobs.put(stream, bytesMax);
  } catch (thrown) {
    if (thrown instanceof BlobTooLarge)
      throw byQuota ? quotaExceeded(quotaOf(context, callerOf(request).accountId)) : tooLarge(context);
    throw context.fullDisk.problemOf(thrown) ?? brokenOff(request) ?? thrown;
  }
}

const REFUSALS: readonly string[] = ["too-large", "quota-exceeded"];

/** Devices show their answers to no person, so refusals for want of space are in the log, too. */
export function logRefusals(
  app: FastifyInstance,
  { log }: Pick<HubContext, "log">,
  nameOf: (request: FastifyRequest) => string | undefined,
): void {
  app.addHook("onError", async (request, _reply, thrown) => {
    if (!(thrown instanceof HttpProblem) || !REFUSALS.includes(thrown.code)) return;
    const { accountId, user } = callerOf(request);
    const name = nameOf(request) ?? null;
    log.warn({ account: accountId, user: user.username, name, reason: thrown.message }, REFUSED);
  });
}

/** Of a line in the log. */
export const REFUSED = "a file was refused";

/** Null when the body came to its end. */
export function brokenOff({ raw }: FastifyRequest): HttpProblem | null {
  return raw.destroyed && !raw.complete ? invalidRequest("the upload was broken off") : null;
}

/**
 * Returns the id: that of the first file where the same one came before with its key, which a header says. Bytes
 * without a record go.
 */
export async function recorded(
  context: HubContext,
  files: StoredFiles,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  put: PutBlob,
  draft: FileDraft,
): Promise<number> {
  const { accountId, user } = callerOf(request);
  try {
    await admitAgain(context, request);
  } catch (thrown) {
    put.release();
    await files.discard([put.sha256]);
    throw thrown;
  }
  const { id, isRepeat } = await recordedFor(context, files, { accountId, user }, put, draft);
  if (isRepeat) void reply.header(REPLAYED_HEADER, "true");
  return id;
}

/** Like `recorded`, for files that come otherwise than by HTTP. */
export async function recordedFor(
  context: IntakeParts,
  files: StoredFiles,
  {
    accountId,
    user,
  }: { readonly accountId: number; readonly user: { readonly id: number; readonly username: string } },
  put: PutBlob,
  draft: FileDraft & Pick<NewFile, "unansweredUntilMs" | "answered">,
): Promise<{ readonly id: number; readonly isRepeat: boolean }> {
  const quota = quotaOf(context, accountId);
  let isRecorded = false;
  try {
    if (put.bytes === 0) throw invalidRequest("the file is empty");
    faultPoint("hub.file.durable");
    const added = await context.store.files.add(
      accountId,
      {
        ...draft,
        ...kindOf(put.head, draft.fileName),
        size: put.bytes,
        sha256: put.sha256,
        createdBy: user.username,
        createdById: user.id,
        createdMs: context.clock.now().epochMilliseconds,
        isScanned: files.isScanned,
      },
      quota,
    );
    if (added.kind === "repeated") {
      context.log.info({ id: added.id, name: draft.fileName, via: draft.via }, "a file came again; it is stored once");
      return { id: added.id, isRepeat: true };
    }
    if (added.kind === "conflict")
      throw new HttpProblem(
        422,
        "idempotency-conflict",
        `this Idempotency-Key came before with another file, which is ${added.id} (GET /storage/${added.id})`,
      );
    if (added.kind === "no-site") throw noSite(draft.siteId ?? 0);
    if (added.kind === "full") throw quotaExceeded(quota);
    isRecorded = true;
    faultPoint("hub.file.recorded");
    context.log.debug({ id: added.id, name: draft.fileName, via: draft.via, bytes: put.bytes }, "file stored");
    files.wake(accountId);
    return { id: added.id, isRepeat: false };
  } finally {
    put.release();
    if (!isRecorded) await files.discard([put.sha256]);
  }
}

export function noSite(id: number): HttpProblem {
  return invalidField("SiteId", `no site ${id} in this account (GET /sites)`);
}

/** Bytes that the files of an account may have; null without a limit. */
export function quotaOf({ options }: IntakeParts, accountId: number): number | null {
  const own = options.accounts.find(({ id }) => id === accountId)?.limits?.storedBytes;
  return own ?? options.customerLimits.storedBytes ?? null;
}

function tooLarge({ options }: HubContext): HttpProblem {
  return new HttpProblem(413, "too-large", `the file is larger than ${options.limits.file} bytes (\`limits.file\`)`);
}

export function quotaExceeded(quota: number | null): HttpProblem {
  const words = `the files of the account would exceed ${quota} bytes; remove some first (DELETE /storage)`;
  return new HttpProblem(507, "quota-exceeded", words);
}
