/** A list of runs that is taken in: one fault is that of its run, and nothing of the list is left behind. */
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Run } from "#gateway/model.ts";
import { tracedList } from "#gateway/runs/spans.ts";
import { ListResults } from "#gateway/runs/steps/list-results.ts";
import { takeIn } from "#gateway/runs/steps/step-dispatch.ts";
import type { RunSteps } from "#gateway/runs/steps/steps.ts";
import { temporaryFolder } from "../mapping/kit.ts";

const binding = { mapper: { name: "m" }, trigger: "t", service: "s" };
const runs = ["a", "b"].map((id) => ({ id, path: id, drop: "in", size: 1, replay: null, binding }) as Run);
const never = new AbortController().signal;
const broken = async () => Promise.reject(new Error("the disk is broken"));

/** Steps that fetch every file, map none of it together, and record what they are asked to. */
function stepsIn(folder: string, spool: Partial<RunSteps["spool"]>): RunSteps {
  const segment = join(folder, "a.segment.part");
  const file = { offset: 0, bytes: 1, sha256: "0", size: 1, mtime: "" };
  return {
    tracer: { exports: false },
    quota: { reserve: async () => null, fetched: () => undefined, mapped: () => undefined },
    dropEntry: () => ({ drop: { kind: "local", fetch: async () => fulfilled(runs.map(() => file)) } }),
    ledger: { advanceRuns: async (all: { id: string }[]) => all.map(({ id }) => ({ run: { id } })) },
    pool: {
      prepare: () => undefined,
      mapList: async (jobs: readonly unknown[]) => {
        await writeFile(`${segment}.rows.part`, "rows of a list whose process was ended");
        return fulfilled(jobs.map(() => null));
      },
    },
    prepareDelivery: () => undefined,
    spool: {
      newSegment: () => segment,
      segmentPath: (id: string) => join(folder, `${id}.segment`),
      hasInput: async () => false,
      cutInput: async () => undefined,
      ...spool,
    },
  } as unknown as RunSteps;
}

const fulfilled = <Value>(values: readonly Value[]) => values.map((value) => ({ status: "fulfilled" as const, value }));

it("rejects the run alone whose former input cannot be discarded", async () => {
  const hasInput = async (id: string) => (id === "a" ? await broken() : false);
  const results = await takeIn(runs, stepsIn(await temporaryFolder(), { hasInput }), never);
  expect(results).toMatchObject([
    { status: "rejected", reason: { message: "the disk is broken" } },
    { status: "fulfilled", value: { move: "next", run: { id: "b" } } },
  ]);
});

it("removes the rows of a list whose process was ended", async () => {
  const folder = await temporaryFolder();
  await takeIn(runs, stepsIn(folder, {}), never);
  expect(await readdir(folder)).toEqual([]);
});

it("has its result and its spans also where the ledger cannot be read, or the work failed", async () => {
  const ended: (string | undefined)[] = [];
  const tracer = { exports: true, begin: () => ({ end: (_: object, fault?: string) => ended.push(fault) }) };
  const steps = { tracer, ledger: { run: broken } } as unknown as RunSteps;
  const step = { results: new ListResults(), steps };
  expect(await tracedList("map", runs, step, async () => "mapped")).toBe("mapped");
  expect(ended.splice(0)).toEqual([undefined, undefined]);
  await expect(tracedList("map", runs, step, broken)).rejects.toThrow("the disk is broken");
  expect(ended).toEqual(["the disk is broken", "the disk is broken"]);
});
