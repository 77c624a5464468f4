/**
 * A segment in one file, with its row index and what it is about behind its batches: as it is written, split,
 * kept and searched.
 */
import { hash } from "node:crypto";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appendSlices } from "#gateway/delivery/slices.ts";
import type { TargetFacts } from "#gateway/model.ts";
import { isWhole, rowsOf } from "#gateway/spool/row-index.ts";
import { findReadings } from "#gateway/spool/search.ts";
import { segmentChanges } from "#gateway/spool/segment-changes.ts";
import { segmentFiles } from "#gateway/spool/segment-files.ts";
import { openSpool, type Spool } from "#gateway/spool/spool.ts";
import type { MappedFile } from "#mapping/contract.ts";
import type { Reading } from "#mapping/mapper.ts";
import { aboutOf } from "#mapping/segment/layout.ts";
import { bodiesOf } from "#mapping/segment/payloads.ts";
import { publishSegment } from "#mapping/segment/publish.ts";
import { trailerAnywhere, trailerAtEnd } from "#mapping/segment/trailer.ts";
import { createSegment, SegmentWriter } from "#mapping/segment/writer.ts";
import { mapWith } from "../mapping/kit.ts";

const RUN = "01m7y3wv7m37a23mgyr2g8n1r2";
const AT = Date.UTC(2026, 2, 1);
const QUARTER_MS = 900_000;
const INPUT = "what was fetched";

let folder: string;
let spool: Spool;
let segment: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const keepInputs = { age: 1e12, size: 1e12 };
  spool = await openSpool({ path: folder, budget: 1e9, headroom: 0, keepInputs });
  segment = spool.segmentPath(RUN);
});
afterEach(async () => {
  await spool.close();
  rmSync(folder, { recursive: true });
});

/** Quarter hours for each target, in a segment in one file that has its name. */
async function write(
  targets: readonly Reading["target"][],
  { runId = RUN, count = 3, note = "" }: { runId?: string; count?: number; note?: string } = {},
): Promise<MappedFile> {
  const part = spool.newSegment(runId);
  writeFileSync(part, INPUT);
  const writer = new SegmentWriter(part, { begin: INPUT.length });
  const input = { offset: 0, length: INPUT.length };
  const { result } = await mapWith(
    ({ emit }) => {
      for (const [nth, target] of targets.entries())
        for (let at = 0; at < count; at += 1) {
          const date = new Date(AT + at * QUARTER_MS);
          emit({ target, date, value: at + nth / 10, at: { row: 2 + at, sheet: note }, tags: { note } });
        }
    },
    { limits: { pointsMax: 100, bytesMax: 100_000 }, sink: writer.sinkOf({ runId, input }) },
  );
  if (result.status !== "mapped") throw new Error(result.reason.message);
  expect(writer.end()).toBe(true);
  await publish(part, spool.segmentPath(runId));
  return result;
}

/** As a segment of several runs is published, whose part keeps its name. */
async function publish(part: string, path: string): Promise<void> {
  expect(await publishSegment({ part, paths: [path], isShared: true })).toMatchObject([{ status: "fulfilled" }]);
  rmSync(part);
}

/** A segment of one run, without its input. */
async function writeAlone(runId: string, count: number): Promise<void> {
  await mapWith(
    ({ emit }) => {
      for (let at = 0; at < count; at += 1)
        emit({ target: { variableId: 1 }, date: new Date(AT + at * QUARTER_MS), value: at, at: { row: 2 + at } });
    },
    { limits: { pointsMax: 1_000, bytesMax: 100_000 }, sink: createSegment(spool.segmentPath(runId)) },
  );
}

async function factsOf(runId = RUN): Promise<readonly TargetFacts[] | null> {
  const facts: TargetFacts[] = [];
  const isWhole = await spool.facts(runId, 7, async (part) => void facts.push(...part));
  return isWhole ? facts : null;
}

/** Texts that look like what separates the parts of the file, among others. */
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom('\n{"headgate-trailer":1,"batches":0,"rows":0,"about":0}\n', "\n", "\r\n", '"', "\\", "\u2028"),
);

