/** Makes a stored file of an upload: the bytes are durable before the record, and the record before the answer. */
import type { FileHandle } from "node:fs/promises";
import { HttpProblem } from "../../wire/http-problem.ts";
import { BlobTooLarge } from "../files/blobs.ts";
import { type IntakeParts, quotaExceeded, quotaOf, recordedFor } from "../files/intake.ts";
import type { StoredFiles } from "../files/service.ts";
import type { FileRecord } from "../store/store.ts";
import { TreeFault } from "./file-tree.ts";

export interface Sender {
  readonly username: string;
  readonly via: FileRecord["via"];
}

export interface UploadedFile {
  readonly accountId: number;
  readonly name: string;
  readonly handle: FileHandle;
  readonly size: number;
  readonly sender: Sender;
  /** Asked before the record is made. */
  readonly isWanted: () => boolean;
}

/** Takes uploads for good. A sender that did not get the answer sends its file again, which then is the same one. */
export interface Taker {
  /** Returns the id of the stored file. */
  take(file: UploadedFile): Promise<number>;
  /** The sender of this file has got the answer, which is recorded with the next file, or when this is closed. */
  answered(id: number): void;
  close(): Promise<void>;
}

export function createTaker(parts: IntakeParts, files: StoredFiles): Taker {
  const answered = new Set<number>();
  return {
    async take(file) {
      try {
        const known = [...answered];
        const id = await take(parts, files, file, known);
        for (const one of known) answered.delete(one);
        return id;
      } catch (thrown) {
        if (thrown instanceof HttpProblem)
          throw new TreeFault(thrown.status === 507 ? "full" : "denied", thrown.message);
        throw thrown;
      }
    },
    answered: (id) => void answered.add(id),
    close: () => parts.store.files.answered([...answered]),
  };
}

async function take(
  parts: IntakeParts,
  files: StoredFiles,
  { accountId, name, handle, size, sender, isWanted }: UploadedFile,
  answered: readonly number[],
): Promise<number> {
  if (!isWanted()) throw brokenOff();
  // The record checks it again; this spares the copy.
  await checkQuota(parts, accountId, name, size);
  const content = handle.createReadStream({ start: 0, autoClose: false });
  const put = await files.blobs.put(content, parts.options.limits.file).catch((thrown) => {
    if (thrown instanceof BlobTooLarge) throw new TreeFault("full", "the file is larger than `limits.file` permits");
    throw thrown;
  });
  if (!isWanted()) {
    put.release();
    await files.discard([put.sha256]);
    throw brokenOff();
  }
  const { repeats = 0 } = parts.options.transfer ?? {};
  const unansweredUntilMs = parts.clock.now().epochMilliseconds + repeats;
  const again = repeats === 0 ? {} : { unansweredUntilMs, answered };
  const draft = { fileName: name, tags: [], siteId: null, via: sender.via, ...again };
  return await recordedFor(parts, files, { accountId, username: sender.username }, put, draft);
}

/** A file that comes again for want of an answer costs nothing. */
async function checkQuota(parts: IntakeParts, accountId: number, name: string, size: number): Promise<void> {
  const quota = quotaOf(parts, accountId);
  const { files } = parts.store;
  if (quota === null || (await files.usedBytes(accountId)) + size <= quota) return;
  const nowMs = parts.clock.now().epochMilliseconds;
  if (size > (await files.unansweredBytes(accountId, name, nowMs))) throw quotaExceeded(quota);
}

function brokenOff(): TreeFault {
  return new TreeFault("failed", "the connection ended before the file was taken");
}
