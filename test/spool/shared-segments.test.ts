/** Segments with the inputs and the batches of several runs, and the name that each of these runs has of one. */
import { hash } from "node:crypto";
import {
  linkSync,
  lstatSync,
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
import type { Readable } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { appendSlices } from "#gateway/delivery/slices.ts";
import { isWhole, rowsOf } from "#gateway/spool/row-index.ts";
import { segmentChanges } from "#gateway/spool/segment-changes.ts";
import { keptSegmentFiles, segmentFiles } from "#gateway/spool/segment-files.ts";
import { openSpool, type Spool } from "#gateway/spool/spool.ts";
import { bytesBelow, shareOf } from "#gateway/spool/usage.ts";
import { bodiesOf } from "#mapping/segment/payloads.ts";
import { type LaidFacts, type LaidRun, laySegment } from "./segment-layout.ts";

const DAY_MS = 86_400_000;
const LIMIT = 1_000_000;
const RUNS = ["01m7y3wv7m37a23mgyr2g8n1r1", "01m7y3wv7m37a23mgyr2g8n1r2", "01m7y3wv7m37a23mgyr2g8n1r3"];
const [A = "", B = "", C = ""] = RUNS;

let folder: string;
let spool: Spool;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  spool = await openSpool({
    ...{ path: folder, budget: 1e9, headroom: 0 },
    keepInputs: { age: 30 * DAY_MS, size: LIMIT },
  });
});
afterEach(async () => {
  await spool.close();
  rmSync(folder, { recursive: true });
});

type SharedRun = LaidRun & { readonly input: Buffer };

/** With an input of so many bytes. */
function runOf(runId: string, bytes = 100): SharedRun {
  const batch = Buffer.from(JSON.stringify([{ data: [], tags: { of: runId } }]));
  return { runId, input: Buffer.from(`${runId};12,5\n`.repeat(bytes).slice(0, bytes)), batches: [batch] };
}
const inputOf = (run: SharedRun) => run.input.toString("latin1");
const kept = (name = "") => join(folder, "kept", name);
const keptFile = (runId: string) => kept(`${runId}.segment`);

async function read(stream: Readable | null): Promise<string | null> {
  return stream === null ? null : Buffer.concat(await Array.fromAsync(stream)).toString("latin1");
}

/** What is left of a run must be what was laid. */
async function expectBatches(run: LaidRun, { slices }: LaidFacts, isKept: boolean): Promise<void> {
  const segment = (await spool.openSegment(run.runId)) ?? expect.fail("no segment");
  const bodies = await Array.fromAsync(bodiesOf(segment, slices));
  expect(bodies.map(({ body }) => body)).toEqual(run.batches);
  const { rows } = isKept ? keptSegmentFiles(kept(run.runId)) : segmentFiles(spool.segmentPath(run.runId));
  if (rows === null) expect.fail("no rows");
  expect(await isWhole(rows)).toBe(true);
  const places = slices.map(({ sequence, offset, length }) => ({ sequence, offset, length, rows: [] }));
  expect(await Array.fromAsync(rowsOf(rows))).toEqual(places);
}

const factsOf = (laid: ReadonlyMap<string, LaidFacts>, runId: string) =>
  laid.get(runId) ?? expect.fail(`${runId} was not laid`);

