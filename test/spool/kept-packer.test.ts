/** Large files of runs at rest: kept as they are at once, and compressed later. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openKept } from "#gateway/spool/kept-files.ts";
import { findReadings } from "#gateway/spool/search.ts";
import { keptSegmentFiles, linesOf } from "#gateway/spool/segment-files.ts";
import { openSpool, type Spool } from "#gateway/spool/spool.ts";
import { createSegment } from "#mapping/segment/writer.ts";
import { mapWith } from "../mapping/kit.ts";
import { laySegment } from "./segment-layout.ts";

const RUN = "01m7y3wv7m37a23mgyr2g8n1r2";
const OTHER = "01m7y3wv7m37a23mgyr2g8n1r3";
const AT = Date.UTC(2026, 2, 1);
const QUARTER_MS = 900_000;
const INPUT = Buffer.from("date,value\n2026-03-01,1\n".repeat(100_000));
const READINGS = 20_000;

let folder: string;
let spool: Spool;
const open = () => openSpool({ path: folder, budget: 1e9, headroom: 0, keepInputs: { age: 1e12, size: 1e12 } });
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  spool = await open();
});
afterEach(async () => {
  await spool.close();
  rmSync(folder, { recursive: true });
});

/** A run with a large input and a large segment. */
async function lay(): Promise<void> {
  writeFileSync(spool.inputPath(RUN), INPUT);
  await mapWith(
    ({ emit }) => {
      for (let nth = 0; nth < READINGS; nth += 1)
        emit({ target: { variableId: 1 }, date: new Date(AT + nth * QUARTER_MS), value: nth, at: { row: nth + 2 } });
    },
    { limits: { pointsMax: 5_000, bytesMax: 1e6 }, sink: createSegment(spool.segmentPath(RUN)) },
  );
  expect(statSync(spool.segmentPath(RUN)).size).toBeGreaterThan(256 * 1024);
}

/** The run at rest. */
async function keep(): Promise<void> {
  await lay();
  expect(await spool.retire([RUN])).toMatchObject([{ status: "fulfilled" }]);
}

const kept = () => readdirSync(join(folder, "kept")).toSorted();
const named = (...ends: readonly string[]) => ends.map((end) => `${RUN}${end}`);
const PLAIN = named(".input", ".segment");
const PACKED = named(".about", ".input.zst", ".rows.zst", ".zst");

async function content(): Promise<{ input: Buffer; batches: Buffer; found: unknown }> {
  const input = (await spool.openInput(RUN, "kept")) ?? expect.fail("its input is not kept");
  const read = (await spool.openSegment(RUN)) ?? expect.fail("its segment is not kept");
  const query = { fields: { variableId: 1 }, atMs: AT + 12_345 * QUARTER_MS };
  const found = await Array.fromAsync(findReadings(folder, query));
  return { input: await buffer(input), batches: await buffer(read({ offset: 100, length: 700_000 })), found };
}

const never = new AbortController().signal;

describe("a large file of a run at rest", () => {
  it("is kept as it is at once and compressed later, with the same content and age", async () => {
    await keep();
    expect(kept()).toEqual(PLAIN);
    const before = await content();
    expect(before.input.equals(INPUT)).toBe(true);
    expect(before.found).toMatchObject([{ runId: RUN, row: 12_347, value: 12_345 }]);
    const hourAgo = Date.now() / 1000 - 3_600;
    for (const name of PLAIN) utimesSync(join(folder, "kept", name), hourAgo, hourAgo);
    await spool.pack(never);
    expect(kept()).toEqual(PACKED);
    expect(await content()).toEqual(before);
    expect(readFileSync(join(folder, "kept", `${RUN}.input.zst`)).length).toBeLessThan(INPUT.length / 10);
    for (const name of PACKED) expect(statSync(join(folder, "kept", name)).mtimeMs / 1000).toBeCloseTo(hourAgo, 1);
    expect(await spool.restoreInput(RUN)).toBe(true);
    expect(readFileSync(spool.inputPath(RUN)).equals(INPUT)).toBe(true);
  });

  it("waits for the next process where this one ends, and for a copy that a crash left half-written", async () => {
    await keep();
    const before = await content();
    await spool.pack(AbortSignal.abort());
    expect(kept()).toEqual(PLAIN);
    await spool.close();
    // A crash came before the original was removed: some copies have their names, another has not.
    writeFileSync(join(folder, "kept", `${RUN}.zst`), zstdCompressSync("another content"));
    writeFileSync(join(folder, "kept", `${RUN}.input.zst.part`), "half");
    spool = await open();
    await spool.sweep();
    expect(await content()).toEqual(before);
    await spool.pack(never);
    expect(kept(), "nothing is known to wait before the kept files were listed").toEqual([...PLAIN, `${RUN}.zst`]);
    expect(await spool.prune(Date.now())).toBe(0);
    await spool.pack(never);
    expect(kept()).toEqual(PACKED);
    expect(await content()).toEqual(before);
  });

  it("stays as it is where it has names of several runs, or the input of its run", async () => {
    const batches = [Buffer.alloc(400_000, "x")];
    const runs = [RUN, OTHER].map((runId) => ({ runId, input: Buffer.from("input"), batches }));
    laySegment(spool, runs);
    await spool.retire([RUN, OTHER]);
    const before = kept();
    expect(before).toEqual([`${RUN}.segment`, `${OTHER}.segment`]);
    await spool.pack(never);
    expect(kept()).toEqual(before);
    rmSync(join(folder, "kept", `${OTHER}.segment`));
    await spool.prune(Date.now());
    await spool.pack(never);
    expect(kept()).toEqual([`${RUN}.segment`]);
  });

  it("is no longer waited for when it was removed, and a fault of one is reported", async () => {
    await keep();
    const blocked = join(folder, "kept", `${RUN}.input.zst.part`);
    mkdirSync(blocked);
    await expect(spool.pack(never)).rejects.toThrow(/EISDIR/);
    expect(kept()).toContain(`${RUN}.input`);
    rmSync(blocked, { recursive: true });
    for (const name of kept()) rmSync(join(folder, "kept", name));
    await spool.pack(never);
    expect(kept()).toEqual([]);
  });
});

it("a segment that was opened is read wherever it is meanwhile: kept, and then compressed", async () => {
  await lay();
  const read = (await spool.openSegment(RUN)) ?? expect.fail("there is no segment");
  const bytes = async () => await buffer(read({ offset: 0, length: 500_000 }));
  const before = await bytes();
  await spool.retire([RUN]);
  expect(await bytes()).toEqual(before);
  await spool.pack(never);
  expect(kept()).toEqual(PACKED);
  expect(await bytes()).toEqual(before);
});

it("a place that was found before its file was compressed still opens the same bytes", async () => {
  await keep();
  const places = PLAIN.map((name) => join(folder, "kept", name));
  const { rows } = keptSegmentFiles(join(folder, "kept", RUN));
  const lines = async () => Array.fromAsync(linesOf(rows ?? expect.fail("it has no row index")));
  const read = async () => [
    await lines(),
    ...(await Promise.all(places.map(async (place) => buffer(openKept(place, { offset: 9, length: 300 }))))),
  ];
  const before = await read();
  await spool.pack(never);
  expect(kept()).toEqual(PACKED);
  expect(await read()).toEqual(before);
  for (const name of PACKED) rmSync(join(folder, "kept", name));
  await expect(read()).rejects.toThrow(/ENOENT/);
});
