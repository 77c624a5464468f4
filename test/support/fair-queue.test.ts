import { expect, test } from "vitest";
import { FairQueue } from "#core/turns.ts";

/** Tasks that end when they are told, and the order in which they began. */
function tasks(queue: FairQueue<string>) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<void>>();
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  return {
    begun,
    add(caller: string, name: string): Promise<void> {
      const end = Promise.withResolvers<void>();
      ends.set(name, end);
      return queue.run(caller, () => {
        begun.push(name);
        return end.promise;
      });
    },
    async end(name: string): Promise<void> {
      ends.get(name)?.resolve();
      await settle();
    },
  };
}

test("one of another caller is served after at most one of a thousand that came before", async () => {
  const { begun, add, end } = tasks(new FairQueue(1));
  const all = Array.from({ length: 1_000 }, (_, nth) => add("A", `a${nth}`));
  all.push(add("B", "b0"), add("B", "b1"));
  for (const name of ["a0", "a1", "b0", "a2", "b1"]) await end(name);
  expect(begun.slice(0, 6)).toEqual(["a0", "a1", "b0", "a2", "b1", "a3"]);
  for (let nth = 3; nth < 1_000; nth += 1) await end(`a${nth}`);
  await Promise.all(all);
  expect(begun).toHaveLength(1_002);
});

test("a caller with tasks that hang leaves the places of the others free", async () => {
  const { begun, add, end } = tasks(new FairQueue(2, { ofOne: 1 }));
  const all = [add("A", "a0"), add("A", "a1"), add("A", "a2"), add("B", "b0"), add("B", "b1")];
  expect(begun).toEqual(["a0", "b0"]);
  await end("b0");
  expect(begun).toEqual(["a0", "b0", "b1"]);
  for (const name of ["b1", "a0", "a1", "a2"]) await end(name);
  await Promise.all(all);
  expect(begun).toEqual(["a0", "b0", "b1", "a1", "a2"]);
});

test("a task that fails gives its place on, and a full queue says so", async () => {
  const queue = new FairQueue<string>(1, { waitingMax: 1 });
  const failing = queue.run("A", () => Promise.reject(new Error("no")));
  expect(queue.isFull).toBe(false);
  const next = queue.run("A", async () => "done");
  expect(queue.isFull).toBe(true);
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("done");
  expect(queue.isFull).toBe(false);
});

test("a caller without a task has a spare place while another has all others, and no more alone", async () => {
  const { begun, add, end } = tasks(new FairQueue(2, { spare: 1 }));
  const all = [add("A", "a0"), add("A", "a1"), add("A", "a2")];
  expect(begun).toEqual(["a0", "a1"]);
  all.push(add("B", "b0"), add("B", "b1"), add("C", "c0"));
  expect(begun).toEqual(["a0", "a1", "b0"]);
  for (const name of ["b0", "b1", "c0", "a0", "a1", "a2"]) await end(name);
  await Promise.all(all);
  expect(begun).toEqual(["a0", "a1", "b0", "b1", "c0", "a2"]);
});

test("a task that is given up before its turn does not begin, and delays no other", async () => {
  const queue = new FairQueue<string>(1);
  const end = Promise.withResolvers<void>();
  const first = queue.run("A", () => end.promise);
  const stop = new AbortController();
  const begun: string[] = [];
  const given = queue.run("A", async () => begun.push("given up"), stop.signal);
  const next = queue.run("A", async () => begun.push("next"), new AbortController().signal);
  stop.abort(new Error("gone"));
  await expect(given).rejects.toThrow("gone");
  await expect(queue.run("B", async () => begun.push("late"), stop.signal)).rejects.toThrow("gone");
  end.resolve();
  await Promise.all([first, next]);
  expect(begun).toEqual(["next"]);
  expect(queue.isIdle).toBe(true);
});
