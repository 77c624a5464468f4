/**
 * The calls of object storage that stored files need, below the prefix of the hub. Keys are given without it. Each
 * throws a `TransientError` when it fails, after the client has tried again.
 */
import { open } from "node:fs/promises";
import type { Readable } from "node:stream";
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
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { bulkhead } from "cockatiel";
import type { ByteRange } from "../blobs.ts";
import type { ObjectStorageOptions } from "../options.ts";
import { isMissing, passingFault } from "./faults.ts";

const CONNECT_MS = 10_000;
const ATTEMPTS = 5;
const SOCKETS_MAX = 200;
/** The parts of an upload that are sent side by side are in memory, which allows a part to be sent again. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_MAX = 9_000;
const PARTS_AT_ONCE = 2;
const SENT_AT_ONCE = 6;

export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

export interface BegunUpload {
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
