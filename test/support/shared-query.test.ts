import { expect, it } from "vitest";
import { shareQuery } from "#core/shared-query.ts";

it("is made once for concurrent callers, and again for callers that need a newer result", async () => {
  let count = 0;
  let nowMs = 0;
  const query = shareQuery(
    async () => ++count,
    () => nowMs,
  );
  expect(await Promise.all([query.now(), query.within(1_000), query.now()])).toEqual([1, 1, 1]);
  nowMs = 999;
  expect(await query.within(1_000)).toBe(1);
  expect(await query.now()).toBe(2);
  nowMs = 1_999;
  expect(await Promise.all([query.within(1_000), query.within(1_000)])).toEqual([3, 3]);
});

it("is made again for a caller that came while it was running", async () => {
  let count = 0;
  const query = shareQuery(async () => ++count);
  expect(await Promise.all([query.next(), query.next(), query.next(), query.now()])).toEqual([1, 2, 2, 1]);
  expect(await query.next()).toBe(3);
});

it("is not repeated at once when it failed", async () => {
  let count = 0;
  const fail = async () => {
    count += 1;
    throw new Error("the database is away");
  };
  const query = shareQuery(fail, () => 0);
  for (let asked = 0; asked < 3; asked++) await expect(query.within(1_000)).rejects.toThrow("away");
  expect(count).toBe(1);
});
