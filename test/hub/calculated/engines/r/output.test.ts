/** The bytes between the hub and R: a script's process can answer anything. */
import { randomBytes } from "node:crypto";
import { expect, test, vi } from "vitest";
import { givenValue, resultOf, SLICE_ROWS } from "#hub/calculated/engines/r/output.ts";
import { bytesOf, doubles, list, strings } from "#hub/calculated/engines/r/values.ts";
import { FrameReader, headOf } from "#hub/calculated/engines/r/webr-frames.ts";

const limits = { outputRows: 10 };
const series = (...columns: Parameters<typeof list>[0]) =>
  bytesOf(
    list([
      ["output", list([["series", list(columns)]])],
      ["notes", strings([])],
    ]),
  );

test("values come back as they went, with every character and NA", () => {
  const texts = ["", 'ü😀\n"', null];
  const value = givenValue(
    bytesOf(
      list([
        ["numbers", doubles([0.1, -0, 1e300])],
        ["texts", strings(texts)],
        ["nothing", null],
        ["whole", { type: "integer", data: Int32Array.of(1, -1) }],
      ]),
    ),
  );
  if (value?.type !== "list") throw new Error("no list came back");
  const { texts: given, ...others } = Object.fromEntries(value.items);
  expect(others).toEqual({
    numbers: { type: "double", data: Float64Array.of(0.1, -0, 1e300) },
    nothing: null,
    whole: { type: "integer", data: Int32Array.of(1, -1) },
  });
  expect(given?.type === "character" ? [...given.texts] : given).toEqual(texts);
});

test("bytes that are no value fail the calculation, whatever they are", async () => {
  const good = series(["Dates", doubles([1])], ["Values", doubles([2])]);
  expect(await resultOf(good, limits)).toMatchObject({ kind: "computed", atMs: Float64Array.of(1_000) });
  const words = "the script's R gave no result that can be read";
  for (let size = 0; size < good.length; size += 1)
    expect(await resultOf(good.subarray(0, size), limits)).toEqual({ kind: "failed", message: words });
  expect(await resultOf(Buffer.concat([good, Buffer.of(0)]), limits)).toEqual({ kind: "failed", message: words });
  // A length of 2^31 - 1 that is not there.
  expect(await resultOf(Buffer.of(1, 255, 255, 255, 127), limits)).toEqual({ kind: "failed", message: words });
  for (let round = 0; round < 200; round += 1)
    expect(await resultOf(randomBytes(1 + (round % 40)), limits)).toMatchObject({ kind: "failed" });
});

test("a version stays the text that it is, and an empty one takes the default", async () => {
  const columns = [
    ["Dates", doubles([1, 2, 3])],
    ["Values", doubles([1, Number.NaN, 3])],
    ["Version", strings(["1.10", "2", ""])],
  ] as const;
  expect(await resultOf(series(...columns), limits)).toMatchObject({
    values: Float64Array.of(1, 3),
    versions: ["1.10", null],
    warnings: ["1 of 3 rows have no value (NA, NaN or infinite) and are left out"],
  });
});

test("lists that the prelude never writes are refused before anything is made of them", async () => {
  const words = "the script's R gave no result that can be read";
  const empty = list([]);
  const many = list(Array.from({ length: 9 }, (_, nth) => [`item${nth}`, empty]));
  expect(await resultOf(bytesOf(many), limits)).toEqual({ kind: "failed", message: words });
  const eight = (of: ReturnType<typeof list>) => list(Array.from({ length: 8 }, (_, nth) => [`item${nth}`, of]));
  expect(await resultOf(bytesOf(eight(eight(empty))), limits)).toEqual({ kind: "failed", message: words });
});

test("columns that are too long or do not fit, and reports beyond the first hundred, are not read", async () => {
  const many = strings(Array.from({ length: 5_000 }, () => "text"));
  const long = series(["Dates", doubles([1])], ["Values", doubles([2])], ["Version", many], ["Tags", many]);
  const output = list([
    ["reports", many],
    ["series", list([])],
  ]);
  const decode = vi.spyOn(Buffer.prototype, "toString");
  expect(await resultOf(long, limits)).toMatchObject({ message: expect.stringContaining("5000 and 1") });
  expect(decode.mock.calls.length).toBeLessThan(20);
  const reported = await resultOf(bytesOf(list([["output", output]])), limits);
  expect(reported).toMatchObject({ message: "TimeSeries has no column Dates" });
  expect(decode.mock.calls.length).toBeLessThan(200);
  decode.mockRestore();
});

test("reports and errors are cut, however long they are", async () => {
  const output = list([
    ["reports", strings(["é".repeat(100_000)])],
    [
      "series",
      list([
        ["Dates", doubles([1])],
        ["Values", doubles([2])],
      ]),
    ],
  ]);
  const bytes = bytesOf(list([["output", output]]));
  expect(await resultOf(bytes, limits)).toMatchObject({ errors: [`${"é".repeat(2_000)}…`] });
});

test("tags of a cell that is too long are dropped with a warning", async () => {
  const cell = `{"a":"${"x".repeat(10_000)}"}`;
  const columns = [
    ["Dates", doubles([1, 2])],
    ["Values", doubles([1, 2])],
    ["Tags", strings([cell, '{"a":"b"}'])],
  ] as const;
  expect(await resultOf(series(...columns), limits)).toMatchObject({
    tags: [null, { a: "b" }],
    warnings: [expect.stringContaining("Tags of row 1 are no JSON object with texts, or longer than 10000 characters")],
  });
});

test("the thread serves others while many rows are read", async () => {
  const count = 20 * SLICE_ROWS;
  const rows = Array.from({ length: count }, (_, row) => row);
  const bytes = series(
    ["Dates", doubles(rows)],
    ["Values", doubles(rows)],
    ["Tags", strings(rows.map((row) => `{"row":"${row}"}`))],
  );
  let turns = 0;
  let isOver = false;
  const serve = () => {
    turns += 1;
    if (!isOver) setImmediate(serve);
  };
  setImmediate(serve);
  const result = await resultOf(bytes, { outputRows: count });
  isOver = true;
  expect(result).toMatchObject({ kind: "computed", warnings: [] });
  expect(turns).toBeGreaterThanOrEqual(20);
});

test("a frame arrives in parts, and no longer than it may be", () => {
  const reader = new FrameReader(4);
  const whole = Buffer.concat([headOf(1, Buffer.alloc(3)), Buffer.from("abc")]);
  for (const byte of whole.subarray(0, -1)) expect(reader.next(Buffer.of(byte))).toBe(null);
  expect(reader.next(whole.subarray(-1))).toEqual({ kind: 1, body: Buffer.from("abc") });
  expect(() => reader.next(headOf(1, Buffer.alloc(5)))).toThrow("too long");
});
