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

export type TakeFile = (file: UploadedFile) => Promise<void>;

export function createTake(parts: IntakeParts, files: StoredFiles): TakeFile {
  return async (file) => {
    try {
      await take(parts, files, file);
    } catch (thrown) {
      if (thrown instanceof HttpProblem) throw new TreeFault(thrown.status === 507 ? "full" : "denied", thrown.message);
      throw thrown;
    }
  };
}

async function take(parts: IntakeParts, files: StoredFiles, file: UploadedFile): Promise<void> {
  const { accountId, name, handle, size, sender, isWanted } = file;
  if (!isWanted()) throw brokenOff();
  const quota = quotaOf(parts, accountId);
  // The record checks it again; this spares the copy.
  if (quota !== null && (await parts.store.files.usedBytes(accountId)) + size > quota) throw quotaExceeded(quota);
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
  const draft = { fileName: name, tags: [], siteId: null, via: sender.via };
  await recordedFor(parts, files, { accountId, username: sender.username }, put, draft);
}

function brokenOff(): TreeFault {
  return new TreeFault("failed", "the connection ended before the file was taken");
}
