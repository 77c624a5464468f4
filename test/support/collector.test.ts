import { describe, expect, it } from "vitest";
import { Collector } from "#core/collector.ts";
import { settleEach } from "#core/promises.ts";

/** A collector that notes its lists, and refuses what is negative. */
function noted(max: number, pauseMs?: () => number) {
  const lists: (readonly number[])[] = [];
  const collector = new Collector<number, string>(
    async (list) => {
      lists.push(list);
      if (list.includes(0)) throw new Error("the disk is full");
      return await settleEach(list, async (item) => {
        if (item < 0) throw new Error(`${item} is refused`);
        return String(item);
      });
    },
    max,
    pauseMs,
  );
  return { lists, collector };
}

describe("a collector", () => {
  it("has what comes in one turn performed as lists of the permitted length, in order", async () => {
    const { lists, collector } = noted(2);
    const added = [1, 2, 3].map((item) => collector.add(item));
    expect(lists).toEqual([]);
    expect(await Promise.all(added)).toEqual(["1", "2", "3"]);
    expect(lists).toEqual([[1, 2], [3]]);
  });

  it("performs one list at a time, and what comes meanwhile as the next", async () => {
    const ends: (() => void)[] = [];
    const lists: (readonly number[])[] = [];
    const collector = new Collector<number, number>(async (list) => {
      lists.push(list);
      await new Promise<void>((resolve) => ends.push(resolve));
      return await settleEach(list, async (item) => item);
    }, 10);
    const first = collector.add(1);
    await expect.poll(() => lists.length).toBe(1);
    const others = [collector.add(2), collector.add(3)];
    await new Promise((resolve) => setImmediate(resolve));
    expect(lists).toEqual([[1]]);
    ends[0]?.();
    expect(await first).toBe(1);
    await expect.poll(() => ends.length).toBe(2);
    ends[1]?.();
    expect(await Promise.all(others)).toEqual([2, 3]);
    expect(lists).toEqual([[1], [2, 3]]);
  });

  it("reports a fault of one item to it alone", async () => {
    const { collector } = noted(10);
    const done = await Promise.allSettled([1, -2, 3].map((item) => collector.add(item)));
    expect(done.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(done[1]).toMatchObject({ reason: { message: "-2 is refused" } });
  });

  it("reports a fault of the whole list to each item, and performs later lists", async () => {
    const { collector } = noted(2);
    const done = await Promise.allSettled([0, 1, 2].map((item) => collector.add(item)));
    expect(done.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    expect(done[1]).toMatchObject({ reason: { message: "the disk is full" } });
  });

  it("refuses an item that has no answer", async () => {
    const collector = new Collector<number, number>(async () => [{ status: "fulfilled", value: 1 }], 10);
    const done = await Promise.allSettled([collector.add(1), collector.add(2)]);
    expect(done.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  it("pauses before a list that others may still join, and not before a full one", async () => {
    const pausesMs = [0, 1];
    const { lists, collector } = noted(2, () => pausesMs.shift() ?? 2 ** 30);
    await Promise.all([1, 2, 3, 4, 5].map((item) => collector.add(item)));
    expect(lists).toEqual([[1, 2], [3, 4], [5]]);
    expect(pausesMs).toEqual([]);
  });

  it("is idle once nothing waits, also what was added meanwhile", async () => {
    const { lists, collector } = noted(1, () => 1);
    const first = collector.add(1).then(() => collector.add(2));
    await collector.idle();
    expect(lists).toEqual([[1], [2]]);
    expect(await first).toBe("2");
    await collector.idle();
  });
});
