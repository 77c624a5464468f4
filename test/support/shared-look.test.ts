import { expect, it } from "vitest";
import { shareLook } from "../../src/support/shared-look.ts";

it("is made once for callers at one time, and again for callers who take no older result", async () => {
  let count = 0;
  let nowMs = 0;
  const look = shareLook(
    async () => ++count,
    () => nowMs,
  );
  expect(await Promise.all([look.now(), look.within(1_000), look.now()])).toEqual([1, 1, 1]);
  nowMs = 999;
  expect(await look.within(1_000)).toBe(1);
  expect(await look.now()).toBe(2);
  nowMs = 1_999;
  expect(await Promise.all([look.within(1_000), look.within(1_000)])).toEqual([3, 3]);
});

it("is not made again at once when it failed", async () => {
  let count = 0;
  const fail = async () => {
    count += 1;
    throw new Error("the database is away");
  };
  const look = shareLook(fail, () => 0);
  for (let asked = 0; asked < 3; asked++) await expect(look.within(1_000)).rejects.toThrow("away");
  expect(count).toBe(1);
});
