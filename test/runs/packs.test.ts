/** Runs that share one file in the spool: what each of them reads of it, changes, and gets back when it was lost. */
import { hash } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findReadings } from "../../src/runs/kept-readings.ts";
import { bodiesOf } from "../../src/runs/payloads.ts";
import { openSpool, type Spool } from "../../src/runs/spool.ts";
import { elementOf, type PackedFile, writePack } from "./packs.ts";

const RUNS = ["a", "b", "c"].map((end) => `01m7y3wv7m37a23mgyr2g8n1r${end}`);
const [ONE = "", TWO = ""] = RUNS;

let folder: string;
let spool: Spool;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  const keepInputs = { age: 1e12, size: 1e12 };
  spool = await openSpool({ path: folder, budget: 1e9, headroom: 0, keepInputs });
});
afterEach(async () => {
  await spool.close();
  rmSync(folder, { recursive: true });
});

const files = (): readonly PackedFile[] =>
  RUNS.map((runId, at) => ({
    runId,
    input: `meter;value\nM-${at};${at}\n`.repeat(20 + at),
    batches: [[elementOf(`M-${at}`, 30), elementOf("shared", 9, 100 * at)], [elementOf(`N-${at}`, 12)]],
  }));

const found = (sourceSerialNumber: string, hour: number) => {
  const words = `sourceSerialNumber=${sourceSerialNumber} mappingConfig=kWh`;
  const atMs = Date.UTC(2026, 2, 1, hour);
  return Array.fromAsync(
    findReadings(folder, { words, fields: { sourceSerialNumber, mappingConfig: "kWh" }, atMs }),
  );
};

describe("a run in a pack", () => {
  it("has its batches read where they are, and its readings traced to the rows of its own file", async () => {
    const written = writePack(folder, files());
    for (const runId of RUNS) {
      const { slices } = written.get(runId) ?? expect.fail("not written");
      const read = (await spool.openSegment(runId)) ?? expect.fail("no segment");
      const bodies = await Array.fromAsync(bodiesOf(read, slices));
      expect(bodies.map(({ body }) => hash("sha256", body))).toEqual(slices.map(({ digest }) => digest));
    }
    expect(await found("N-1", 4)).toMatchObject([{ runId: TWO, sequence: "2", row: 45, value: 4.25 }]);
    expect(await found("shared", 102)).toMatchObject([{ runId: TWO, sequence: "1", row: 34, value: 102.25 }]);
    for (const runId of RUNS) renameSync(spool.segmentPath(runId), join(folder, "kept", `${runId}.segment`));
    expect(await found("N-0", 11)).toMatchObject([{ runId: ONE, sequence: "2", row: 52, value: 11.25 }]);
  });
});

describe("slices of a segment", () => {
  it("are read wherever they are in it, compressed or not, as many as it has as a whole", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 400 }),
        fc.array(fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 90 })), { maxLength: 5 }),
        fc.boolean(),
        fc.nat(1_000_000),
        async (bytes, gaps, isPacked, before) => {
          const content = Buffer.concat([Buffer.alloc(before % 3 === 0 ? before : 0), bytes]);
          let at = content.length - bytes.length;
          const slices = gaps.map(([gap, length], nth) => {
            const slice = { sequence: String(nth + 1), offset: at + gap, length, points: 1, digest: "" };
            at = slice.offset + length;
            return slice;
          });
          const kept = join(folder, "kept", ONE);
          rmSync(`${kept}.zst`, { force: true });
          rmSync(`${kept}.segment`, { force: true });
          if (isPacked) writeFileSync(`${kept}.zst`, zstdCompressSync(content));
          else writeFileSync(`${kept}.segment`, content);
          const read = (await spool.openSegment(ONE)) ?? expect.fail("no segment");
          const bodies = await Array.fromAsync(bodiesOf(read, slices.toReversed()));
          const whole = slices.filter(({ offset, length }) => offset + length <= content.length);
          expect(bodies.map(({ slice }) => slice)).toEqual(whole);
          for (const { slice, body } of bodies)
            expect(body.equals(content.subarray(slice.offset, slice.offset + slice.length))).toBe(true);
        },
      ),
      { numRuns: 60 },
    );
  });
});
