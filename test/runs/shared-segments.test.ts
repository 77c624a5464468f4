/** Segments of several runs: each run reads its own part, changes it, and has it made again when it was lost. */
import { hash } from "node:crypto";
import { linkSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appendSlices, rewriteSlice } from "#gateway/delivery/slices.ts";
import type { BatchSlice, TargetFacts } from "#gateway/model.ts";
import { findReadings } from "#gateway/spool/search.ts";
import { AGAIN, discardAgain, publishAgain } from "#gateway/spool/segment-again.ts";
import { segmentChanges } from "#gateway/spool/segment-changes.ts";
import { openSpool, type Spool } from "#gateway/spool/spool.ts";
import { shareOf } from "#gateway/spool/usage.ts";
import { endText, runOf } from "#mapping/segment/layout.ts";
import { bodiesOf } from "#mapping/segment/payloads.ts";
import { readSpan, trailerAnywhere, trailerAtEnd } from "#mapping/segment/trailer.ts";
import { sealedRows, trailerText } from "../spool/segment-layout.ts";
import { elementOf, type SharedFile, type WrittenRun, writeShared } from "./shared-segments.ts";

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

const files = (): readonly SharedFile[] =>
  RUNS.map((runId, at) => ({
    runId,
    input: `meter;value\nM-${at};${at}\n`.repeat(20 + at),
    batches: [[elementOf(`M-${at}`, 30), elementOf("shared", 9, 100 * at)], [elementOf(`N-${at}`, 12)]],
  }));

const found = (sourceSerialNumber: string, hour: number) => {
  const atMs = Date.UTC(2026, 2, 1, hour);
  return Array.fromAsync(findReadings(folder, { fields: { sourceSerialNumber, mappingConfig: "kWh" }, atMs }));
};

