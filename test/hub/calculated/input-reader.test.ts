import { expect, test } from "vitest";
import type { PlannedInput } from "#hub/calculated/recalculation/formulas.ts";
import { InputReader } from "#hub/calculated/recalculation/input-reader.ts";
import type { Piece } from "#hub/store/blocks/pieces.ts";
import type { PointRange, PointRow, VariableFacts } from "#hub/store/records.ts";

const CHUNK = 10;
const never = new AbortController().signal;

/** A variable with points at 0, 1, 2 ..., and the reads that were asked of it. */
function stored(points: number) {
  let reads = 0;
  let chunks = 0;
  return {
    reads: () => reads,
    chunks: () => chunks,
    async *pieces(): AsyncGenerator<Piece> {
      reads += 1;
      chunks += 1;
      const atMs = Float64Array.from({ length: points }, (_, at) => at);
      const samples = () => ({ atMs, values: atMs });
      yield { firstMs: 0, lastMs: points - 1, count: points, sums: () => null, samples };
    },
    async *read(_: VariableFacts, { labels = true }: PointRange): AsyncGenerator<readonly PointRow[]> {
      reads += 1;
      for (let at = 0; at < points; at += CHUNK) {
        chunks += 1;
        yield Array.from({ length: Math.min(CHUNK, points - at) }, (__, nth) => ({
          ...{ atMs: at + nth, value: at + nth, version: labels ? "v" : null, versionUs: null },
          ...{ tags: labels ? { site: "A" } : null, batchTags: null },
        }));
      }
    },
  };
}

const facts = { id: 7, accountId: 1, sourceId: 1, unitId: 8, isVersioned: true, isCalculated: false };
const zones = { versionsMax: null, sourceZoneId: "UTC", siteZoneId: "UTC" };

function asked(alias: string, kind: "window" | "absolute" = "window", granularity: "Raw" | "Day" = "Raw") {
  const period = kind === "window" ? { kind } : { kind, fromMs: null, endMs: null };
  const reach = { granularity, collected: [], period, points: 0 };
  const input = { alias, facts: { ...facts, ...zones }, reach, aggregate: granularity === "Raw" ? null : "SUM" };
  const view = { kind: "latest" } as const;
  const range = { fromMs: null, lastMs: null, order: "ASC", page: { offset: 0, limit: null }, view } as const;
  return { input: input as unknown as PlannedInput, unitId: 8, convert: null, range, zone: "UTC" };
}

test("aliases of one variable and period share what is read once", async () => {
  const points = stored(25);
  const reader = new InputReader({ points, rowsMax: 25, signal: never });
  const first = await reader.columns(asked("a"));
  expect(await reader.columns(asked("b"))).toBe(first);
  expect(points.reads()).toBe(1);
  expect(first.atMs).toHaveLength(25);
  expect(first.versions?.[24]).toBe("v");
  // Equal tags are one object, whatever the number of points.
  expect(new Set(first.tags)).toEqual(new Set([{ site: "A", version: "v" }]));
  expect(new Set(first.tags).size).toBe(1);
});

test("an absolute period is read for the first part alone, other dates for each", async () => {
  const points = stored(5);
  const reader = new InputReader({ points, rowsMax: 15, signal: never });
  for (const reads of [2, 3, 4]) {
    await reader.columns(asked("a", "absolute"));
    await reader.columns({ ...asked("b"), range: { ...asked("b").range, fromMs: 0 } });
    reader.endPart();
    expect(points.reads()).toBe(reads);
  }
});

test("a formula that reads too many points is at fault, and no more of them is read", async () => {
  const points = stored(1_000);
  const reader = new InputReader({ points, rowsMax: 25, signal: never });
  await expect(reader.columns(asked("meter"))).rejects.toThrow(
    /more than 25 points at once \(counted up to the input meter\).*calculated.inputRows/,
  );
  expect(points.chunks()).toBe(3);
});

test("of a granularity the periods count, not their points", async () => {
  const reader = new InputReader({ points: stored(1_000), rowsMax: 1, signal: never });
  expect([...(await reader.columns(asked("a", "window", "Day"))).values]).toEqual([499_500]);
});

test("a read ends with the run", async () => {
  const points = stored(1_000);
  const ended = AbortSignal.abort(new Error("the hub ends"));
  const reader = new InputReader({ points, rowsMax: 1_000, signal: ended });
  await expect(reader.columns(asked("a"))).rejects.toThrow("the hub ends");
  expect(points.chunks()).toBe(1);
});
