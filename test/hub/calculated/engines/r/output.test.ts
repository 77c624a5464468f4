/** The bytes between the hub and R: a script's process can answer anything. */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { resultOf } from "../../../../../src/hub/calculated/engines/r/output.ts";
import { bytesOf, doubles, list, strings, valueOfBytes } from "../../../../../src/hub/calculated/engines/r/values.ts";
import { FrameReader, headOf } from "../../../../../src/hub/calculated/engines/r/webr-frames.ts";

const limits = { outputRows: 10 };
const series = (...columns: Parameters<typeof list>[0]) =>
  bytesOf(
    list([
      ["output", list([["series", list(columns)]])],
      ["notes", strings([])],
    ]),
  );

test("values come back as they went, with every character and NA", () => {
  const value = list([
    ["numbers", doubles([0.1, -0, 1e300])],
    ["texts", strings(["", 'ü😀\n"', null])],
    ["nothing", null],
    ["whole", { type: "integer", data: Int32Array.of(1, -1) }],
  ]);
  expect(valueOfBytes(bytesOf(value))).toEqual(value);
});

test("bytes that are no value fail the calculation, whatever they are", () => {
  const good = series(["Dates", doubles([1])], ["Values", doubles([2])]);
  expect(resultOf(good, limits)).toMatchObject({ kind: "computed", atMs: Float64Array.of(1_000) });
  const words = "the script's R gave no result that can be read";
  for (let size = 0; size < good.length; size += 1)
    expect(resultOf(good.subarray(0, size), limits)).toEqual({ kind: "failed", message: words });
  expect(resultOf(Buffer.concat([good, Buffer.of(0)]), limits)).toEqual({ kind: "failed", message: words });
  // A length of 2^31 - 1 that is not there.
  expect(resultOf(Buffer.of(1, 255, 255, 255, 127), limits)).toEqual({ kind: "failed", message: words });
  for (let round = 0; round < 200; round += 1)
    expect(resultOf(randomBytes(1 + (round % 40)), limits).kind).toBe("failed");
});

test("a version stays the text that it is, and an empty one takes the default", () => {
  const columns = [
    ["Dates", doubles([1, 2, 3])],
    ["Values", doubles([1, Number.NaN, 3])],
    ["Version", strings(["1.10", "2", ""])],
  ] as const;
  expect(resultOf(series(...columns), limits)).toMatchObject({
    values: Float64Array.of(1, 3),
    versions: ["1.10", null],
    warnings: ["1 of 3 rows have no value (NA, NaN or infinite) and are left out"],
  });
});

test("a frame arrives in parts, and no longer than it may be", () => {
  const reader = new FrameReader(4);
  const whole = Buffer.concat([headOf(1, Buffer.alloc(3)), Buffer.from("abc")]);
  for (const byte of whole.subarray(0, -1)) expect(reader.next(Buffer.of(byte))).toBe(null);
  expect(reader.next(whole.subarray(-1))).toEqual({ kind: 1, body: Buffer.from("abc") });
  expect(() => reader.next(headOf(1, Buffer.alloc(5)))).toThrow("too long");
});