describe("a run of a shared segment", () => {
  it("has its batches read where they are, and its readings traced to the rows of its own file", async () => {
    const written = writeShared(folder, files());
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

/** All that a run reads of its segment is what it was. */
async function expectUnharmed(
  { runId, input }: SharedFile,
  { facts }: WrittenRun,
  slices: readonly BatchSlice[],
): Promise<void> {
  const read = (await spool.openSegment(runId)) ?? expect.fail("no segment");
  const bodies = await Array.fromAsync(bodiesOf(read, slices));
  expect(bodies.map(({ body }) => hash("sha256", body))).toEqual(slices.map(({ digest }) => digest));
  const told: TargetFacts[] = [];
  expect(await spool.facts(runId, 5, async (part) => void told.push(...part))).toBe(true);
  expect(told).toEqual(facts);
  const span = trailerAnywhere(spool.segmentPath(runId))?.input ?? expect.fail("no input");
  expect(readSpan(spool.segmentPath(runId), span).toString()).toBe(input);
}

const child = (sequence: string) => {
  const bytes = Buffer.from(JSON.stringify([elementOf(`child-${sequence}`, 3)]));
  return { sequence, points: 3, bytes };
};

describe("a split", () => {
  it("gives a run of a shared segment its own file without harm to others, also for two at one time", async () => {
    const shared = files();
    const written = writeShared(folder, shared);
    const whole = join(folder, "whole");
    linkSync(spool.segmentPath(ONE), whole);
    const before = readFileSync(whole);
    const slices = new Map(RUNS.map((id) => [id, written.get(id)?.slices ?? []]));
    const split = async (runId: string, ...sequences: string[]) => {
      const made = await appendSlices(spool.segmentPath(runId), sequences.map(child), segmentChanges);
      slices.set(runId, [...(slices.get(runId) ?? []), ...made]);
    };
    const expectAllUnharmed = async () => {
      for (const file of shared)
        await expectUnharmed(file, written.get(file.runId) ?? expect.fail("not written"), slices.get(file.runId) ?? []);
      expect(readFileSync(whole).equals(before)).toBe(true);
      expect(await found("N-1", 4)).toMatchObject([{ runId: TWO, sequence: "2", row: 45, value: 4.25 }]);
      expect(await found("M-0", 4)).toMatchObject([{ runId: ONE, sequence: "1", row: 6, value: 4.25 }]);
    };
    await split(ONE, "1.1", "1.2");
    await expectAllUnharmed();
    await Promise.all([split(ONE, "2.1", "2.2"), split(TWO, "1.1", "1.2")]);
    await expectAllUnharmed();
    expect(RUNS.map((id) => statSync(spool.segmentPath(id)).nlink)).toEqual([1, 1, 2]);
    // The last of them changes nothing in place either: what the ledger has of its offsets must not depend on others.
    rmSync(whole);
    const end = statSync(spool.segmentPath(RUNS[2] ?? "")).size;
    await split(RUNS[2] ?? "", "1.1");
    expect(slices.get(RUNS[2] ?? "")?.at(-1)?.offset).toBeLessThan(end);
    expect(readdirSync(join(folder, "segments")).toSorted()).toEqual(RUNS.map((id) => `${id}.segment`));
  });

  it("copies what is its own, and no other run's bytes", async () => {
    const large = { runId: ONE, input: "x".repeat(900_000), batches: [[elementOf("M-0", 9)]] };
    const small = { runId: TWO, input: "meter;value\n", batches: [[elementOf("M-1", 9)]] };
    const written = writeShared(folder, [large, small]);
    await appendSlices(spool.segmentPath(TWO), [child("1.1")], segmentChanges);
    const stats = statSync(spool.segmentPath(TWO));
    expect(stats.size).toBeGreaterThan(900_000);
    expect(shareOf(stats)).toBeLessThan(100_000);
    expect(trailerAtEnd(spool.segmentPath(TWO))).not.toBeNull();
    await expectUnharmed(small, written.get(TWO) ?? expect.fail("no"), written.get(TWO)?.slices ?? []);
  });

  it("copies everything where the row index does not say what belongs to the run, or the file has one run", async () => {
    const written = writeShared(folder, files());
    const path = spool.segmentPath(ONE);
    const whole = readFileSync(path);
    const at = trailerAtEnd(path)?.rows.offset ?? expect.fail("no trailer");
    whole.write("?", at);
    writeFileSync(path, whole);
    await appendSlices(path, [child("1.1")], segmentChanges);
    const read = (await spool.openSegment(ONE)) ?? expect.fail("no segment");
    const bodies = await Array.fromAsync(bodiesOf(read, written.get(ONE)?.slices ?? []));
    expect(bodies.map(({ body, slice }) => hash("sha256", body) === slice.digest)).toEqual([true, true]);
    const backup = join(folder, "backup");
    linkSync(path, backup);
    const before = readFileSync(backup);
    const [slice] = await appendSlices(path, [child("1.1")], segmentChanges);
    expect([readFileSync(backup).equals(before), slice?.offset]).toEqual([true, before.length]);
  });
});

/** From its beginning, as a mapping process writes it. */
function layAgain(bodies: readonly Buffer[], path: string): readonly BatchSlice[] {
  let offset = 0;
  const slices = bodies.map((bytes, nth) => {
    const slice = { sequence: String(nth + 1), offset, length: bytes.length, points: 1 };
    offset += bytes.length;
    return { ...slice, digest: hash("sha256", bytes) };
  });
  const rows = slices.map(({ sequence, offset: at, length }, nth) => ({
    ...{ sequence, offset: at, length },
    rows: Array.from({ length: 5 }, (_, row) => 2 + row + 5 * nth),
  }));
  const targets = bodies.map((_, nth) => ({
    target: { sourceSerialNumber: `M-${nth}`, mappingConfig: "kWh" },
    ...{ points: 5, fromMs: 0, toMs: 0, untagged: 5 },
  }));
  const about = { from: "2026-03-01T00:00:00Z", to: "2026-03-02T00:00:00Z", targets };
  const run = { runId: runOf(path), input: null };
  const { text, footerAt } = trailerText(offset, sealedRows(rows), about, run);
  writeFileSync(path, `${Buffer.concat(bodies)}${text}${endText(new Map([[run.runId, footerAt]]))}`);
  return slices;
}

describe("a segment that is made again", () => {
  it("has its batches at their offsets, whatever was between them, leads to its rows and is kept", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(60_000), { minLength: 1, maxLength: 4 }), fc.boolean(), async (gaps, isMany) => {
        const path = spool.segmentPath(ONE);
        const bodies = gaps.map((_, nth) => Buffer.from(JSON.stringify([elementOf(`M-${nth}`, 5)])));
        const again = `${path}${AGAIN}`;
        const slices = layAgain(bodies, again);
        let at = 0;
        const moves = slices.map((from, nth) => {
          const offset = at + (gaps[nth] ?? 0);
          at = offset + from.length;
          return { from, to: { ...from, offset } };
        });
        writeFileSync(path, "what was damaged");
        await publishAgain(again, path, moves);
        await discardAgain(again);
        const expectThere = async () => {
          const read = (await spool.openSegment(ONE)) ?? expect.fail("no segment");
          const there = await Array.fromAsync(
            bodiesOf(
              read,
              moves.map(({ to }) => to),
            ),
          );
          expect(there.map(({ body }) => body.toString())).toEqual(bodies.map(String));
          for (const nth of moves.keys())
            expect(await found(`M-${nth}`, 3)).toMatchObject([{ row: 5 + 5 * nth, value: 3.25 }]);
        };
        await expectThere();
        const names = readdirSync(join(folder, "segments")).toSorted();
        expect(names).toEqual([`${ONE}.segment`]);
        if (isMany) await spool.retire([ONE, "01m7y3wv7m37a23mgyr2g8none"]);
        else await spool.retire([ONE]);
        expect(readdirSync(join(folder, "segments"))).toEqual([]);
        await expectThere();
        for (const name of readdirSync(join(folder, "kept"))) rmSync(join(folder, "kept", name));
      }),
      { numRuns: 25 },
    );
  });
});

