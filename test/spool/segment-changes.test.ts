/** Changes of a segment leave what it says about its readings as it is. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { TargetFacts } from "#gateway/model.ts";
import { isWhole, rowsOf } from "#gateway/spool/row-index.ts";
import { segmentChanges } from "#gateway/spool/segment-changes.ts";
import { segmentFiles } from "#gateway/spool/segment-files.ts";
import { createSegment } from "#mapping/segment/writer.ts";
import { temporaryFolder } from "../mapping/kit.ts";

const AT = "2026-03-01T00:00:00Z";

/** Path of a segment of one batch, and the end of that batch. */
async function segmentOfOne(): Promise<{ readonly path: string; readonly end: number }> {
  const path = join(await temporaryFolder(), "r1.segment");
  const sink = createSegment(path);
  const bytes = Buffer.from(`[{"variableId":1,"data":[{"date":"${AT}","value":1}]}]`);
  await sink.append({ bytes, points: 1, rows: Uint32Array.of(77), sheets: null }, () => undefined);
  const facts: TargetFacts = { target: { variableId: 1 }, points: 1, fromMs: 0, toMs: 0, untagged: 0 };
  await sink.publish({ period: { from: AT, to: AT }, targets: [{ facts }] });
  return { path, end: bytes.length };
}

async function rowsAfterRestore({ path, end }: { readonly path: string; readonly end: number }) {
  await segmentChanges.restore(path, end, Buffer.from("[child]"));
  const { rows } = segmentFiles(path);
  if (rows === null) throw new Error("the segment has no rows");
  const bytes = await readFile(path);
  expect(bytes.subarray(end, end + 7).toString()).toBe("[child]");
  return {
    isWhole: await isWhole(rows),
    rows: (await Array.fromAsync(rowsOf(rows))).map((line) => line.rows),
  };
}

it("keeps a whole row index whole when batches are restored where it was", async () => {
  expect(await rowsAfterRestore(await segmentOfOne())).toEqual({ isWhole: true, rows: [[77]] });
});

it("keeps a damaged row index recognisable as damaged when batches are restored where it was", async () => {
  const segment = await segmentOfOne();
  const bytes = await readFile(segment.path);
  bytes.write('"rows":[87]', bytes.indexOf('"rows":[77]'));
  await writeFile(segment.path, bytes);
  expect(await rowsAfterRestore(segment)).toEqual({ isWhole: false, rows: [[87]] });
});
