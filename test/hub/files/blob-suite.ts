/** What every place of stored bytes does; a test file for each place opens it. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { type BlobStore, BlobTooLarge } from "#hub/files/blobs.ts";

export const HOUR_MS = 3_600_000;
export const never = async () => false;
export const none = async () => new Set<string>();

export interface OpenOptions {
  readonly graceMs?: number;
  readonly storeId?: string;
  readonly clock?: Clock;
}

/** One empty place, which several stores may open. */
export interface BlobPlace {
  open(options?: OpenOptions): Promise<BlobStore>;
  /** The digests of the bytes that can be read. */
  digests(): Promise<readonly string[]>;
  /** Everything else that is there: of uploads, or about to be removed. */
  others(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export function bytesOf(text: string): Readable {
  return Readable.from([Buffer.from(text)]);
}

export async function textOf(stream: Readable): Promise<string> {
  return Buffer.concat(await stream.toArray()).toString();
}

/** Two hours from now. */
const later: Clock = { ...systemClock, now: () => systemClock.now().add({ hours: 2 }) };

export function blobSuite(openPlace: () => Promise<BlobPlace>): void {
  let place: BlobPlace | null = null;
  let stores: BlobStore[] = [];
  afterEach(async () => {
    for (const store of stores) await store.close();
    stores = [];
    await place?.close();
    place = null;
  });
  const at = async () => {
    place ??= await openPlace();
    return place;
  };
  const opened = async (options: OpenOptions = {}) => {
    const store = await (await at()).open(options);
    stores.push(store);
    return store;
  };
  const digests = async () => await (await at()).digests();
  const others = async () => await (await at()).others();
  const put = async (blobs: BlobStore, text: string) => {
    const { sha256, release } = await blobs.put(bytesOf(text), 1_000);
    release();
    return sha256;
  };

  describe("bytes", () => {
    test("are read as they were put, whole and in ranges", async () => {
      const blobs = await opened();
      const { sha256, bytes: size, head } = await blobs.put(bytesOf("0123456789"), 10);
      expect([size, Buffer.from(head).toString()]).toEqual([10, "0123456789"]);
      expect(await textOf(await blobs.read(sha256))).toBe("0123456789");
      expect(await textOf(await blobs.read(sha256, { start: 2, end: 4 }))).toBe("234");
      expect(await textOf(await blobs.read(sha256, { start: 9, end: 9 }))).toBe("9");
      const local = await blobs.local(sha256);
      expect(await readFile(local.path, "utf8")).toBe("0123456789");
      await local.end();
      expect(await others()).toEqual([]);
      await expect(blobs.read("0".repeat(64))).rejects.toThrow("missing");
      await expect(blobs.local("0".repeat(64))).rejects.toThrow("missing");
    });

    test("are copied into one file as far as they are there, with their places and digests", async () => {
      const blobs = await opened();
      const [one, other] = [await put(blobs, "first"), await put(blobs, "second")];
      const folder = await mkdtemp(join(tmpdir(), "headgate-copies-"));
      const destination = join(folder, "copies");
      const copies = await blobs.copy([one, "0".repeat(64), other], destination, new AbortController().signal);
      expect([copies.length, copies[1]]).toEqual([3, null]);
      for (const [at, text, sha256] of [
        [0, "first", one],
        [2, "second", other],
      ] as const) {
        const copy = copies[at] ?? null;
        if (copy === null) continue;
        const { offset, bytes } = copy;
        const all = await readFile(destination, "utf8");
        expect([all.slice(offset, offset + bytes), copy.sha256]).toEqual([text, sha256]);
      }
      const aborted = AbortSignal.abort();
      expect(await blobs.copy([one], join(folder, "none"), aborted)).toEqual([null]);
      await rm(folder, { recursive: true });
    });

    test("of several blocks arrive whole, also for a reader that ends early", async () => {
      const blobs = await opened();
      const block = Buffer.alloc(1_000_000, "x");
      const { sha256 } = await blobs.put(Readable.from(Array.from({ length: 20 }, () => block)), 1e9);
      let length = 0;
      for await (const chunk of await blobs.read(sha256)) length += (chunk as Buffer).length;
      expect(length).toBe(20_000_000);
      for await (const _chunk of await blobs.read(sha256)) break;
      (await blobs.read(sha256)).destroy();
    });

    test("beyond the limit, or of a stream that breaks off, leave nothing", async () => {
      const blobs = await opened();
      await expect(blobs.put(bytesOf("0123456789"), 9)).rejects.toThrow(BlobTooLarge);
      const broken = Readable.from(
        (async function* () {
          yield Buffer.from("begun");
          throw new Error("cut");
        })(),
      );
      await expect(blobs.put(broken, 100)).rejects.toThrow("cut");
      expect([await digests(), await others()]).toEqual([[], []]);
    });

    test("are removed when no record refers to them, and not while an upload holds them", async () => {
      const blobs = await opened();
      const held = await blobs.put(bytesOf("held"), 100);
      await blobs.remove(held.sha256, never);
      expect(await blobs.collect(none)).toBe(0);
      expect(await digests()).toEqual([held.sha256]);
      held.release();
      held.release();
      await blobs.remove(held.sha256, async () => true);
      expect(await digests()).toEqual([held.sha256]);
      await blobs.remove(held.sha256, never);
      expect([await digests(), await others()]).toEqual([[], []]);
      await blobs.remove(held.sha256, never);
    });

    test("that come twice at the same time are there until both are released", async () => {
      const blobs = await opened();
      const [first, second] = await Promise.all([blobs.put(bytesOf("twice"), 100), blobs.put(bytesOf("twice"), 100)]);
      first.release();
      await blobs.remove(first.sha256, never);
      expect(await textOf(await blobs.read(first.sha256))).toBe("twice");
      second.release();
      await blobs.remove(first.sha256, never);
      expect(await digests()).toEqual([]);
    });

    test("that come again while they are removed are there afterwards", async () => {
      const blobs = await opened();
      const sha256 = await put(blobs, "again");
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<boolean>();
      const removing = blobs.remove(sha256, () => {
        asked.resolve();
        return answer.promise;
      });
      await asked.promise;
      const second = blobs.put(bytesOf("again"), 100);
      answer.resolve(false);
      await removing;
      expect(await textOf(await blobs.read((await second).sha256))).toBe("again");
    });

    test("without a record are collected, those with one stay", async () => {
      const blobs = await opened();
      const puts = await Promise.all(["a", "b", "c"].map((one) => put(blobs, one)));
      const [, kept = ""] = puts;
      expect(await blobs.collect(async (all) => new Set(all.filter((one) => one === kept)))).toBe(2);
      expect(await digests()).toEqual([kept]);
    });
  });

  describe("a place that hubs share", () => {
    test("keeps bytes of the last hour, whose record another hub may be about to commit", async () => {
      const [one, other] = [await opened({ graceMs: HOUR_MS }), await opened({ graceMs: HOUR_MS })];
      const sha256 = await put(one, "young");
      await other.remove(sha256, never);
      expect(await other.collect(none)).toBe(0);
      expect(await textOf(await one.read(sha256))).toBe("young");
      const old = await opened({ graceMs: HOUR_MS, clock: later });
      await old.remove(sha256, never);
      expect(await digests()).toEqual([]);
    });

    test("has bytes back whose record another hub committed at the last moment", async () => {
      const [one, other] = [await opened({ graceMs: HOUR_MS }), await opened({ graceMs: HOUR_MS, clock: later })];
      const sha256 = await put(one, "late");
      let asked = 0;
      await other.remove(sha256, async () => {
        asked += 1;
        return asked > 1;
      });
      expect(asked).toBe(2);
      expect(await textOf(await one.read(sha256))).toBe("late");
      expect([await digests(), await others()]).toEqual([[sha256], []]);
    });

    test("is not taken from the store that it belongs to", async () => {
      const sha256 = await put(await opened(), "theirs");
      await expect(opened({ storeId: "another-store" })).rejects.toMatchObject({ code: "HG-HUB-001" });
      expect(await digests()).toEqual([sha256]);
    });
  });
}
