/**
 * Stored bytes in S3-compatible object storage: `bytes/<digest>`, and `removing/<digest>/<id>` for copies that are kept
 * until it is certain that no record needs them. Uploads lie in a folder of this machine until their digest is known.
 * Decision 24 says why, and what is assumed of the storage.
 */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  AbortMultipartUploadCommand,
  CopyObjectCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { bulkhead } from "cockatiel";
import type { Clock } from "#core/clock.ts";
import { ConfigError, HeadgateError, systemCode, TransientError, wordsOf } from "#core/errors.ts";
import { PRIVATE_FILE, PRIVATE_FOLDER } from "#core/private-files.ts";
import { startFault } from "#core/start-fault.ts";
import { BlobMissing, type BlobStore, type ByteRange, type Content, type IsReferred, type PutBlob } from "../blobs.ts";
import { Holds } from "../holds.ts";
import type { ObjectStorageOptions } from "../options.ts";
import { receive } from "../received.ts";

const SERVER_FAULT = 500;
/** Names of the server's errors that a setting causes. */
const SETTINGS: readonly (readonly [setting: string, said: RegExp])[] = [
  ["`files.bucket`", /^(NoSuchBucket|InvalidBucketName|PermanentRedirect)$/],
  ["`files.region`", /^(AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/],
  [
    "`files.accessKeyId` and `files.secretAccessKey`",
    /^(InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|AccountProblem|Forbidden)$/,
  ],
];

const CONNECT_MS = 10_000;
const ATTEMPTS = 5;
const SOCKETS_MAX = 200;
/** The parts of an upload that are sent side by side are in memory, which allows a part to be sent again. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_MAX = 9_000;
const PARTS_AT_ONCE = 2;
const SENT_AT_ONCE = 6;
const RESUMED_MAX = 4;
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

// The bytes of an object as one stream: where a connection ends too early, another resumes behind its last byte.

interface ObjectPart {
  readonly body: Readable;
  readonly bytes: number;
}

/** `first` begins at the byte `start`, and holds everything that is wanted. */
function resumed(
  first: ObjectPart,
  start: number,
  next: (range: { readonly start: number; readonly end: number }) => Promise<ObjectPart>,
  faultOf: (thrown: unknown) => unknown,
): Readable {
  let body = watched(first.body);
  let isClosed = false;
  const end = start + first.bytes - 1;
  async function* chunks(): AsyncGenerator<Buffer> {
    let at = start;
    for (let faults = 0; at <= end; ) {
      try {
        for await (const chunk of body) {
          at += (chunk as Buffer).length;
          faults = 0;
          yield chunk as Buffer;
        }
        if (at <= end) throw new Error(`the object ends ${end + 1 - at} bytes too early`);
      } catch (thrown) {
        body.destroy();
        faults += 1;
        if (isClosed) return;
        if (faults > RESUMED_MAX) throw faultOf(thrown);
        body = watched((await next({ start: at, end })).body);
        if (isClosed) body.destroy();
      }
    }
  }
  const stream = Readable.from(chunks(), { objectMode: false });
  // A generator that waits for bytes does not see the end of its stream.
  stream.once("close", () => {
    isClosed = true;
    body.destroy();
  });
  return stream;
}

/** The iteration throws its fault, which does not matter once the stream is closed. */
function watched(body: Readable): Readable {
  return body.on("error", () => undefined);
}

// The calls of object storage that stored files need, below the prefix of the hub. Keys are given without it. Each
// throws a `TransientError` when it fails, after the client has tried again.

interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

interface BegunUpload {
  readonly key: string;
  readonly id: string;
  readonly begunMs: number;
}

export class Bucket {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #sending = bulkhead(SENT_AT_ONCE, Number.MAX_SAFE_INTEGER);

  constructor(options: ObjectStorageOptions) {
    const { accessKeyId, secretAccessKey, endpoint, region, forcePathStyle, timeout } = options;
    const agent = { keepAlive: true, maxSockets: SOCKETS_MAX };
    this.#bucket = options.bucket;
    this.#prefix = options.prefix;
    this.#client = new S3Client({
      ...(endpoint === undefined ? {} : { endpoint }),
      ...{ region, forcePathStyle, maxAttempts: ATTEMPTS, credentials: { accessKeyId, secretAccessKey } },
      // Most servers beside Amazon's refuse the checksums of newer clients. The signature covers each body.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      requestHandler: {
        connectionTimeout: CONNECT_MS,
        socketTimeout: timeout,
        httpAgent: agent,
        httpsAgent: agent,
      },
    });
  }

  close(): void {
    this.#client.destroy();
  }

  async text(key: string): Promise<string | null> {
    return await this.#found("read object", key, async () => {
      const { Body } = await this.#client.send(new GetObjectCommand(this.#at(key)));
      return (await Body?.transformToString()) ?? "";
    });
  }

  async putText(key: string, text: string): Promise<void> {
    const command = new PutObjectCommand({ ...this.#at(key), Body: text });
    await this.#called("write object", key, () => this.#client.send(command));
  }

  /** Null when there is no such object. */
  async find(key: string): Promise<StoredObject | null> {
    return await this.#found("find object", key, async () => {
      const { ContentLength = 0, LastModified } = await this.#client.send(new HeadObjectCommand(this.#at(key)));
      return { key, bytes: ContentLength, modifiedMs: LastModified?.getTime() ?? 0 };
    });
  }

  /** The object is there as a whole, or not at all. */
  async putFile(key: string, path: string, bytes: number): Promise<void> {
    await this.#sending.execute(async () => {
      await using file = await open(path, "r");
      const Body = file.createReadStream({ start: 0, end: Math.max(0, bytes - 1), autoClose: false });
      const params = { ...this.#at(key), Body, ContentType: "application/octet-stream" };
      const partSize = Math.max(PART_BYTES, Math.ceil(bytes / PARTS_MAX));
      try {
        const upload = new Upload({ client: this.#client, params, partSize, queueSize: PARTS_AT_ONCE });
        await this.#called("write object", key, () => upload.done());
      } finally {
        Body.destroy();
      }
    });
  }

  /** Null when there is no such object. `end`: the last byte, which is included. */
  async get(key: string, range?: ByteRange): Promise<{ readonly body: Readable; readonly bytes: number } | null> {
    return await this.#found("read object", key, async () => {
      const Range = range === undefined ? {} : { Range: `bytes=${range.start}-${range.end}` };
      const { Body, ContentLength = 0 } = await this.#client.send(new GetObjectCommand({ ...this.#at(key), ...Range }));
      return { body: Body as Readable, bytes: ContentLength };
    });
  }

  /** Without an effect when `from` is not there; then it answers false. */
  async copy(from: string, to: string): Promise<boolean> {
    const CopySource = `${this.#bucket}/${this.#prefix}${from}`;
    const command = new CopyObjectCommand({ ...this.#at(to), CopySource });
    return (await this.#found("copy object", from, () => this.#client.send(command))) !== null;
  }

  async remove(key: string): Promise<void> {
    await this.#called("remove object", key, () => this.#client.send(new DeleteObjectCommand(this.#at(key))));
  }

  /** Pages of the objects whose keys begin so. */
  async *list(beginning: string): AsyncGenerator<readonly StoredObject[]> {
    for (let token: string | undefined, more = true; more; ) {
      const command = new ListObjectsV2Command({
        ...{ Bucket: this.#bucket, Prefix: this.#prefix + beginning },
        ...(token === undefined ? {} : { ContinuationToken: token }),
      });
      const { Contents, IsTruncated, NextContinuationToken } = await this.#called("list objects", beginning, () =>
        this.#client.send(command),
      );
      yield (Contents ?? []).map(({ Key = "", Size = 0, LastModified }) => ({
        key: Key.slice(this.#prefix.length),
        bytes: Size,
        modifiedMs: LastModified?.getTime() ?? 0,
      }));
      token = NextContinuationToken;
      more = IsTruncated === true && token !== undefined;
    }
  }

  /** Uploads of parts that were neither completed nor given up; a thousand at most. */
  async begun(beginning: string): Promise<readonly BegunUpload[]> {
    const command = new ListMultipartUploadsCommand({ Bucket: this.#bucket, Prefix: this.#prefix + beginning });
    const { Uploads = [] } = await this.#called("list uploads", beginning, () => this.#client.send(command));
    return Uploads.map(({ Key = "", UploadId = "", Initiated }) => ({
      key: Key.slice(this.#prefix.length),
      id: UploadId,
      begunMs: Initiated?.getTime() ?? 0,
    }));
  }

  async giveUp({ key, id }: BegunUpload): Promise<void> {
    const command = new AbortMultipartUploadCommand({ ...this.#at(key), UploadId: id });
    // It is missing where another hub was first, or it was completed.
    await this.#found("give up upload", key, () => this.#client.send(command));
  }

  /** Null when the storage says that there is no such thing. */
  #found<T>(operation: string, key: string, call: () => Promise<T>): Promise<T | null> {
    return this.#called(operation, key, async () => {
      try {
        return await call();
      } catch (thrown) {
        if (isMissing(thrown)) return null;
        throw thrown;
      }
    });
  }

  async #called<T>(operation: string, key: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (thrown) {
      throw passingFault(operation, `${this.#bucket}/${this.#prefix}${key}`, thrown);
    }
  }

  #at(key: string) {
    return { Bucket: this.#bucket, Key: this.#prefix + key };
  }
}

// Errors of the object storage in our words: a missing object, what a person corrects, and what may pass by itself.

function isMissing(thrown: unknown): boolean {
  if (!(thrown instanceof S3ServiceException)) return false;
  return ["NoSuchKey", "NotFound", "NoSuchUpload"].includes(thrown.name);
}

/** For a call of a running hub: it is tried again. */
function passingFault(operation: string, subject: string, cause: unknown): HeadgateError {
  if (cause instanceof HeadgateError) return cause;
  const message = `the object storage of the stored files failed: ${faultWords(cause)}`;
  return new TransientError("HG-HUB-010", { operation, subject, message, cause });
}

/** For the first calls, at the start of a hub. */
function openingFault(subject: string, thrown: unknown): HeadgateError {
  if (thrown instanceof ConfigError) return thrown;
  const cause = thrown instanceof HeadgateError ? thrown.cause : thrown;
  const common = { operation: "open stored files", subject, cause };
  const message = `the object storage of the stored files cannot be used: ${faultWords(cause)}`;
  if (!(cause instanceof S3ServiceException)) {
    const hint = "Check `files.endpoint`, and whether this machine reaches it.";
    if (isTimeout(cause)) return new TransientError("HG-HUB-010", { ...common, message, hint });
    return startFault("HG-HUB-010", { ...common, message, hint });
  }
  if ((cause.$metadata.httpStatusCode ?? 0) >= SERVER_FAULT)
    return new TransientError("HG-HUB-010", { ...common, message });
  const setting = SETTINGS.find(([, said]) => said.test(cause.name))?.[0];
  const hint = setting === undefined ? "Check the settings below `files`." : `Correct ${setting}.`;
  return new ConfigError("HG-HUB-010", { ...common, message, hint });
}

function faultWords(thrown: unknown): string {
  return thrown instanceof S3ServiceException ? `${thrown.name}: ${wordsOf(thrown)}` : wordsOf(thrown);
}

function isTimeout(thrown: unknown): boolean {
  return thrown instanceof Error && (thrown.name === "TimeoutError" || systemCode(thrown) === "ETIMEDOUT");
}
