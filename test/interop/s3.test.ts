/** Stored files in object storage, against a real server: what every place of them does, and what only this one has. */
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { CreateMultipartUploadCommand, ListMultipartUploadsCommand } from "@aws-sdk/client-s3";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { ConfigError, TransientError } from "#core/errors.ts";
import type { BlobStore } from "#hub/files/blobs.ts";
import { filesOptions, type ObjectStorageOptions } from "#hub/files/options.ts";
import { Bucket, openObjectBlobs } from "#hub/files/s3/object-blobs.ts";
import { blobSuite, bytesOf, HOUR_MS, never, none, type OpenOptions, textOf } from "../hub/files/blob-suite.ts";
import { temporaryDirectory } from "../hub/fixture.ts";
import { describeWith } from "./installed.ts";
import { READER, type Swift, startSwift, WRITER } from "./swift.ts";

let swift: Swift;

function optionsOf(more: object): ObjectStorageOptions {
  const { endpoint } = swift;
  const options = filesOptions.parse({ kind: "s3", endpoint, forcePathStyle: true, timeout: "5s", ...WRITER, ...more });
  if (options.kind !== "s3") throw new Error("no object storage");
  return options;
}

async function openPlace(more: object = {}) {
  const directory = await temporaryDirectory();
  const local = join(directory.path, "receiving");
  const options = optionsOf({ bucket: await swift.bucket(), prefix: "hub/", ...more });
  const bucket = new Bucket(options);
  const keys = async (beginning: string) =>
    (await Array.fromAsync(bucket.list(beginning))).flat().map(({ key }) => key);
  return {
    options,
    local,
    bucket,
    open: ({ graceMs = 0, storeId = "a-store", clock = systemClock }: OpenOptions = {}) =>
      openObjectBlobs({ options, local, storeId, graceMs, clock }),
    digests: async () => (await keys("bytes/")).map((key) => key.slice("bytes/".length)),
    others: async () => [
      ...(await keys("")).filter((key) => !key.startsWith("bytes/") && key !== "store"),
      ...(await readdir(local)),
    ],
    async close() {
      bucket.close();
      await directory.remove();
    },
  };
}

describeWith("swift", "object storage (OpenStack Swift)", () => {
  beforeAll(async () => {
    swift = await startSwift();
  });
  afterAll(() => swift.close());

  blobSuite(openPlace);

  describe("that only object storage has", () => {
    let place: Awaited<ReturnType<typeof openPlace>>;
    let stores: BlobStore[] = [];
    const opened = async (more: object = {}, options?: OpenOptions) => {
      place = await openPlace(more);
      const store = await place.open(options);
      stores.push(store);
      return store;
    };
    afterEach(async () => {
      for (const store of stores) await store.close();
      stores = [];
      await place.close();
    });

    test("bytes that another hub removed at the same moment are read, and come back if a record has them", async () => {
      const blobs = await opened({}, { graceMs: HOUR_MS });
      const { sha256, release } = await blobs.put(bytesOf("wanted"), 100);
      release();
      const clockAt = (hours: number) => ({ ...systemClock, now: () => systemClock.now().add({ hours }) });
      const other = await place.open({ graceMs: HOUR_MS, clock: clockAt(2) });
      stores.push(other);
      await other.remove(sha256, never);
      expect(await place.digests()).toEqual([]);
      expect(await textOf(await blobs.read(sha256, { start: 1, end: 3 }))).toBe("ant");
      await other.collect(async (all) => new Set(all));
      expect([await place.digests(), await place.others()]).toEqual([[sha256], []]);
      await other.remove(sha256, never);
      await other.collect(none);
      expect([await place.digests(), await place.others()]).toEqual([[], []]);
      await expect(blobs.read(sha256)).rejects.toThrow("missing");
    });

    test("what uploads left that were broken off goes at the start, here and in the bucket", async () => {
      const before = await opened();
      await before.close();
      const { bucket: Bucket, prefix } = place.options;
      const key = { Bucket, Key: `${prefix}bytes/${"a".repeat(64)}` };
      await swift.client.send(new CreateMultipartUploadCommand(key));
      await writeFile(join(place.local, "broken-off"), "x");
      const begun = async () => (await swift.client.send(new ListMultipartUploadsCommand({ Bucket }))).Uploads ?? [];
      expect(await begun()).toHaveLength(1);
      stores.push(await place.open({ graceMs: HOUR_MS }));
      // Another hub may be sending them.
      expect([(await begun()).length, await place.others()]).toEqual([1, ["broken-off"]]);
      stores.push(await place.open());
      expect([(await begun()).length, await place.others()]).toEqual([0, []]);
    });

    test("while the server is away, calls fail for now, and nothing is half there", async () => {
      const blobs = await opened();
      const { sha256 } = await blobs.put(bytesOf("before"), 100);
      await swift.stop();
      try {
        await expect(blobs.put(bytesOf("meanwhile"), 100)).rejects.toThrow(TransientError);
        await expect(blobs.read(sha256)).rejects.toThrow(TransientError);
        await expect(blobs.collect(none)).rejects.toThrow(TransientError);
        await expect(place.open()).rejects.toMatchObject({
          name: "TransientError",
          hint: expect.stringContaining("files.endpoint"),
        });
      } finally {
        await swift.restart();
      }
      expect(await textOf(await blobs.read(sha256))).toBe("before");
      expect([await place.digests(), await place.others()]).toEqual([[sha256], []]);
    });

    test("a download goes on where the server ended its connection", async () => {
      const blobs = await opened();
      const block = Buffer.alloc(1_000_000, "x");
      const { sha256, bytes } = await blobs.put(Readable.from(Array.from({ length: 12 }, () => block)), 1e9);
      let length = 0;
      for await (const chunk of await blobs.read(sha256)) {
        if (length === 0) {
          await swift.stop();
          await swift.restart();
        }
        length += (chunk as Buffer).length;
      }
      expect(length).toBe(bytes);
    });

    test.each([
      ["an unknown bucket", { bucket: "nowhere" }, "files.bucket"],
      ["a wrong key", { secretAccessKey: "wrong" }, "files.secretAccessKey"],
      ["a key that only reads", READER, "files.accessKeyId"],
      ["a wrong region", { region: "eu-west-3" }, "files.region"],
      ["a host that is not there", { endpoint: "http://nowhere.invalid" }, "files.endpoint"],
    ])("%s is reported at the start with the setting to correct", async (_what, more, setting) => {
      place = await openPlace();
      const opening = openObjectBlobs({
        options: { ...place.options, ...more },
        ...{ local: place.local, storeId: "a-store", graceMs: 0, clock: systemClock },
      });
      await expect(opening).rejects.toThrow(ConfigError);
      await expect(opening).rejects.toMatchObject({ code: "HG-HUB-010", hint: expect.stringContaining(setting) });
      await expect(opening).rejects.not.toThrow("testing");
    });

    test("a folder that cannot be made is a fault with the setting to change", async () => {
      place = await openPlace();
      await rm(place.local, { recursive: true, force: true });
      await mkdir(join(place.local, ".."), { recursive: true });
      await writeFile(place.local, "a file");
      await expect(place.open()).rejects.toMatchObject({ hint: expect.stringContaining("files.local") });
    });
  });
});
