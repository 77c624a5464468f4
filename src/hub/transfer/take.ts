/** Makes a stored file of an upload: the bytes are durable before the record, and the record before the answer. */
import { wordsOf } from "#core/errors.ts";
import { HttpProblem } from "#wire/http-problem.ts";
import { BlobTooLarge, type Content } from "../files/blobs.ts";
import { type IntakeParts, quotaExceeded, quotaOf, recordedFor } from "../files/intake.ts";
import type { StoredFiles } from "../files/service.ts";
import type { FileRecord } from "../store/stored-files.ts";
import { TreeFault } from "./file-tree.ts";

export interface Sender {
  readonly id: number;
  readonly username: string;
  readonly via: FileRecord["via"];
  /** Throws `TreeFault` when the user may no longer send files to the account, or has to sign in again. */
  admit(accountId: number): Promise<void>;
}

export interface UploadedFile {
  readonly accountId: number;
  readonly name: string;
  /** All bytes, from the first one on. */
  content(): Content;
  readonly size: number;
  readonly sender: Sender;
  /** Asked before the record is made. */
  readonly isWanted: () => boolean;
}

/** Takes uploads for good. A sender that did not get the answer sends its file again, which then is the same one. */
export interface Taker {
  /** Returns the id of the stored file. */
  take(file: UploadedFile): Promise<number>;
  /** For one upload: throws when the quota of the account does not permit a file of this size. */
  quotaCheck(accountId: number, name: string): (size: number) => Promise<void>;
  /** The sender of this file has got the answer, which is recorded with the next file, or when this is closed. */
  answered(id: number): void;
  close(): Promise<void>;
}

/** After so many further bytes of an upload the quota is asked for again, as others may have used it up. */
const QUOTA_STEP_BYTES = 8 * 1024 * 1024;

export function createTaker(parts: IntakeParts, files: StoredFiles): Taker {
  const answered = new Set<number>();
  return {
    async take(file) {
      const known = [...answered];
      const id = await take(parts, files, file, known).catch(rethrow);
      for (const one of known) answered.delete(one);
      return id;
    },
    quotaCheck(accountId, name) {
      let checked = 0;
      return async (size) => {
        if (size <= checked) return;
        const most = await permittedBytes(parts, accountId, name, size).catch(rethrow);
        checked = Math.min(most, size + QUOTA_STEP_BYTES);
      };
    },
    answered: (id) => void answered.add(id),
    async close() {
      if (answered.size === 0) return;
      await parts.store.files.answered([...answered]).catch((thrown) => {
        const words = "a file that its sender sends again within `transfer.repeats` may count as the same one";
        parts.log.warn({ ids: [...answered], err: wordsOf(thrown) }, words);
      });
    },
  };
}

async function take(
  parts: IntakeParts,
  files: StoredFiles,
  { accountId, name, content, size, sender, isWanted }: UploadedFile,
  answered: readonly number[],
): Promise<number> {
  if (!isWanted()) throw brokenOff();
  // The record checks it, and the upload has; this spares the copy of a large file, for which the quota may be used up.
  if (size > QUOTA_STEP_BYTES) await permittedBytes(parts, accountId, name, size);
  const put = await files.blobs.put(content(), parts.options.limits.file).catch((thrown) => {
    if (thrown instanceof BlobTooLarge) throw new TreeFault("full", "the file is larger than `limits.file` permits");
    throw thrown;
  });
  try {
    if (!isWanted()) throw brokenOff();
    // The bytes of a large file may have taken long.
    await sender.admit(accountId);
  } catch (thrown) {
    put.release();
    await files.discard([put.sha256]);
    throw thrown;
  }
  const { repeats = 0 } = parts.options.transfer ?? {};
  const unansweredUntilMs = parts.clock.now().epochMilliseconds + repeats;
  const again = repeats === 0 ? {} : { unansweredUntilMs, answered };
  const draft = { fileName: name, tags: [], siteId: null, via: sender.via, ...again };
  return (await recordedFor(parts, files, { accountId, user: sender }, put, draft)).id;
}

/** At least `size`. A file that comes again for want of an answer costs nothing. */
async function permittedBytes(parts: IntakeParts, accountId: number, name: string, size: number): Promise<number> {
  const quota = quotaOf(parts, accountId);
  const { files } = parts.store;
  if (quota === null) return Number.POSITIVE_INFINITY;
  const rest = quota - (await files.usedBytes(accountId));
  if (size <= rest) return rest;
  const again = await files.unansweredBytes(accountId, name, parts.clock.now().epochMilliseconds);
  if (size > again) throw quotaExceeded(quota);
  return again;
}

function rethrow(thrown: unknown): never {
  if (thrown instanceof HttpProblem) throw new TreeFault(thrown.status === 507 ? "full" : "denied", thrown.message);
  throw thrown;
}

function brokenOff(): TreeFault {
  return new TreeFault("failed", "the connection ended before the file was taken");
}
