/** The folder of the stored bytes: what it keeps, what it removes, and when. */
import { createHash } from "node:crypto";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { BlobStore } from "#hub/files/blobs.ts";
import { openFolderBlobs } from "#hub/files/folder-blobs.ts";
import { temporaryDirectory } from "../fixture.ts";
import { blobSuite, bytesOf, HOUR_MS, never, textOf } from "./blob-suite.ts";

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let path: string;
beforeEach(async () => {
  directory = await temporaryDirectory();
  path = join(directory.path, "files");
});
afterEach(() => directory.remove());

const opened = (graceMs = 0) => openFolderBlobs({ path, storeId: "a-store", graceMs, clock: systemClock });
const put = async (blobs: BlobStore, text: string) => (await blobs.put(bytesOf(text), 1_000)).sha256;
const fileOf = (sha256: string) => join(path, sha256.slice(0, 2), sha256);

async function names(): Promise<string[]> {
  const all = await readdir(path, { recursive: true, withFileTypes: true });
  return all.filter((entry) => entry.isFile() && entry.name !== "store").map(({ name }) => name);
}

async function makeOld(file: string): Promise<void> {
  const then = systemClock.now().epochMilliseconds / 1_000 - 7_200;
  await utimes(file, then, then);
}

blobSuite(async () => ({
  open: ({ graceMs = 0, storeId = "a-store", clock = systemClock } = {}) =>
    openFolderBlobs({ path, storeId, graceMs, clock }),
  digests: async () => (await names()).filter((name) => /^[0-9a-f]{64}$/.test(name)),
  others: async () => (await names()).filter((name) => !/^[0-9a-f]{64}$/.test(name)),
  close: async () => undefined,
}));

describe("a folder that hubs share", () => {
  test("keeps bytes for another hour that come again", async () => {
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
});

describe("contents that come at one moment", () => {
  const sha256Of = (text: string) => createHash("sha256").update(text).digest("hex");

  test("are all there, also equal ones and large ones", async () => {
    const blobs = await opened();
    const texts = [...Array.from({ length: 100 }, (_, at) => `content ${at % 90}`), "large".repeat(100_000)];
    const done = await Promise.all(texts.map((text) => blobs.put(bytesOf(text), 1_000_000)));
    expect(done.map(({ sha256 }) => sha256)).toEqual(texts.map(sha256Of));
    expect((await names()).sort()).toEqual([...new Set(texts.map(sha256Of))].sort());
    for (const text of texts) expect(await textOf(await blobs.read(sha256Of(text)))).toBe(text);
    await blobs.close();
  });

  test("one of which cannot be written are there but for that one, which says so", async () => {
    const blobs = await opened();
    const [bad = "", ...good] = Array.from({ length: 20 }, (_, at) => `content ${at}`);
    // Its folder cannot be made.
    await writeFile(join(path, sha256Of(bad).slice(0, 2)), "");
    const others = good.filter((text) => sha256Of(text).slice(0, 2) !== sha256Of(bad).slice(0, 2));
    const [refused, ...done] = await Promise.allSettled([bad, ...others].map((text) => put(blobs, text)));
    expect(refused).toMatchObject({ status: "rejected", reason: { code: "EEXIST" } });
    expect(done).toEqual(others.map((text) => ({ status: "fulfilled", value: sha256Of(text) })));
    await blobs.close();
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

  test("a folder that cannot be made is a fault with the setting to change", async () => {
    await mkdir(directory.path, { recursive: true });
    await writeFile(path, "a file");
    await expect(opened()).rejects.toMatchObject({ code: "HG-HUB-001", hint: expect.stringContaining("files.path") });
  });
});
