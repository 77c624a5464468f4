/**
 * Stored bytes in S3-compatible object storage: `bytes/<digest>`, and `removing/<digest>/<id>` for copies that are kept
 * until it is certain that no record needs them. Uploads lie in a folder of this machine until their digest is known.
 * Decision 24 says why, and what is assumed of the storage.
 */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import { ConfigError, systemCode, wordsOf } from "#core/errors.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { startFault } from "#core/start-fault.ts";
import { BlobMissing, type BlobStore, type ByteRange, type Content, type IsReferred, type PutBlob } from "../blobs.ts";
import { Holds } from "../holds.ts";
import type { ObjectStorageOptions } from "../options.ts";
import { receive } from "../received.ts";
import { Bucket } from "./bucket.ts";
import { openingFault, passingFault } from "./faults.ts";
import { resumed } from "./resumed.ts";

const OWNER = "store";
const BYTES = "bytes/";
const REMOVING = "removing/";
/** Longer than any hub takes to send one file, where other hubs use the bucket. */
const SENDING_MAX_MS = 86_400_000;

export interface ObjectParts {
  readonly options: ObjectStorageOptions;
  /** Folder of this machine for uploads that are being received. */
  readonly local: string;
  /** `FileStore.folderId`. */
  readonly storeId: string;
  /** Younger bytes are not removed: another hub may be about to commit their record; 0 when no other uses them. */
  readonly graceMs: number;
  readonly clock: Clock;
}

/** Throws when the storage cannot be used: `ConfigError`, or `TransientError` where that may pass by itself. */
export async function openObjectBlobs(parts: ObjectParts): Promise<BlobStore> {
  const { options, local } = parts;
  const subject = subjectOf(options);
  await makeLocal(local);
  const bucket = new Bucket(options);
  try {
    await claim(bucket, parts.storeId, subject);
    const blobs = new ObjectBlobs(bucket, parts);
    await blobs.recover();
    return blobs;
  } catch (thrown) {
    bucket.close();
    throw openingFault(subject, thrown);
  }
}

/** The id of the store whose files are there; null when there are none yet. Throws as `openObjectBlobs`. */
export async function storageOwner(options: ObjectStorageOptions): Promise<string | null> {
  const bucket = new Bucket(options);
  try {
    return await bucket.text(OWNER);
  } catch (thrown) {
    throw openingFault(subjectOf(options), thrown);
  } finally {
    bucket.close();
  }
}

function subjectOf({ endpoint, region, bucket, prefix }: ObjectStorageOptions): string {
  return `${endpoint ?? region}/${bucket}/${prefix}`;
}

async function makeLocal(local: string): Promise<void> {
  try {
    await mkdir(local, { recursive: true, mode: PRIVATE_FOLDER });
  } catch (cause) {
    const message = `the folder for files that are received cannot be used: ${wordsOf(cause)}`;
    const hint = "Check `files.local`, and that the hub may write there.";
    throw startFault("HG-HUB-001", { operation: "open stored files", subject: local, message, hint, cause });
  }
}

/** Another store would take all files of this one for orphans, and remove them. */
async function claim(bucket: Bucket, storeId: string, subject: string): Promise<void> {
  const owner = await bucket.text(OWNER);
  if (owner !== null && owner.trim() !== storeId)
    throw new ConfigError("HG-HUB-001", {
      operation: "open stored files",
      subject,
      message: `the bucket holds the files of another store of a hub (${owner.trim()}, and this one is ${storeId})`,
      hint:
        "Give this hub a `files.prefix` or `files.bucket` of its own. If its store was made again, and the files are " +
        "to be given up: remove all objects with this prefix.",
    });
  // Written at each start: a key that only reads shows here, and not at the first upload.
  await bucket.putText(OWNER, `${storeId}\n`);
}

class ObjectBlobs implements BlobStore {
  readonly #bucket: Bucket;
  readonly #local: string;
  readonly #graceMs: number;
  readonly #clock: Clock;
  readonly #holds = new Holds();
  /** Files of the local folder that this process uses. */
  readonly #inUse = new Set<string>();
  /** Digests whose bytes this process is sending. */
  readonly #sending = new Map<string, Promise<void>>();

  constructor(bucket: Bucket, { local, graceMs, clock }: ObjectParts) {
    this.#bucket = bucket;
    this.#local = local;
    this.#graceMs = graceMs;
    this.#clock = clock;
  }

  async put(content: Content, bytesMax: number): Promise<PutBlob> {
    const temporary = this.#newFile();
    let release = () => {};
    try {
      const { sha256, bytes, head } = await receive(content, temporary, { bytesMax, smallMax: -1 });
      release = this.#holds.hold(sha256);
      await this.#holds.removed(sha256);
      await this.#send(sha256, temporary, bytes);
      return { sha256, bytes, head, release };
    } catch (thrown) {
      release();
      throw thrown;
    } finally {
      await this.#endFile(temporary);
    }
  }