describe("the input of a run in a shared segment", () => {
  it("is found, opened, copied and brought back as it was, whatever bytes it has, on the way and at rest", async () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 300 }).map((array) => Buffer.from(array)),
      fc.constantFrom('\n{"headgate-trailer":1}\n', '\n{"headgate-segment":1,"directory":5}\n').map(Buffer.from),
      fc.nat({ max: 90_000 }).map((size) => Buffer.alloc(size + 1, "12,5\n")),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(bytes, { minLength: 1, maxLength: 3 }), fc.boolean(), async (inputs, isAlone) => {
        const runs = inputs.map((input, at) => ({ ...runOf(RUNS[at] ?? ""), input }));
        const laid = laySegment(spool, runs);
        const ids = runs.map(({ runId }) => runId);
        for (const isKept of [false, true]) {
          if (isKept && isAlone) for (const id of ids) await spool.retire([id]);
          else if (isKept) await spool.retire(ids);
          for (const run of runs) {
            const { runId } = run;
            expect(await spool.hasInput(runId)).toBe(false);
            expect(await spool.holdsInput(runId)).toBe(true);
            expect(await read(await spool.openInput(runId))).toBe(inputOf(run));
            expect(await spool.openInput(runId, isKept ? "in progress" : "kept")).toBeNull();
            expect(await spool.copyInput(runId, join(folder, "copy"))).toBe(true);
            expect(await spool.restoreInput("another", runId, hash("sha256", run.input))).toBe(true);
            for (const path of [join(folder, "copy"), spool.inputPath("another")])
              expect(readFileSync(path).equals(run.input)).toBe(true);
            rmSync(spool.inputPath("another"));
            await expectBatches(run, factsOf(laid, runId), isKept);
          }
          expect((await spool.keptInputs()).toSorted()).toEqual(isKept ? ids : []);
        }
        expect(await spool.residents()).toEqual(new Set());
        for (const name of readdirSync(kept())) rmSync(kept(name));
      }),
      { numRuns: 30 },
    );
  });

  it("is not brought back when it is not what was fetched", async () => {
    const run = runOf(A);
    laySegment(spool, [run]);
    expect(await spool.restoreInput(A, A, hash("sha256", "other"))).toBe(false);
    expect(readdirSync(join(folder, "inputs"))).toEqual([]);
    expect(await spool.restoreInput(A, A, hash("sha256", run.input))).toBe(true);
    expect(await spool.hasInput(A)).toBe(true);
  });

  it.each(["in progress", "kept"] as const)(
    "is removed alone when it is not wanted (%s), and nothing else of its run or of the others is",
    async (side) => {
      const runs = RUNS.map((runId) => runOf(runId, 10_000));
      const laid = laySegment(spool, runs);
      const isKept = side === "kept";
      if (isKept) await spool.retire(RUNS);
      const path = (runId: string) => (isKept ? keptFile(runId) : spool.segmentPath(runId));
      const weekAgo = Math.floor(Date.now() / 1000) - 7 * 86_400;
      utimesSync(path(B), weekAgo, weekAgo);
      // As a crash may have left it.
      linkSync(path(B), `${path(B)}.part`);
      await spool.discard(B, isKept ? "kept" : "input");
      expect(await spool.holdsInput(B)).toBe(false);
      for (const run of runs) {
        await expectBatches(run, factsOf(laid, run.runId), isKept);
        if (run.runId !== B) expect(await read(await spool.openInput(run.runId))).toBe(inputOf(run));
      }
      expect(statSync(path(A)).nlink).toBe(2);
      expect(statSync(path(B)).nlink).toBe(1);
      expect(statSync(path(B)).mtimeMs, "it is no younger").toBe(weekAgo * 1000);
      if (isKept) expect((await spool.keptInputs()).toSorted()).toEqual([A, C]);
      await spool.retire([B]);
      await expectBatches(runOf(B), factsOf(laid, B), true);
      expect(readdirSync(kept()), "its batches do not begin at 0").toContain(`${B}.segment`);
      await spool.discard(A, isKept ? "kept" : "input");
      expect(await read(await spool.openInput(C))).toBe(inputOf(runOf(C, 10_000)));
    },
  );

  it("counts only where the run has no file of its own for it", async () => {
    laySegment(spool, [runOf(A)]);
    writeFileSync(spool.inputPath(A), "fetched again");
    expect(await read(await spool.openInput(A))).toBe("fetched again");
    await spool.discard(A, "input");
    expect(await read(await spool.openInput(A))).toBe(inputOf(runOf(A)));
  });
});