describe("a run that another node has made again, and split", () => {
  it("keeps all that it has in its segment, when it comes back with the children", async () => {
    const shared = files();
    const written = writeShared(folder, shared);
    const { slices } = written.get(ONE) ?? expect.fail("not written");
    const bodies = await Array.fromAsync(bodiesOf((await spool.openSegment(ONE)) ?? expect.fail("no segment"), slices));
    const there = join(folder, `${ONE}.segment`);
    const again = `${there}${AGAIN}`;
    const made = layAgain(
      bodies.map(({ body }) => body),
      again,
    );
    const moves = made.map((from, nth) => ({ from, to: slices[nth] ?? expect.fail("no slice") }));
    await publishAgain(again, there, moves);
    const split = ["1.1", "1.2"].map(child);
    const children = await appendSlices(there, split, segmentChanges);
    for (const [nth, slice] of children.entries())
      await rewriteSlice(spool.segmentPath(ONE), slice, split[nth]?.bytes ?? Buffer.from(""), segmentChanges);
    for (const file of shared)
      await expectUnharmed(
        file,
        written.get(file.runId) ?? expect.fail("not written"),
        file.runId === ONE ? [...slices, ...children] : (written.get(file.runId)?.slices ?? []),
      );
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
        async (bytes, gaps, isCompressed, before) => {
          const content = Buffer.concat([Buffer.alloc(before % 3 === 0 ? before : 0), bytes]);
          let at = content.length - bytes.length;
          const slices = gaps.map(([gap, length], nth) => {
            const offset = at + gap;
            at = offset + length;
            const digest = hash("sha256", content.subarray(offset, at));
            return { sequence: String(nth + 1), offset, length, points: 1, digest };
          });
          const kept = join(folder, "kept", ONE);
          rmSync(`${kept}.zst`, { force: true });
          rmSync(`${kept}.segment`, { force: true });
          if (isCompressed) writeFileSync(`${kept}.zst`, zstdCompressSync(content));
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

  it("are not read where another run has its own, though these have the same lengths", async () => {
    const [one, two] = files().map((file, at) => ({
      ...file,
      input: "meter;value",
      batches: [[elementOf(`M-${at}`, 9)], [elementOf("shared", 9)]],
    }));
    if (one === undefined || two === undefined) throw new Error("no runs");
    const slices = writeShared(folder, [one]).get(ONE)?.slices ?? [];
    rmSync(spool.segmentPath(ONE));
    // As another node has it, which fetched them in another order.
    writeShared(folder, [{ ...two, runId: ONE }]);
    const read = (await spool.openSegment(ONE)) ?? expect.fail("no segment");
    const bodies = await Array.fromAsync(bodiesOf(read, slices));
    expect(bodies.map(({ slice }) => slice)).toEqual(slices.slice(1));
  });
});