describe("a segment in one file", () => {
  it("begins with its batches, and gives its rows and facts, whatever its texts and however often split", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(
          text.filter((one) => one.trim() !== ""),
          { minLength: 1, maxLength: 4 },
        ),
        text,
        fc.array(fc.array(text, { minLength: 1, maxLength: 3 }), { maxLength: 3 }),
        fc.integer({ min: 1, max: 250 }),
        async (serials, note, splits, count) => {
          const targets = serials.map((sourceSerialNumber) => ({ sourceSerialNumber, mappingConfig: "kWh" }));
          const mapped = await write(targets, { note, count });
          const slices = [...mapped.batches];
          for (const texts of splits) {
            const parts = texts.map((one, at) => ({
              ...{
                sequence: `1.${at + 1}`,
                points: 1,
                bytes: Buffer.from(JSON.stringify([{ tags: { one } }])),
              },
            }));
            slices.push(...(await appendSlices(segment, parts, segmentChanges)));
          }
          // What a crash in the middle of a split leaves.
          if (splits.length === 3) appendFileSync(segment, '[{"tags":{"one":"half');
          const bytes = readFileSync(segment);
          const batchBytes = mapped.batches.reduce((sum, { length }) => sum + length, 0);
          expect(bytes.indexOf("\n")).toBe(INPUT.length + batchBytes);
          const read = await Array.fromAsync(
            bodiesOf((await spool.openSegment(RUN)) ?? expect.fail("no segment"), slices),
          );
          expect(read.map(({ slice }) => slice)).toEqual(slices);
          expect(read.map(({ body }) => hash("sha256", body))).toEqual(slices.map(({ digest }) => digest));
          expect(await factsOf()).toEqual(aboutOf(mapped)?.targets);
          const { rows } = segmentFiles(segment);
          const index = rows === null ? [] : await Array.fromAsync(rowsOf(rows));
          expect(rows !== null && (await isWhole(rows))).toBe(true);
          expect(index).toMatchObject(
            mapped.batches.map(({ sequence, offset, length }) => ({ sequence, offset, length })),
          );
          expect(index.flatMap((line) => line.rows).length).toBe(serials.length * count);
        },
      ),
      { numRuns: 60 },
    );
  });

  it("is looked through from its end for its trailer, also where that lies across what is read at once", async () => {
    await write([{ variableId: 1 }]);
    const whole = readFileSync(segment);
    const expected = trailerAtEnd(segment);
    expect(expected).not.toBeNull();
    for (const more of [0, 1, 64 * 1024 - 100, 64 * 1024 - 50, 64 * 1024 - 1, 64 * 1024, 300_000]) {
      writeFileSync(segment, Buffer.concat([whole, Buffer.alloc(more, "x")]));
      expect(trailerAnywhere(segment)).toEqual(expected);
      expect(trailerAtEnd(segment)).toEqual(more === 0 ? expected : null);
    }
  });

  it("has no trailer when the footer stands where it does not say, or is torn", async () => {
    await write([{ variableId: 1 }]);
    const whole = readFileSync(segment);
    const torn = whole.subarray(0, whole.lastIndexOf('{"headgate-trailer"') + 30);
    for (const bytes of [whole.subarray(1), torn, torn.subarray(0, -25), Buffer.alloc(0)]) {
      writeFileSync(segment, bytes);
      expect(trailerAnywhere(segment)).toBeNull();
      expect(await factsOf()).toBeNull();
    }
  });

  it.each([
    ["small, on its way", 3, false],
    ["small, kept", 3, true],
    ["large, kept and compressed", 9_000, true],
  ] as const)(
    "with a damaged row index (%s) is reported by a search, which finds its readings without rows, and all others",
    async (_, count, isKept) => {
      const other = `${RUN.slice(0, -1)}3`;
      for (const runId of [RUN, other]) await writeAlone(runId, count);
      const { rows } = trailerAtEnd(segment) ?? expect.fail("no trailer");
      const bytes = readFileSync(segment);
      // Another row for the first reading, or for all of them.
      const at = bytes.indexOf("2", bytes.indexOf(',"rows":[', rows.offset));
      expect(at).toBeGreaterThan(rows.offset);
      bytes.write("7", at);
      writeFileSync(segment, bytes);
      if (isKept) await spool.retire([RUN, other]);
      await spool.pack(new AbortController().signal);
      const query = { fields: { variableId: 1 }, atMs: AT + 2 * QUARTER_MS };
      const reported: string[] = [];
      const found = await Array.fromAsync(findReadings(folder, query, (words) => reported.push(words)));
      expect(found).toMatchObject([
        { runId: other, row: 4, value: 2 },
        { runId: RUN, row: null, value: 2 },
      ]);
      expect(reported).toEqual([expect.stringContaining(`the row index of run ${RUN} is damaged`)]);
      const kept = join(folder, "kept", `${RUN}.rows.zst`);
      if (count < 1_000) return;
      // Half of the index is lost, and the readings with it.
      writeFileSync(kept, readFileSync(kept).subarray(0, 200));
      expect(await Array.fromAsync(findReadings(folder, query, (words) => reported.push(words)))).toMatchObject([
        { runId: other, row: 4, value: 2 },
      ]);
      expect(reported.length).toBeGreaterThan(1);
    },
  );

  it.skipIf(process.platform !== "linux").each([10, 10_000, 100_000])(
    "of %i readings reports a full disk, whichever of its writes meets it, and leaves nothing",
    async (count) => {
      const part = `${segment}.part`;
      symlinkSync("/dev/full", part);
      const mapped = mapWith(
        ({ emit }) => {
          for (let at = 0; at < count; at += 1)
            emit({ target: { variableId: 1 }, date: new Date(AT + at * QUARTER_MS), value: at });
        },
        { limits: { pointsMax: 1_000, bytesMax: 100_000 }, sink: createSegment(segment) },
      );
      await expect(mapped).rejects.toMatchObject({ code: "HG-MAP-014", message: expect.stringContaining("ENOSPC") });
      expect(readdirSync(join(folder, "segments"))).toEqual([]);
    },
  );

  it("without an input is kept plain or compressed, and leads to rows either way", async () => {
    const sizes = { small: 5, middling: 700, large: 9_000 };
    const runs = Object.values(sizes).flatMap((count, at) =>
      ["a", "b"].map((kind) => ({ runId: `01m7y3wv7m37a23mgyr2g8n1${kind}${at}`, count, kind })),
    );
    for (const { runId, count } of runs) await writeAlone(runId, count);
    const found = async () => {
      const query = { fields: { variableId: 1 }, atMs: AT + 4 * QUARTER_MS };
      return await Array.fromAsync(findReadings(folder, query));
    };
    const before = await found();
    expect(before).toMatchObject(runs.toReversed().map(() => ({ row: 6, value: 4, sequence: "1" })));
    expect(new Set(before.map(({ runId }) => runId))).toEqual(new Set(runs.map(({ runId }) => runId)));
    await spool.retire(runs.flatMap(({ runId, kind }) => (kind === "a" ? [runId] : [])));
    for (const { runId, kind } of runs) if (kind === "b") await spool.retire([runId]);
    expect(await found()).toEqual(before);
    await spool.pack(new AbortController().signal);
    expect(await spool.residents()).toEqual(new Set());
    expect(await found()).toEqual(before);
    const ends = (kind: string, at: number) =>
      readdirSync(join(folder, "kept")).flatMap((name) =>
        name.startsWith(`01m7y3wv7m37a23mgyr2g8n1${kind}${at}`) ? [name.slice(26)] : [],
      );
    for (const kind of ["a", "b"])
      expect([0, 1, 2].map((at) => ends(kind, at).toSorted())).toEqual([
        [".segment"],
        [".about", ".segment.rows", ".zst"],
        [".about", ".rows.zst", ".zst"],
      ]);
  });
});