describe("a shared segment", () => {
  const retire = {
    alone: (ids: readonly string[]) => Promise.all(ids.map((id) => spool.retire([id]))),
    asList: (ids: readonly string[]) => spool.retire(ids),
  };
  it.each([
    ["alone", 50],
    ["alone", 300_000],
    ["asList", 50],
    ["asList", 300_000],
  ] as const)(
    "is kept as it is, one file for all its runs, when these are retired %s (%i bytes each)",
    async (way, bytes) => {
      const runs = RUNS.map((runId) => runOf(runId, bytes));
      laySegment(spool, runs);
      const { ino } = statSync(spool.segmentPath(A));
      await retire[way]([A, B]);
      expect(await spool.residents()).toEqual(new Set([C]));
      // The others are pruned, so that it has one name left.
      for (const runId of [A, B]) rmSync(keptFile(runId));
      await retire[way]([C]);
      expect(readdirSync(kept())).toEqual([`${C}.segment`]);
      expect(statSync(keptFile(C)).ino).toBe(ino);
      expect(await read(await spool.openInput(C))).toBe(inputOf(runOf(C, bytes)));
    },
  );

  it.each(["alone", "asList"] as const)("has its age from when the last of its runs came to rest (%s)", async (way) => {
    for (const runs of [[A], [B, C]]) {
      laySegment(
        spool,
        runs.map((runId) => runOf(runId)),
      );
      const [first = ""] = runs;
      utimesSync(spool.segmentPath(first), 1, 1);
      await retire[way](runs);
    }
    expect(await spool.prune(Date.now())).toBe(0);
    expect(await spool.prune(Date.now() + 31 * DAY_MS)).toBe(3);
    expect(readdirSync(kept())).toEqual([]);
  });

  it.each(["alone", "asList"] as const)(
    "leaves a run that was split with its input in the file of its own that it got, which is kept as it is (%s)",
    async (way) => {
      const runs = RUNS.map((runId) => runOf(runId, 10_000));
      const laid = laySegment(spool, runs);
      const child = { sequence: "1.1", points: 1, bytes: Buffer.from("[1]") };
      const children = await appendSlices(spool.segmentPath(B), [child], segmentChanges);
      await retire[way](RUNS);
      expect(readdirSync(kept()).toSorted()).toEqual(RUNS.map((runId) => `${runId}.segment`));
      expect(statSync(keptFile(A)).nlink).toBe(2);
      for (const run of runs) {
        expect(await read(await spool.openInput(run.runId))).toBe(inputOf(run));
        await expectBatches(run, factsOf(laid, run.runId), true);
      }
      const segment = (await spool.openSegment(B)) ?? expect.fail("no segment");
      expect((await Array.fromAsync(bodiesOf(segment, children))).map(({ body }) => body)).toEqual([child.bytes]);
    },
  );

  it.each(["alone", "asList"] as const)(
    "is kept also of a run whose part of it is damaged, as the others have it too (%s)",
    async (way) => {
      laySegment(
        spool,
        RUNS.map((runId) => runOf(runId, 10_000)),
      );
      const bytes = readFileSync(spool.segmentPath(B));
      bytes.write("?", bytes.indexOf(`"run":"${B}"`));
      writeFileSync(spool.segmentPath(B), bytes);
      expect(await spool.holdsInput(B)).toBe(false);
      await retire[way](RUNS);
      expect(readdirSync(kept()).toSorted()).toEqual(RUNS.map((runId) => `${runId}.segment`));
      expect((await spool.keptInputs()).toSorted()).toEqual([A, C]);
    },
  );

  it("counts once among what is kept, and goes as a whole when there is no room for it", async () => {
    const [first, second] = [[A, B], [C]].map((ids) => ids.map((runId) => runOf(runId, LIMIT / 3)));
    laySegment(spool, first ?? []);
    await spool.retire([A, B]);
    expect(await spool.prune(Date.now())).toBe(0);
    laySegment(spool, second ?? []);
    await spool.retire([C]);
    const later = Date.now() / 1000 + 10;
    utimesSync(keptFile(C), later, later);
    expect(await spool.prune(Date.now())).toBe(2);
    expect(readdirSync(kept())).toEqual([`${C}.segment`]);
  });

  it("counts among what is kept as far as its runs are", async () => {
    const runs = RUNS.map((runId) => runOf(runId, 0.4 * LIMIT));
    laySegment(spool, runs);
    await spool.retire([A, B]);
    expect(await spool.prune(Date.now()), "a third is on its way still").toBe(0);
    await spool.retire([C]);
    expect(await spool.prune(Date.now())).toBe(3);
  });

  it("counts by its names for what it takes, wherever these are", async () => {
    const names = fc.array(fc.constantFrom("segments", "kept", "kept/deep"), { minLength: 1, maxLength: 9 });
    const files = fc.array(fc.record({ bytes: fc.nat({ max: 10_000 }), names }), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(files, async (files) => {
        const root = mkdtempSync(join(folder, "case-"));
        mkdirSync(join(root, "kept/deep"), { recursive: true });
        mkdirSync(join(root, "segments"));
        const paths: string[] = [];
        for (const [at, { bytes, names }] of files.entries())
          for (const [nth, name] of names.entries()) {
            const path = join(root, name, `${at}-${nth}`);
            if (nth === 0) writeFileSync(path, Buffer.alloc(bytes));
            else linkSync(paths.at(-1) ?? "", path);
            paths.push(path);
          }
        const onDisk = files.reduce((sum, { bytes }) => sum + bytes, 0);
        const heard = new Map<string, number>();
        expect(await bytesBelow(root, (name, bytes) => heard.set(name, bytes))).toBe(onDisk);
        expect(heard.size).toBe(paths.length);
        const shares = paths.map((path) => shareOf(lstatSync(path)));
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(onDisk, 3);
      }),
      { numRuns: 30 },
    );
  });
});
