import { expect, test } from "vitest";
import { counted, noun } from "#core/text.ts";

test("numbers have the form of their noun", () => {
  expect([0, 1, 2].map((count) => counted(count, "target"))).toEqual(["0 targets", "1 target", "2 targets"]);
  expect([1, 7].map((count) => counted(count, "batch", "batches"))).toEqual(["1 batch", "7 batches"]);
  expect([1, 7].map((count) => noun(count, "was", "were"))).toEqual(["was", "were"]);
});
