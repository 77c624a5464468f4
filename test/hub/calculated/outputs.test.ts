import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { defaultVersionOf, PATIENCE_MS, readyVariables } from "#hub/calculated/recalculation/order.ts";
import { outputsOf } from "#hub/calculated/recalculation/run.ts";
import { decompressed } from "#hub/push/body-compression.ts";
import type { MarkedVariable } from "#hub/store/calculated/claims.ts";

test.each([
  ["2026-03-01T12:00:00.001Z", "2026-03-01T13:00:00"],
  ["2026-03-01T12:00:00Z", "2026-03-01T12:00:00"],
  ["2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00"],
])("the default version of a calculation at %s is %s", (now, version) => {
  expect(defaultVersionOf(Temporal.Instant.from(now))).toBe(version);
});

describe("the order of calculations", () => {
  const graph = new Map([
    [2, [1]],
    [3, [2]],
    [4, [3, 1]],
    [5, [1]],
  ]);
  const at = (markedMs: number, ...ids: readonly number[]) => ids.map((id) => ({ id, markedMs }));
  const ready = (due: readonly MarkedVariable[], busy: readonly MarkedVariable[] = [], nowMs = 0) => [
    ...readyVariables(graph, due, busy, nowMs),
  ];

  test("a variable waits for its inputs, near and far, that wait or are calculated", () => {
    expect(ready(at(0, 4, 3, 2, 5))).toEqual([2, 5]);
    expect(ready(at(0, 4, 3), at(0, 2))).toEqual([]);
    expect(ready(at(0, 4, 5), at(0, 5))).toEqual([4]);
    // Between the two that wait is one that does not.
    expect(ready(at(0, 2, 4))).toEqual([2]);
  });

  test("a variable that waited long reads what is stored, also while newer changes of inputs wait or run", () => {
    expect(ready([...at(0, 3), ...at(1, 2)], [], PATIENCE_MS - 1)).toEqual([2]);
    expect(ready([...at(0, 3), ...at(1, 2)], [], PATIENCE_MS)).toEqual([3, 2]);
    expect(ready(at(0, 4), at(1, 2, 3), PATIENCE_MS)).toEqual([4]);
    expect(ready(at(0, 3), at(1, 3), PATIENCE_MS)).toEqual([]);
  });

  test("a variable that waited long still waits for inputs that were marked before it, or with it", () => {
    expect(ready(at(0, 2, 3, 4), [], PATIENCE_MS)).toEqual([2]);
    expect(ready(at(1, 4), at(0, 2), PATIENCE_MS + 1)).toEqual([]);
  });
});

const WINDOW = { fromMs: 1_000, toMs: 3_000 };
const PARTS = { variableId: 7, isVersioned: true, defaultVersion: "2026-03-01T13:00:00", window: WINDOW };
const ROWS = {
  atMs: Float64Array.of(0, 1_000, 2_000, 3_000, 4_000),
  values: Float64Array.of(1, 2, Number.NaN, 4, 5),
  versions: [null, "own", null, "", null],
  tags: [null, { site: "A" }, null, null, null],
};
const bodyOf = (bytes: Uint8Array | null) =>
  bytes === null ? null : JSON.parse(Buffer.from(decompressed(bytes)).toString());

test("rows become a push: the version of a row wins, others get the default one", async () => {
  const { body, digest, ...counts } = await outputsOf(ROWS, { ...PARTS, keepsLater: false });
  expect(counts).toEqual({ rows: 2, outside: 2, withoutValue: 1, notes: [] });
  expect(digest).toBe(
    createHash("sha256")
      .update(decompressed(body ?? new Uint8Array()))
      .digest("hex"),
  );
  expect(bodyOf(body)).toEqual([
    {
      variableId: 7,
      version: "2026-03-01T13:00:00",
      data: [
        { date: "1970-01-01T00:00:01.000Z", value: 2, version: "own", tags: { site: "A" } },
        { date: "1970-01-01T00:00:03.000Z", value: 4 },
      ],
    },
  ]);
});

test("a variable without versions gets no default one", async () => {
  const { body } = await outputsOf(ROWS, { ...PARTS, isVersioned: false, keepsLater: false });
  expect(bodyOf(body)[0].version).toBeUndefined();
});

test("rows after the window are kept where it reaches the newest input", async () => {
  expect((await outputsOf(ROWS, { ...PARTS, keepsLater: true })).rows).toBe(3);
});

test("without a row to store there is no push", async () => {
  const window = { fromMs: 9_000, toMs: 9_000 };
  expect(await outputsOf(ROWS, { ...PARTS, window, keepsLater: false })).toMatchObject({ body: null, outside: 5 });
});

test("many rows are the same push as few, in small memory", async () => {
  const rows = 200_000;
  const atMs = Float64Array.from({ length: rows }, (_, nth) => nth * 1_000);
  const values = Float64Array.from({ length: rows }, (_, nth) => nth / 8);
  const tags = Array.from({ length: rows }, (_, nth) => (nth % 2 === 0 ? { site: "é" } : null));
  const window = { fromMs: 0, toMs: rows * 1_000 };
  const { body, ...counts } = await outputsOf(
    { atMs, values, versions: null, tags },
    { ...PARTS, window, keepsLater: false },
  );
  expect(counts).toMatchObject({ rows, outside: 0, withoutValue: 0, notes: [] });
  expect(body?.byteLength).toBeLessThan(rows * 20);
  const [{ data }] = bodyOf(body);
  expect(data).toHaveLength(rows);
  const { length } = data.filter(
    ({ date, value, tags: own }: { date: string; value: number; tags?: { site: string } }, nth: number) =>
      date === new Date(nth * 1_000).toISOString() && value === nth / 8 && own?.site === tags[nth]?.site,
  );
  expect(length).toBe(rows);
});

const FIRST = "1970-01-01T00:00:01.000Z";

test("rows that overwrite each other are said, with their number and first date", async () => {
  const rows = {
    atMs: Float64Array.of(2_000, 2_000, 1_000, 1_000, 1_000, 9_000, 9_000),
    values: Float64Array.of(1, 2, 3, 4, 5, 6, 7),
    versions: [null, PARTS.defaultVersion, null, "A", "A", null, null],
    tags: null,
  };
  const notesOf = async (isVersioned: boolean) =>
    (await outputsOf(rows, { ...PARTS, isVersioned, keepsLater: false })).notes;
  expect(await notesOf(true)).toEqual([
    `2 rows have the same date and version as a row before, first at ${FIRST}: of such rows only the last one stays`,
  ]);
  expect(await notesOf(false)).toEqual([
    `3 rows have the same date as a row before, first at ${FIRST}: of such rows only the last one stays`,
  ]);
});