  async read(sha256: string, range?: ByteRange): Promise<Readable> {
    const first = await this.#get(sha256, range);
    const faultOf = (thrown: unknown) => passingFault("read file", sha256, thrown);
    return resumed(first, range?.start ?? 0, (rest) => this.#get(sha256, rest), faultOf);
  }

  /** Each is a request, which gains nothing by a list. */
  async copy(sha256s: readonly string[]) {
    return sha256s.map(() => null);
  }

  async local(sha256: string) {
    const path = this.#newFile();
    try {
      await pipeline(await this.read(sha256), createWriteStream(path, { flags: "wx", mode: PRIVATE_FILE }));
      return { path, end: () => this.#endFile(path) };
    } catch (thrown) {
      await this.#endFile(path);
      throw thrown;
    }
  }

  remove(sha256: string, isReferred: IsReferred): Promise<void> {
    return this.#holds.remove(sha256, async () => void (await this.#removeUnreferred(sha256, isReferred)));
  }

  async collect(referred: (sha256s: readonly string[]) => Promise<ReadonlySet<string>>): Promise<number> {
    await this.recover();
    const isReferred = async (sha256: string) => (await referred([sha256])).has(sha256);
    for await (const page of this.#bucket.list(REMOVING))
      for (const { key, modifiedMs } of page) if (this.#isOld(modifiedMs)) await this.#judge(key, isReferred);
    let removed = 0;
    for await (const page of this.#bucket.list(BYTES)) {
      const old = page.filter(({ modifiedMs }) => this.#isOld(modifiedMs)).map(({ key }) => key.slice(BYTES.length));
      const needed = await referred(old);
      for (const sha256 of old) {
        if (needed.has(sha256)) continue;
        await this.#holds.remove(sha256, async () => {
          if (await this.#removeUnreferred(sha256, isReferred)) removed += 1;
        });
      }
    }
    return removed;
  }

  async close(): Promise<void> {
    this.#bucket.close();
  }

  /** Removes what uploads left that were broken off, here and in the bucket. */
  async recover(): Promise<void> {
    for (const name of await readdir(this.#local)) {
      const path = join(this.#local, name);
      if (!this.#inUse.has(path) && (await this.#isOldFile(path))) await rm(path, { force: true });
    }
    const untilMs =
      this.#graceMs === 0 ? Number.MAX_SAFE_INTEGER : this.#clock.now().epochMilliseconds - SENDING_MAX_MS;
    for (const begun of await this.#bucket.begun(BYTES))
      if (!this.#sending.has(begun.key.slice(BYTES.length)) && begun.begunMs < untilMs)
        await this.#bucket.giveUp(begun);
  }

  /** Uploads of one content at the same time send it once. */
  async #send(sha256: string, path: string, bytes: number): Promise<void> {
    const sent = this.#sending.get(sha256);
    if (sent !== undefined) return sent;
    const sending = this.#sendOnce(sha256, path, bytes).finally(() => this.#sending.delete(sha256));
    this.#sending.set(sha256, sending);
    await sending;
  }

  async #sendOnce(sha256: string, path: string, bytes: number): Promise<void> {
    const found = await this.#bucket.find(BYTES + sha256);
    // Bytes that another hub may soon find old are sent again, which makes them young.
    const isSafe = this.#graceMs === 0 || (found !== null && this.#ageMs(found.modifiedMs) < this.#graceMs / 2);
    if (found === null || found.bytes !== bytes || !isSafe) await this.#bucket.putFile(BYTES + sha256, path, bytes);
  }

  /** Where another hub is removing them: from the copy that it keeps until it is certain. */
  async #get(sha256: string, range?: ByteRange) {
    for (const isLast of [false, true]) {
      const found = await this.#bucket.get(BYTES + sha256, range);
      if (found !== null) return found;
      if (isLast) break;
      await this.#holds.removed(sha256);
      for await (const page of this.#bucket.list(`${REMOVING}${sha256}/`))
        for (const { key } of page) {
          const kept = await this.#bucket.get(key, range);
          if (kept !== null) return kept;
        }
    }
    throw new BlobMissing(sha256);
  }

  async #removeUnreferred(sha256: string, isReferred: IsReferred): Promise<boolean> {
    const key = BYTES + sha256;
    const found = await this.#bucket.find(key);
    if (found === null || !this.#isOld(found.modifiedMs) || (await isReferred(sha256))) return false;
    if (this.#graceMs === 0) {
      await this.#bucket.remove(key);
      return true;
    }
    // Another hub may send this content between the answer above and the removal: its bytes are those of the copy.
    const aside = `${REMOVING}${sha256}/${randomUUID()}`;
    if (!(await this.#bucket.copy(key, aside))) return false;
    await this.#bucket.remove(key);
    if (!(await isReferred(sha256))) return true;
    await this.#bucket.copy(aside, key);
    await this.#bucket.remove(aside);
    return false;
  }

  /** A copy of bytes that were removed so long ago that every record of them has been committed. */
  async #judge(aside: string, isReferred: IsReferred): Promise<void> {
    const [sha256 = ""] = aside.slice(REMOVING.length).split("/");
    const key = BYTES + sha256;
    if ((await isReferred(sha256)) && (await this.#bucket.find(key)) === null) await this.#bucket.copy(aside, key);
    await this.#bucket.remove(aside);
  }

  #newFile(): string {
    const path = join(this.#local, randomUUID());
    this.#inUse.add(path);
    return path;
  }

  async #endFile(path: string): Promise<void> {
    await rm(path, { force: true });
    this.#inUse.delete(path);
  }

  #ageMs(modifiedMs: number): number {
    return this.#clock.now().epochMilliseconds - modifiedMs;
  }

  #isOld(modifiedMs: number): boolean {
    return this.#graceMs === 0 || this.#ageMs(modifiedMs) > this.#graceMs;
  }

  async #isOldFile(path: string): Promise<boolean> {
    try {
      return this.#isOld((await stat(path)).mtimeMs);
    } catch (thrown) {
      if (systemCode(thrown) === "ENOENT") return false;
      throw thrown;
    }
  }
}
