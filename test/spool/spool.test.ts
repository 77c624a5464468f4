import { hash } from "node:crypto";
import {
  existsSync,
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
import { zstdDecompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSpool, type Spool } from "#gateway/spool/spool.ts";
import { laySegment } from "./segment-layout.ts";

const RUN = "01m7y3wv7m37a23mgyr2g8n1r2";
const DAY_MS = 86_400_000;

let folder: string;
let spool: Spool;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  spool = await openSpool({
    path: folder,
    budget: 1e9,
    headroom: 0,
    keepInputs: { age: 30 * DAY_MS, size: 1_000_000 },
  });
});
afterEach(async () => {
  await spool.close();
  rmSync(folder, { recursive: true });
});

/** Of the bytes as they were before they were kept, without the id of their run. */
function digestOf(name: string): string {
  const bytes = readFileSync(join(folder, "kept", name));
  const [runId = ""] = name.split(".", 1);
  const plain = name.endsWith(".zst") ? zstdDecompressSync(bytes) : bytes;
  return hash("sha256", plain.toString("latin1").replaceAll(runId, ""));
}

describe("the spool", () => {
  it("keeps the input of a run at rest compressed, and brings the same bytes back", async () => {
    const text = "date,value\n".repeat(1000);
    writeFileSync(spool.inputPath(RUN), text);
    await spool.retire([RUN]);
    expect(await spool.hasInput(RUN)).toBe(false);
    expect(readFileSync(join(folder, "kept", `${RUN}.input.zst`)).length).toBeLessThan(text.length / 10);
    expect(await spool.restoreInput(RUN)).toBe(true);
    expect(readFileSync(spool.inputPath(RUN), "utf8")).toBe(text);
  });

  it("keeps a small input as it is, since a disk gives whole blocks, and brings it back", async () => {
    writeFileSync(spool.inputPath(RUN), "date,value\n");
    await spool.retire([RUN]);
    expect(readdirSync(join(folder, "inputs"))).toEqual([]);
    expect(readFileSync(join(folder, "kept", `${RUN}.input`), "utf8")).toBe("date,value\n");
    expect(await spool.keptInputs()).toEqual([RUN]);
    expect(await spool.restoreInput(RUN)).toBe(true);
    expect(readFileSync(spool.inputPath(RUN), "utf8")).toBe("date,value\n");
    await spool.discard(RUN, "kept");
    expect(await spool.keptInputs()).toEqual([]);
  });

  it("counts the age of what it keeps from when the run came to rest", async () => {
    writeFileSync(spool.inputPath(RUN), "date,value\n");
    const old = Date.now() / 1000 - 40 * 86_400;
    utimesSync(spool.inputPath(RUN), old, old);
    await spool.retire([RUN]);
    expect(await spool.prune(Date.now())).toBe(0);
  });

  it("removes the segment of a run at rest and what a crash left beside it, and no other run's", async () => {
    const other = `${RUN.slice(0, -1)}3`;
    for (const end of ["", ".part"]) writeFileSync(`${spool.segmentPath(RUN)}${end}`, "x");
    writeFileSync(spool.segmentPath(other), "y");
    await spool.retire([RUN]);
    await spool.retire([RUN]);
    expect(readdirSync(join(folder, "segments"))).toEqual([`${other}.segment`]);
    expect(await spool.residents()).toEqual(new Set([other]));
  });

  it("has nothing to bring back of a run that it never kept", async () => {
    expect(await spool.restoreInput(RUN)).toBe(false);
  });

  it("prunes kept inputs by age, and beyond the size the oldest first", async () => {
    const now = Date.parse("2026-11-21T00:00:00Z");
    const keep = (name: string, bytes: number, daysAgo: number) => {
      const path = join(folder, "kept", `${name}.input.zst`);
      writeFileSync(path, Buffer.alloc(bytes));
      utimesSync(path, (now - daysAgo * DAY_MS) / 1000, (now - daysAgo * DAY_MS) / 1000);
    };
    keep("ancient", 10, 31);
    keep("old", 600_000, 3);
    keep("newer", 500_000, 2);
    keep("newest", 400_000, 1);
    expect(await spool.prune(now)).toBe(2);
    expect(readdirSync(join(folder, "kept")).sort()).toEqual(["newer.input.zst", "newest.input.zst"]);
  });

  it("goes on pruning when something is being kept at the same time, and leaves that alone", async () => {
    const kept = (name: string) => join(folder, "kept", name);
    for (const name of ["old.zst", "new.zst.part"]) {
      writeFileSync(kept(name), "x");
      utimesSync(kept(name), 0, 0);
    }
    expect(await spool.prune(Date.now())).toBe(1);
    expect(readdirSync(join(folder, "kept"))).toEqual(["new.zst.part"]);
  });

  it("keeps and prunes what belongs to a run together", async () => {
    laySegment(spool, [{ runId: RUN, input: null, batches: [Buffer.alloc(10_000, "x")] }]);
    writeFileSync(spool.inputPath(RUN), "input");
    await spool.retire([RUN]);
    expect(readdirSync(join(folder, "segments"))).toEqual([]);
    const kept = () => readdirSync(join(folder, "kept")).sort();
    expect(kept()).toEqual([".about", ".input", ".segment.rows", ".zst"].map((end) => `${RUN}${end}`));
    expect(await spool.prune(Date.now() + 31 * DAY_MS)).toBe(1);
    expect(kept()).toEqual([]);
  });

  it("keeps a small segment also without a trailer, since a replay needs the batches", async () => {
    const other = `${RUN.slice(0, -1)}3`;
    for (const run of [RUN, other]) writeFileSync(spool.segmentPath(run), "x");
    await spool.retire([RUN]);
    await spool.retire([other, "01m7y3wv7m37a23mgyr2g8none"]);
    expect(readdirSync(join(folder, "segments"))).toEqual([]);
    for (const run of [RUN, other]) {
      const read = (await spool.openSegment(run)) ?? expect.fail("it is not kept");
      const bytes = await Array.fromAsync(read({ offset: 0, length: 9 }));
      expect(Buffer.concat(bytes).toString()).toBe("x");
    }
  });

  it("keeps a list of runs as it keeps each alone", async () => {
    // Bytes of the input and of a batch; null for one that was never mapped.
    const sizes: readonly (readonly [number, number | null])[] = [
      [0, 0],
      [100, null],
      [8_192, 8_192],
      [8_193, 8_193],
      [200_000, 200_000],
      [300_000, 100],
      [100, 300_000],
    ];
    const old = Date.now() / 1000 - 86_400;
    const lay = (run: string, input: number, mapped: number | null) => {
      writeFileSync(spool.inputPath(run), "input\n".repeat(input).slice(0, input));
      utimesSync(spool.inputPath(run), old, old);
      if (mapped !== null) laySegment(spool, [{ runId: run, input: null, batches: [Buffer.alloc(mapped, "x")] }]);
    };
    const runs = (kind: string) => sizes.map((_, at) => `01m7y3wv7m37a23mgyr2g8n1${kind}${at}`);
    const [alone, asList] = [runs("a"), runs("b")];
    for (const names of [alone, asList]) for (const [at, run] of names.entries()) lay(run, ...(sizes[at] ?? [0, null]));
    for (const run of alone) await spool.retire([run]);
    const before = Date.now();
    await spool.retire([...asList, "01m7y3wv7m37a23mgyr2g8none"]);
    expect(await spool.residents()).toEqual(new Set());
    const kept = (names: readonly string[]) =>
      readdirSync(join(folder, "kept"))
        .filter((name) => names.some((run) => name.startsWith(run)))
        .toSorted()
        .map((name) => [name.slice(25), digestOf(name)]);
    expect(kept(asList).map(([name]) => name)).toEqual(kept(alone).map(([name]) => name));
    expect(kept(asList)).toEqual(kept(alone));
    const input = statSync(join(folder, "kept", `${asList[1]}.input`));
    expect(input.mtimeMs, "its age counts from when it came to rest").toBeGreaterThan(before - 1_000);
    await spool.retire(asList);
    expect(kept(asList)).toEqual(kept(alone));
  });

  it("says of each run of a list why it could not be kept, and keeps the others", async () => {
    const other = `${RUN.slice(0, -1)}3`;
    for (const run of [RUN, other]) writeFileSync(spool.inputPath(run), "input");
    mkdirSync(join(folder, "kept", `${RUN}.input`));
    expect(await spool.retire([RUN, other])).toMatchObject([
      { status: "rejected", reason: { code: "HG-SPOOL-004" } },
      { status: "fulfilled" },
    ]);
    expect([...spool.left]).toEqual([RUN]);
    expect(await spool.keptInputs()).toContain(other);
    expect(await spool.hasInput(RUN)).toBe(true);
  });

  it("does by itself, without its thread, what is asked for after it was closed", async () => {
    await spool.close();
    writeFileSync(spool.inputPath(RUN), "input");
    await spool.retire([RUN, "01m7y3wv7m37a23mgyr2g8none"]);
    expect(await spool.keptInputs()).toEqual([RUN]);
  });

  it("removes what a crash left half-compressed", async () => {
    const half = join(folder, "kept", `${RUN}.input.zst.part`);
    writeFileSync(half, "x");
    await spool.sweep();
    expect(existsSync(half)).toBe(false);
  });

  it("removes samples that a crash left", async () => {
    mkdirSync(join(folder, "samples"));
    writeFileSync(join(folder, "samples", "left.csv"), "x");
    await spool.sweep();
    expect(existsSync(join(folder, "samples"))).toBe(false);
  });

  it("says what to do when its folder cannot be made", async () => {
    writeFileSync(join(folder, "file"), "");
    await expect(
      openSpool({
        path: join(folder, "file", "spool"),
        budget: 1,
        headroom: 0,
        keepInputs: { age: 1, size: 1 },
      }),
    ).rejects.toMatchObject({
      code: "HG-SPOOL-001",
      hint: expect.stringContaining("spool.path"),
    });
  });
});
