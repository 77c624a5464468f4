/** Readings that nobody waits for, in processes with many files: each counts for its own file. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { resultOf } from "#core/promises.ts";
import type { MapJob, MapResult } from "#mapping/contract.ts";
import { GOOD, poolOf } from "./pool-rig.ts";

const LATE = `emit({ target: { variableId: 2 }, date: "2026-03-01T00:00:00Z", value: 2 })`;
const never = new AbortController().signal;

const mapperOf = (body: string) => `${GOOD}; ${body}`;

/** Jobs whose inputs are in one file. */
async function listed(rig: Awaited<ReturnType<typeof poolOf>>, name: string, inputs: readonly string[]) {
  const part = join(rig.folder, `${name}.list.part`);
  await writeFile(part, inputs.join(""));
  let offset = 0;
  const jobs: MapJob[] = [];
  for (const [nth, input] of inputs.entries()) {
    const job = await rig.job(name);
    jobs.push({
      ...job,
      runId: `run${nth}`,
      filePath: `in/${nth}.csv`,
      inputPath: part,
      input: { offset, length: input.length },
      segmentPath: join(rig.folder, `${name}${nth}.segment`),
    });
    offset += input.length;
  }
  return jobs;
}

describe("readings that come when map has ended", () => {
  it("are attributed to their own file of a list, and reach no other", async () => {
    const body = `const text = await file.text(); ${GOOD}; if (text === "late") ${"{"} WAY ${"}"}`;
    for (const way of [
      `setTimeout(() => ${LATE}, 1);`,
      `void (async () => { for (let n = 0; n < 50; n += 1) await null; ${LATE}; })();`,
    ]) {
      const rig = await poolOf({ late: body.replace("WAY", way) }, { count: 1 });
      const jobs = await listed(rig, "late", ["one", "late", "two", "six"]);
      const results = (await rig.pool.mapList(jobs, never)).map((one) => resultOf(one));
      expect(results[1]).toBeNull();
      const again: (MapResult | null)[] = [];
      for (const [nth, result] of results.entries())
        again.push(result ?? resultOf((await rig.pool.map([jobs[nth] as MapJob], never))[0]));
      expect(again.map((one) => (one?.status === "mapped" ? one.points : one?.reason.code))).toEqual([
        1,
        "HG-MAP-040",
        1,
        1,
      ]);
    }
  });
});

describe("readings that come when the file was written", () => {
  const later = (then: string) =>
    `void Atomics.waitAsync(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400).value.then(() => { ${then} });`;

  it.each([
    ["give", LATE, "`emit` was called after the file was written"],
    ["fail", `throw new Error("broken")`, "what it did not await failed (broken (at mappers/late.ts:"],
  ])("are reported once with their run: %s", async (_, then, words) => {
    const { map, lines } = await poolOf({ late: mapperOf(later(`${then}; ${then};`)) }, { count: 1 });
    expect(await map("late")).toMatchObject({ status: "mapped", points: 1 });
    await expect.poll(() => lines.join("")).toContain(words);
    const told = lines.map((line) => JSON.parse(line)).filter(({ code }) => code === "HG-MAP-041");
    expect(told).toMatchObject([{ run: "run", file: "in/input.csv", level: "warn" }]);
  });

  it("are reported for their own file while another one is mapped", async () => {
    const body = `const text = await file.text(); ${GOOD};
      if (text === "late") ${later(LATE)}
      else await new Promise((resolve) => setTimeout(resolve, 600));`;
    const rig = await poolOf({ late: body }, { count: 1 });
    const jobs = await listed(rig, "late", ["late", "next"]);
    const results = (await rig.pool.mapList(jobs, never)).map((one) => resultOf(one));
    expect(results).toMatchObject([{ points: 1 }, { points: 1 }]);
    const told = rig.lines.map((line) => JSON.parse(line)).filter(({ code }) => code === "HG-MAP-041");
    expect(told).toMatchObject([{ run: "run0", file: "in/0.csv" }]);
  });
});
