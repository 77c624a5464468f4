/** Each file of a list comes out as it would by itself. */

import { randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { onlyOne, resultOf, type Settled, settleEach } from "#core/promises.ts";
import { isWhole, rowsOf } from "#gateway/spool/row-index.ts";
import { linesOf, segmentFiles } from "#gateway/spool/segment-files.ts";
import type { MapJob, MappedFile, MapResult } from "#mapping/contract.ts";
import { aboutLines, aboutOf } from "#mapping/segment/layout.ts";
import { poolOf, writeMapper } from "./pool-rig.ts";

/** Says which file it reads, and does to a row what the row says. */
const ROWS = `
  log.info("reading " + file.name);
  for await (const rows of file.csv({ columns: true })) for (const row of rows) {
    if (row.what === "kill") process.kill(process.pid, "SIGKILL");
    if (row.what === "loop") for (;;);
    if (row.what === "wait") { log.warn("waits"); await new Promise(() => {}); }
    if (row.what === "leave") setInterval(() => {}, 1000);
    emit({ target: { variableId: Number(row.id) }, date: row.date, value: Number(row.value), tags: { file: file.name, folder: process.cwd() } });
  }`;

function content(rows: number, what = "", at = 0): string {
  const lines = Array.from({ length: rows }, (_, nth) => {
    const date = new Date(Date.UTC(2026, 2, 1) + nth * 900_000).toISOString();
    return `${1 + (nth % 3)},${date},${nth / 8},${nth === at ? what : ""}`;
  });
  return `id,date,value,what\n${lines.join("\n")}\n`;
}

type Rig = Awaited<ReturnType<typeof poolOf>>;

async function rigOf(options: Parameters<typeof poolOf>[1] = {}) {
  return await poolOf({ rows: ROWS }, options);
}

/** A job for each content, with a segment of its own. */
async function jobsOf({ job, folder }: Rig, contents: readonly string[], prefix = "run"): Promise<MapJob[]> {
  const bound = await job("rows");
  return await Promise.all(
    contents.map(async (text, nth) => {
      const runId = `${prefix}${nth}`;
      const inputPath = join(folder, `${runId}.csv`);
      await writeFile(inputPath, text);
      return {
        ...bound,
        ...{ runId, inputPath, fileName: `${runId}.csv`, filePath: `in/${runId}.csv` },
        segmentPath: join(folder, "segments", `${runId}.segment`),
      };
    }),
  );
}

const never = () => new AbortController().signal;

async function segments({ folder }: Rig): Promise<readonly string[]> {
  return await readdir(join(folder, "segments")).catch(() => []);
}

/**
 * As the drop brings them: their inputs one after another in one file, which is gone afterwards as its caller
 * removes it. Null for those that are to be mapped by themselves.
 */
async function mapTogether(
  { pool, folder }: Rig,
  jobs: readonly MapJob[],
  signal: AbortSignal,
): Promise<readonly Settled<MapResult | null>[]> {
  const part = join(folder, "segments", `${jobs[0]?.runId}.${randomUUID()}.part`);
  const inputs = await Promise.all(jobs.map(({ inputPath }) => readFile(inputPath)));
  let offset = 0;
  const listed = jobs.map((job, nth) => {
    const input = { offset, length: inputs[nth]?.length ?? 0 };
    offset += input.length;
    return { ...job, inputPath: part, input };
  });
  await mkdir(join(folder, "segments"), { recursive: true });
  await writeFile(part, Buffer.concat(inputs));
  try {
    return await pool.mapList(listed, signal);
  } finally {
    await rm(part, { force: true });
  }
}

async function mapList(rig: Rig, jobs: readonly MapJob[], signal: AbortSignal): Promise<readonly Settled<MapResult>[]> {
  const results = await mapTogether(rig, jobs, signal);
  return await settleEach(
    jobs,
    async (job, nth) => resultOf(results[nth]) ?? (await onlyOne(rig.pool.map([job], signal))),
  );
}

/** The results of a list in which each has one. */
async function mapAsList(rig: Rig, jobs: readonly MapJob[], signal: AbortSignal): Promise<MapResult[]> {
  return (await mapList(rig, jobs, signal)).map((one) => resultOf(one));
}

/** The batches, the rows of their readings, and the target index. */
async function contentOf({ segmentPath }: MapJob, result: MappedFile) {
  const { rows, about } = segmentFiles(segmentPath);
  if (rows?.span === undefined || about === null) throw new Error("no trailer");
  expect(await isWhole(rows)).toBe(true);
  const bytes = await readFile(segmentPath);
  const first = result.batches[0]?.offset ?? 0;
  const batches = bytes.subarray(first, rows.span.offset - 1).toString("utf8");
  const lines = await Array.fromAsync(rowsOf(rows));
  expect(lines.map(({ offset }) => offset)).toEqual(result.batches.map(({ offset }) => offset));
  const targets = await Array.fromAsync(linesOf(about));
  return { batches, rows: lines.map(({ offset: _, ...line }) => line), targets };
}

/** With its batches where those of the other begin. */
function moved(result: MapResult, other: MapResult | null | undefined): MapResult {
  if (result.status !== "mapped" || other?.status !== "mapped") return result;
  const by = (other.batches[0]?.offset ?? 0) - (result.batches[0]?.offset ?? 0);
  const batches = result.batches.map((batch) => ({ ...batch, offset: batch.offset + by }));
  return { ...result, batches, ...(other.holdsInput === undefined ? {} : { holdsInput: true as const }) };
}

const statuses = (results: readonly MapResult[]) => results.map(({ status }) => status);

describe("files of a list", () => {
  it("have the same results and log lines as alone, whatever their sizes", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(1), content(96), content(0), content(320), "", content(96)]);
    const results = await mapAsList(rig, jobs, never());
    expect(statuses(results)).toEqual(jobs.map(() => "mapped"));
    const contents = await Promise.all(
      jobs.map((job, nth) => {
        const result = results[nth];
        return result?.status === "mapped" && result.batches.length > 0 ? contentOf(job, result) : null;
      }),
    );
    expect((await segments(rig)).length, "each in one file").toBe(4);
    expect(results[3]).toMatchObject({ points: 320, batches: { length: 4 } });
    await expect
      .poll(() => rig.lines.flatMap((line) => JSON.parse(line)).map(({ run, msg }) => `${run} ${msg}`))
      .toEqual(jobs.map(({ runId }) => `${runId} reading ${runId}.csv`));
    for (const [nth, job] of jobs.entries()) {
      const result = await onlyOne(rig.pool.map([job], never()));
      expect(results[nth]).toEqual(moved(result, results[nth]));
      const listed = contents[nth] ?? null;
      if (listed === null || result.status !== "mapped") continue;
      expect(await contentOf(job, result)).toEqual(listed);
      const about = aboutOf(result) ?? expect.fail("no targets");
      expect(`${listed.targets.join("\n")}\n`).toBe([...aboutLines(about)].join(""));
    }
  });

  it("do not fail with a failing one, nor with one of a missing version", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(5), "id,date,value,what\n1,yesterday,1,\n", content(6), content(7)]);
    const [, , , other] = jobs;
    if (other === undefined) throw new Error("no jobs");
    const binding = { ...other.binding, mapper: { ...other.binding.mapper, digest: "0".repeat(64) } };
    const results = await mapAsList(rig, [...jobs.slice(0, 3), { ...other, binding }], never());
    expect(results).toMatchObject([
      { status: "mapped" },
      { status: "failed", reason: { code: "HG-MAP-005", place: { row: 2 } } },
      { status: "mapped" },
      { status: "failed", reason: { code: "HG-MAP-002" } },
    ]);
    expect(await segments(rig)).toEqual(["run0.segment", "run2.segment"]);
    const lines = rig.lines.filter((line) => line.includes("reading run1.csv"));
    expect(lines, "it is said once").toHaveLength(1);
  });

  it("have a segment of their own when they exceed the size of a shared one", async () => {
    const rig = await rigOf({ count: 1 });
    // Last, since on a busy machine it takes so long that the pool maps what follows by itself.
    const jobs = await jobsOf(rig, [content(3), content(30_000)]);
    expect(await mapAsList(rig, jobs, never())).toMatchObject([{ points: 3 }, { points: 30_000 }]);
    expect(await segments(rig)).toEqual(["run0.segment", "run1.segment"]);
  });

  it("do not fail with one whose segment cannot be published", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(5), content(6)]);
    const [first, second] = jobs;
    if (first === undefined || second === undefined) throw new Error("no jobs");
    await writeFile(join(rig.folder, "file"), "");
    const nowhere = { ...first, segmentPath: join(rig.folder, "file", "run0.segment") };
    expect(await mapList(rig, [nowhere, second], never())).toMatchObject([
      { status: "rejected", reason: { code: "HG-MAP-014" } },
      { status: "fulfilled", value: { status: "mapped" } },
    ]);
  });

  it("are mapped, except the one that ends the process", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(5), content(9, "kill", 4), content(6)]);
    expect(await mapAsList(rig, jobs, never())).toMatchObject([
      { status: "mapped" },
      { status: "failed", reason: { code: "HG-MAP-011" } },
      { status: "mapped" },
    ]);
  });

  it("are mapped, except the one that exceeds the time limit", async () => {
    const rig = await rigOf({ count: 1, timeLimit: 2_000 });
    const jobs = await jobsOf(rig, [content(5), content(9, "loop"), content(6)]);
    expect(statuses(await mapAsList(rig, jobs, never()))).toEqual(["mapped", "failed", "mapped"]);
  });

  it("are left to be mapped by themselves when one of them does not end, long before its own time limit", async () => {
    const rig = await rigOf({ count: 1, timeLimit: 3_600_000 });
    const jobs = await jobsOf(rig, [content(5), content(9, "loop"), content(6)]);
    const results = await mapTogether(rig, jobs, never());
    expect(results.map((one) => resultOf(one))).toEqual([null, null, null]);
  });

  it("are mapped, except the one with other bytes than were fetched", async () => {
    const rig = await rigOf({ count: 1 });
    const [first, second] = await jobsOf(rig, [content(5), content(6)]);
    if (first === undefined || second === undefined) throw new Error("no jobs");
    const damaged = { ...first, inputSha256: "0".repeat(64) };
    expect(await mapList(rig, [damaged, second], never())).toMatchObject([
      { status: "rejected", reason: { code: "HG-SPOOL-007" } },
      { status: "fulfilled", value: { points: 6 } },
    ]);
  });

  it("are cancelled like a single one, and leave nothing behind", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(5), content(9, "wait"), content(6)]);
    const stop = new AbortController();
    const outcomes = Promise.all([mapList(rig, jobs, stop.signal), mapList(rig, jobs, stop.signal)]);
    await expect.poll(() => segments(rig), { timeout: 60_000 }).not.toEqual([]);
    stop.abort();
    const cancelled = { status: "rejected", reason: { code: "HG-MAP-013" } };
    for (const outcome of (await outcomes).flat()) expect(outcome).toMatchObject(cancelled);
    expect(await segments(rig)).toEqual([]);
    for (const outcome of await mapList(rig, jobs, stop.signal)) expect(outcome).toMatchObject(cancelled);
  });

  it("run concurrently list by list, and one that leaves something behind is refused alone", async () => {
    const rig = await rigOf({ count: 2 });
    const [one, two] = await Promise.all([
      jobsOf(rig, [content(30), content(31, "leave")], "one"),
      jobsOf(rig, [content(40), content(41)], "two"),
    ]);
    const results = await Promise.all([one, two].map((jobs) => mapAsList(rig, jobs, never())));
    expect(results.flat().map((result) => result?.status === "mapped" && result.points)).toEqual([30, false, 40, 41]);
    expect(rig.lines.some((line) => line.includes("a mapping host is replaced"))).toBe(true);
    expect(await mapAsList(rig, [], never())).toEqual([]);
  });

  it("are mapped in another thread when one before them left theirs unclean", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(1), content(2, "leave", 1), content(3), content(4)]);
    const results = await mapAsList(rig, jobs, never());
    expect(statuses(results)).toEqual(["mapped", "failed", "mapped", "mapped"]);
    for (const [nth, job] of jobs.entries()) {
      const result = await onlyOne(rig.pool.map([job], never()));
      expect(moved(result, results[nth])).toMatchObject(results[nth] ?? { points: nth + 1 });
    }
  });

  it("have settings of their own, which a mapper may change", async () => {
    const rig = await rigOf({ count: 1 });
    await writeFile(
      join(rig.mappers, "taker.ts"),
      `import { defineMapper, z } from "headgate/mapper";
export default defineMapper({ name: "taker", summary: "of a test", settings: z.object({ ids: z.any() }), map({ settings, emit }: any) {
  while (settings.ids.length > 0) emit({ target: { variableId: settings.ids.pop() }, date: "2026-03-01T00:00:00Z", value: 1 });
} });`,
    );
    const { binding } = await rig.job("taker");
    const jobs = (await jobsOf(rig, ["a", "b", "c"], "taken")).map((job) => ({
      ...job,
      binding: { ...binding, settings: { ids: [1, 2] } },
    }));
    expect(await mapAsList(rig, jobs, never())).toMatchObject(jobs.map(() => ({ points: 2 })));
  });

  it("are mapped by the version that they are bound to, or not at all", async () => {
    const rig = await rigOf({ count: 1 });
    const jobs = await jobsOf(rig, [content(5), content(6)]);
    expect(statuses(await mapAsList(rig, jobs, never()))).toEqual(["mapped", "mapped"]);
    await writeMapper(rig.mappers, "rows", `${ROWS} log.info("changed");`);
    expect(await mapAsList(rig, jobs, never())).toMatchObject(
      jobs.map(() => ({ status: "failed", reason: { code: "HG-MAP-002" } })),
    );
  });
});
