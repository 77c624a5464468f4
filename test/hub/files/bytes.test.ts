/** The folder of the stored bytes: what it keeps, what it removes, and when. */
import { mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type BlobStore, BlobTooLarge } from "../../../src/hub/files/blobs.ts";
import { openFolderBlobs } from "../../../src/hub/files/folder-blobs.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { temporaryDirectory } from "../fixture.ts";

const HOUR_MS = 3_600_000;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, "files");
});
afterEach(() => directory.remove());

const opened = (graceMs = 0, storeId = "a-store") => openFolderBlobs({ path, storeId, graceMs, clock: systemClock });
const bytes = (text: string) => Readable.from([Buffer.from(text)]);
const put = async (blobs: BlobStore, text: string) => (await blobs.put(bytes(text), 1_000)).sha256;
const fileOf = (sha256: string) => join(path, sha256.slice(0, 2), sha256);
const never = async () => false;
const none = async () => new Set<string>();
const text = async (stream: Readable) => Buffer.concat(await stream.toArray()).toString();

async function names(): Promise<string[]> {
  const all = await readdir(path, { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile() && entry.name !== "store").map(({ name }) => name);
}

async function makeOld(file: string): Promise<void> {
  const then = systemClock.now().epochMilliseconds / 1_000 - 7_200;
  await utimes(file, then, then);
}

describe("bytes", () => {
  test("are read as they were put, whole and in ranges", async () => {
    const blobs = await opened();
    const { sha256, bytes: size, head } = await blobs.put(bytes("0123456789"), 10);
    expect([size, Buffer.from(head).toString()]).toEqual([10, "0123456789"]);
    expect(await text(await blobs.read(sha256))).toBe("0123456789");
    expect(await text(await blobs.read(sha256, { start: 2, end: 4 }))).toBe("234");
    expect(await readFile((await blobs.local(sha256)).path, "utf8")).toBe("0123456789");
    await expect(blobs.read("0".repeat(64))).rejects.toThrow("missing");
  });

  test("beyond the limit, or of a stream that breaks off, leave nothing", async () => {
    const blobs = await opened();
    await expect(blobs.put(bytes("0123456789"), 9)).rejects.toThrow(BlobTooLarge);
    const broken = Readable.from(
      (async function* () {
        yield Buffer.from("begun");
        throw new Error("cut");
      })(),
    );
    await expect(blobs.put(broken, 100)).rejects.toThrow("cut");
    expect(await names()).toEqual([]);
  });

  test("are removed when no record refers to them, and not while an upload holds them", async () => {
    const blobs = await opened();
    const held = await blobs.put(bytes("held"), 100);
    await blobs.remove(held.sha256, never);
    expect(await blobs.collect(none)).toBe(0);
    expect(await names()).toEqual([held.sha256]);
    held.release();
    held.release();
    await blobs.remove(held.sha256, async () => true);
    expect(await names()).toEqual([held.sha256]);
    await blobs.remove(held.sha256, never);
    expect(await names()).toEqual([]);
  });

  test("that come again while they are removed are there afterwards", async () => {
    const blobs = await opened();
    const first = await blobs.put(bytes("again"), 100);
    first.release();
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<boolean>();
    const removing = blobs.remove(first.sha256, () => {
      asked.resolve();
      return answer.promise;
    });
    await asked.promise;
    const second = blobs.put(bytes("again"), 100);
    answer.resolve(false);
    await removing;
    expect(await text(await blobs.read((await second).sha256))).toBe("again");
  });

  test("without a record are collected, those with one stay", async () => {
    const blobs = await opened();
    const puts = await Promise.all(["a", "b", "c"].map((one) => blobs.put(bytes(one), 100)));
    for (const one of puts) one.release();
    const kept = puts[1]?.sha256 ?? "";
    expect(await blobs.collect(async (digests) => new Set(digests.filter((one) => one === kept)))).toBe(2);
    expect(await names()).toEqual([kept]);
  });
});

describe("a folder that hubs share", () => {
  test("keeps bytes of the last hour, whose record another hub may be about to commit", async () => {
    const [one, other] = [await opened(HOUR_MS), await opened(HOUR_MS)];
    const sha256 = await put(one, "young");
    await other.remove(sha256, never);
    expect(await names()).toEqual([sha256]);
    await makeOld(fileOf(sha256));
    // Another upload of the same content makes it young again.
    await put(one, "young");
    await other.remove(sha256, never);
    expect(await names()).toEqual([sha256]);
    await makeOld(fileOf(sha256));
    await other.remove(sha256, never);
    expect(await names()).toEqual([]);
  });

  test("has bytes back whose record another hub committed at the last moment", async () => {
    const [one, other] = [await opened(HOUR_MS), await opened(HOUR_MS)];
    const sha256 = await put(one, "late");
    await makeOld(fileOf(sha256));
    let asked = 0;
    await other.remove(sha256, async () => {
      asked += 1;
      return asked > 1;
    });
    expect(asked).toBe(2);
    expect(await text(await one.read(sha256))).toBe("late");
    expect(await names()).toEqual([sha256]);
  });
});

describe("at the start", () => {
  test("uploads that were broken off are removed, and bytes that were judged are back", async () => {
    const sha256 = await put(await opened(), "judged");
    await writeFile(join(path, "incoming", "broken-off"), "x");
    await writeFile(join(path, "removing", `${sha256}.other`), "judged");
    await opened();
    expect(await names()).toEqual([sha256]);
  });

  test("uploads of other hubs that are in progress stay", async () => {
    await opened(HOUR_MS);
    await writeFile(join(path, "incoming", "in-progress"), "x");
    await opened(HOUR_MS);
    expect(await names()).toEqual(["in-progress"]);
    await makeOld(join(path, "incoming", "in-progress"));
    await opened(HOUR_MS);
    expect(await names()).toEqual([]);
  });

  test("the folder of another store is refused, and keeps everything", async () => {
    const sha256 = await put(await opened(), "theirs");
    await expect(opened(0, "another-store")).rejects.toMatchObject({ code: "HG-HUB-001" });
    expect(await names()).toEqual([sha256]);
  });

  test("a folder that cannot be made is a fault with the setting to change", async () => {
    await mkdir(directory.path, { recursive: true });
    await writeFile(path, "a file");
    await expect(opened()).rejects.toMatchObject({ code: "HG-HUB-001", hint: expect.stringContaining("files.path") });
  });
});
