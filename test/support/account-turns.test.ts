/** Accounts take turns, whatever one of them has waiting. */
import { expect, test } from "vitest";
import { AccountTurns } from "../../src/support/threads/account-turns.ts";

test("the first work of an account is not behind the queue of another, which has one place at most", async () => {
  const turns = new AccountTurns(2);
  const order: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) => () =>
    new Promise<void>((end) => {
      order.push(name);
      ends.push(end);
    });
  const all = [1, 2, 3].map((number) => turns.run(1, work(`one ${number}`)));
  all.push(turns.run(2, work("two 1")), turns.run(2, work("two 2")), turns.run(3, work("three 1")));
  const step = () => new Promise(setImmediate);
  await step();
  expect(order).toEqual(["one 1", "two 1"]);
  for (const expected of ["three 1", "one 2", "two 2", "one 3"]) {
    ends.shift()?.();
    await step();
    expect(order.at(-1)).toBe(expected);
  }
  while (ends.length > 0) ends.shift()?.();
  await Promise.all(all);
});

test("a failure frees the place", async () => {
  const turns = new AccountTurns(1);
  await expect(turns.run(1, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await turns.run(2, async () => "done")).toBe("done");
});
