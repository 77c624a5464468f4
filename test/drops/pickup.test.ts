import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { Oldest } from "#gateway/drops/order-waits.ts";
import { Pickup } from "#gateway/drops/pickup.ts";
import { inPickupOrder } from "#gateway/drops/pickup-order.ts";
import type { FileEntry } from "#gateway/model.ts";
import { type Field, never, openLocal, type Settings } from "./field.ts";
import { MemoryJournal } from "./memory-journal.ts";

let field: Field;
let journal: MemoryJournal;
let nowMs: number;
let claimed: string[];
let triggers: RegExp;
const clock: Clock = { ...systemClock, monotonicMs: () => nowMs };

beforeEach(async () => {
  field = await openLocal();
  journal = new MemoryJournal();
  nowMs = 0;
  claimed = [];
  triggers = /\.csv$/;
});
afterEach(() => field.close());

function pickup(settings: Settings = {}, agesKept?: number): Pickup {
  // Quicker than the default, so that two polls settle a file.
  const settle = { observations: 2, interval: "2s", ...(settings["settle"] as Settings | undefined) };
  const options = dropOptions.parse({ kind: "local", name: "field", path: field.root, ...settings, settle });
  return new Pickup({
    drop: field.drop,
    options,
    ...(agesKept === undefined ? {} : { agesKept }),
    journal,
    clock,
    claim: async (arrivals) => {
      for (const { id, path } of arrivals) {
        claimed.push(path);
        await journal.advanceArrival(id, triggers.test(path) ? "matched" : "unmatched", "");
      }
    },
  });
}

async function poll(of: Pickup, afterMs = 2000) {
  nowMs += afterMs;
  return of.poll(never);
}

describe("pickup", () => {
  test("passes on a file once, when it has settled", async () => {
    await field.write("a.csv", "content");
    const picking = pickup();
    expect(await poll(picking)).toMatchObject({ listed: 1, settling: 1, claimed: 0 });
    expect(await poll(picking)).toMatchObject({ listed: 1, settling: 0, claimed: 1 });
    expect(await poll(picking)).toMatchObject({ listed: 1, settling: 0, claimed: 0 });
    expect(claimed).toEqual(["a.csv"]);
  });

  test("does not pick up a file that grows, and reports why and how long it waits", async () => {
    const picking = pickup();
    for (let at = 1; at <= 4; at += 1) {
      await field.write("a.csv", "x".repeat(at));
      expect(await poll(picking)).toMatchObject({ settling: 1, claimed: 0 });
    }
    expect(picking.waiting()).toEqual([
      {
        path: "a.csv",
        reason: "size or time still changing: 1 of 2 equal observations",
        waitingMs: 6000,
        since: "now",
        overdue: false,
      },
    ]);
    expect(await poll(picking)).toMatchObject({ claimed: 1 });
    expect(picking.waiting()).toEqual([]);
  });

  test("does not pick up a file after two quick observations, however long the other files are listed", async () => {
    await field.write("a.csv", "content");
    const list = field.drop.list.bind(field.drop);
    field.drop.list = async function* (signal) {
      yield* list(signal);
      nowMs += 60_000;
    };
    const picking = pickup();
    await poll(picking);
    expect(await poll(picking, 100)).toMatchObject({ settling: 1, claimed: 0 });
    expect(await poll(picking)).toMatchObject({ settling: 0, claimed: 1 });
  });

  test("picks up a file that was renamed from a temporary name, only under its final name", async () => {
    await field.write("a.csv.part", "content");
    const picking = pickup();
    for (let at = 0; at < 4; at += 1) expect(await poll(picking)).toMatchObject({ temporary: 1, claimed: 0 });
    expect(journal.known[0]?.reason).toContain("temporary name (*.part)");
    expect(journal.advances).toBe(1);
    await rename(join(field.root, "a.csv.part"), join(field.root, "a.csv"));
    // Nothing has gone after one listing alone.
    expect(await poll(picking)).toMatchObject({ temporary: 0, settling: 1, gone: 0, missing: 1 });
    expect(await poll(picking)).toMatchObject({ gone: 1, missing: 0 });
    expect(claimed).toEqual(["a.csv"]);
  });

  test("treats new content under an old name as a new arrival", async () => {
    const picking = pickup({ settle: { observations: 1, interval: "0s" } });
    await field.write("a.csv", "one");
    await poll(picking);
    await field.write("a.csv", "another");
    await poll(picking);
    expect(claimed).toEqual(["a.csv", "a.csv"]);
    expect(journal.known.map((arrival) => arrival.size)).toEqual([3, 7]);
  });

  test("picks up the oldest first, up to the limit of one poll, and the others next", async () => {
    const picking = pickup({ perPollMax: 2 });
    const names = ["c.csv", "b.csv", "e.csv", "a.csv", "d.csv"];
    for (const name of names) {
      await field.write(name, "content");
      await picking.poll(never);
    }
    expect(await poll(picking)).toMatchObject({ claimed: 2, left: 3 });
    expect(await poll(picking)).toMatchObject({ claimed: 2, left: 1 });
    expect(await poll(picking)).toMatchObject({ claimed: 1, left: 0 });
    expect(claimed).toEqual(names);
  });

  test("picks up the others without a new listing on request, oldest first, each once", async () => {
    const picking = pickup({ perPollMax: 2 });
    const names = Array.from({ length: 5 }, (_, at) => `${at}.csv`);
    for (const name of names.toReversed()) {
      await field.write(name, "content", new Date(Date.UTC(2026, 0, 1) + 1000 * Number.parseInt(name, 10)));
      await picking.poll(never);
    }
    await poll(picking);
    await field.write("later.csv", "content", new Date(0));
    await field.write("half.csv", "con", new Date(0));
    expect(await picking.takeLeft(never)).toMatchObject({ listed: 5, claimed: 2, left: 1 });
    expect(await picking.takeLeft(never)).toMatchObject({ listed: 5, claimed: 1, left: 0 });
    expect(await picking.takeLeft(never)).toMatchObject({ listed: 5, claimed: 0, left: 0 });
    expect(claimed).toEqual(names);
    expect(await poll(picking)).toMatchObject({ listed: 7, settling: 2, claimed: 0 });
    expect(await picking.takeLeft(never)).toMatchObject({ claimed: 0 });
  });

  test("reads the remaining files again beyond its limit, and continues after a failed claim", async () => {
    const picking = pickup({ perPollMax: 2 }, 3);
    const names = Array.from({ length: 11 }, (_, at) => `${String(at).padStart(2, "0")}.csv`);
    for (const name of names) await field.write(name, "content", new Date(Date.UTC(2026, 0, 1)));
    await picking.poll(never);
    let { left } = await poll(picking);
    expect(left).toBe(9);
    const advance = journal.advanceArrival.bind(journal);
    journal.advanceArrival = () => Promise.reject(new Error("the disk is full"));
    expect(await picking.takeLeft(never)).toMatchObject({ claimed: 0, error: expect.any(Error) });
    journal.advanceArrival = advance;
    claimed.pop();
    const lefts: number[] = [];
    while (left > 0) {
      ({ left } = await picking.takeLeft(never));
      lefts.push(left);
    }
    expect(claimed).toEqual(names);
    expect(lefts.at(-1)).toBe(0);
    expect(await picking.takeLeft(never)).toMatchObject({ claimed: 0, left: 0 });
  });

  test("picks up only the version that settled, and no missing file", async () => {
    const picking = pickup({ perPollMax: 1 });
    for (const name of ["a.csv", "b.csv", "c.csv"]) await field.write(name, "content");
    await poll(picking);
    expect(await poll(picking)).toMatchObject({ claimed: 1, left: 2 });
    await field.write("b.csv", "more content");
    await rm(join(field.root, "c.csv"));
    expect(await poll(picking)).toMatchObject({ claimed: 0, settling: 1, missing: 1, left: 0 });
    expect(await picking.takeLeft(never)).toMatchObject({ claimed: 0 });
    expect(claimed).toEqual(["a.csv"]);
  });

  test("offers unmatched files again only on request", async () => {
    const picking = pickup({ settle: { observations: 1, interval: "0s" } });
    await field.write("a.txt", "content");
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["a.txt"]);
    for (let at = 0; at < 1001; at += 1) await field.write(`${at}.dat`, "content");
    await poll(picking);
    triggers = /\.txt$/;
    expect(await picking.rematch(never)).toBe(1002);
    expect(claimed).toHaveLength(2 * 1002);
    triggers = /\.dat$/;
    expect(await picking.rematch(never)).toBe(1001);
    expect(await picking.rematch(never)).toBe(0);
  });

  test("treats no file as gone when the listing breaks off, and continues when it is complete again", async () => {
    await field.write("a.csv", "content");
    const picking = pickup();
    await poll(picking);
    await rename(field.root, join(field.outside, "elsewhere"));
    expect(await poll(picking)).toMatchObject({ gone: 0, error: { code: "HG-DROP-002" } });
    expect(journal.known[0]?.goneAt).toBeNull();
    await rename(join(field.outside, "elsewhere"), field.root);
    expect(await poll(picking)).toMatchObject({ claimed: 1 });
  });

  test("records that a file left, and a later file of the same size and time as new", async () => {
    const time = new Date("2026-03-01T00:15:00Z");
    const picking = pickup({ settle: { observations: 1, interval: "0s" } });
    for (let at = 0; at < 2; at += 1) {
      await field.write("a.csv", "content", time);
      await poll(picking);
      await rm(join(field.root, "a.csv"));
      expect(await poll(picking)).toMatchObject({ listed: 0, gone: 0, missing: 1 });
      expect(await poll(picking)).toMatchObject({ listed: 0, gone: 1, missing: 0 });
    }
    expect(claimed).toEqual(["a.csv", "a.csv"]);
  });

  test("offers a file again when the claim failed, and reports why", async () => {
    await field.write("a.csv", "content");
    let broken = true;
    const picking = new Pickup({
      drop: field.drop,
      options: dropOptions.parse({
        kind: "local",
        name: "field",
        path: field.root,
        settle: { observations: 1 },
      }),
      journal,
      clock,
      claim: async (arrivals) => {
        if (broken) throw new Error("the ledger is busy");
        for (const { id } of arrivals) await journal.advanceArrival(id, "matched", "");
      },
    });
    expect(await poll(picking)).toMatchObject({ claimed: 0, error: new Error("the ledger is busy") });
    broken = false;
    expect(await poll(picking)).toMatchObject({ claimed: 1 });
  });

  test("records nothing more after it is stopped, however much was listed by then", async () => {
    const stop = new AbortController();
    const list = field.drop.list.bind(field.drop);
    field.drop.list = async function* (signal) {
      yield* list(signal);
      stop.abort(new Error("no longer polled"));
    };
    for (const name of ["a.csv", "b.csv"]) await field.write(name, "content");
    expect(await pickup().poll(stop.signal)).toMatchObject({ error: { message: "no longer polled" } });
    expect(journal.known).toEqual([]);
  });

  test("holds no file for missing when it is stopped and the listing ends without an error", async () => {
    await field.write("a.csv", "content");
    const picking = pickup();
    await poll(picking);
    const stop = new AbortController();
    const list = field.drop.list.bind(field.drop);
    // biome-ignore lint/correctness/useYield: it ends before its first entry.
    field.drop.list = async function* () {
      stop.abort(new Error("no longer polled"));
    };
    expect(await picking.poll(stop.signal)).toMatchObject({ missing: 0, error: { message: "no longer polled" } });
    field.drop.list = list;
    await rm(join(field.root, "a.csv"));
    expect(await poll(picking)).toMatchObject({ gone: 0, missing: 1 });
  });

  test("records large listings in parts", async () => {
    await Promise.all(Array.from({ length: 1100 }, (_, at) => field.write(`${at}.csv`, "x")));
    expect(await poll(pickup())).toMatchObject({ listed: 1100, settling: 1100 });
    expect(journal.chunkMax).toBe(200);
  });

  test("does not pick up a file before its done-file, and skips the done-files", async () => {
    const picking = pickup({ settle: { observations: 1, interval: "0s", doneFile: "{name}.done" } });
    await field.write("in/a.csv", "content");
    for (let at = 0; at < 3; at += 1) expect(await poll(picking)).toMatchObject({ temporary: 1, claimed: 0 });
    expect(picking.waiting()[0]?.reason).toBe("waits for its done-file in/a.csv.done");
    expect(journal.known[0]?.reason).toBe("waits for its done-file in/a.csv.done");
    await field.write("a.csv.done", "of another folder");
    expect(await poll(picking)).toMatchObject({ claimed: 0, skipped: 1 });
    await field.write("in/a.csv.done", "");
    expect(await poll(picking)).toMatchObject({ claimed: 1, skipped: 1 });
    expect(claimed).toEqual(["in/a.csv"]);
    expect(journal.known.map(({ path, state }) => [path, state])).toEqual([
      ["in/a.csv", "matched"],
      ["a.csv.done", "skipped"],
      ["in/a.csv.done", "skipped"],
    ]);
  });

  test("does not pick up a file that still grows beside an old done-file", async () => {
    const picking = pickup({ settle: { doneFile: "{stem}.ok" } });
    await field.write("a.ok", "");
    await field.write("a.csv", "one");
    await poll(picking);
    await field.write("a.csv", "one and two");
    expect(await poll(picking)).toMatchObject({ claimed: 0, settling: 1 });
    expect(await poll(picking)).toMatchObject({ claimed: 1 });
  });

  test("reports once a file that does not settle within the limit", async () => {
    const told: string[] = [];
    const options = dropOptions.parse({
      kind: "local",
      name: "field",
      path: field.root,
      settle: { limit: "5s" },
    });
    const claim = async () => expect.unreachable();
    const picking = new Pickup({
      drop: field.drop,
      options,
      journal,
      clock,
      claim,
      onOverdue: (file) => told.push(file.path),
    });
    for (let at = 1; at <= 3; at += 1) {
      await field.write("a.csv", "x".repeat(at));
      expect(await poll(picking)).toMatchObject({ settling: 1, overdue: 0 });
    }
    for (let at = 4; at <= 6; at += 1) {
      await field.write("a.csv", "x".repeat(at));
      expect(await poll(picking)).toMatchObject({ settling: 1, overdue: 1 });
    }
    expect(told).toEqual(["a.csv"]);
    expect(picking.waiting()[0]).toMatchObject({
      overdue: true,
      reason: expect.stringContaining("for a long time"),
    });
  });

  describe("at first contact", () => {
    const old = new Date("2026-01-01T00:00:00Z");
    const young = new Date("2026-02-01T00:00:00Z");

    test.for([
      ["process", ["old.csv", "young.csv"]],
      ["skip", []],
      [{ since: "2026-01-15" }, ["young.csv"]],
      [{ since: "2026-02-01T01:00:00+01:00" }, ["young.csv"]],
    ] as const)("processes by %j the existing files: %j", async ([initial, taken]) => {
      await field.write("old.csv", "content", old);
      await field.write("young.csv", "content", young);
      const picking = pickup({ initial, settle: { observations: 1 } });
      expect(await poll(picking)).toMatchObject({ claimed: taken.length, skipped: 2 - taken.length });
      expect(claimed.toSorted()).toEqual(taken);
      for (const { path, state, reason } of journal.known)
        if (!(taken as readonly string[]).includes(path))
          expect([state, reason]).toEqual(["skipped", expect.stringContaining("first contact")]);
    });

    test("skips no file that comes later, and picks up a skipped one that changes", async () => {
      await field.write("old.csv", "content", old);
      const picking = pickup({ initial: "skip", settle: { observations: 1 } });
      await poll(picking);
      await field.write("later.csv", "content", old);
      await field.write("old.csv", "changed", young);
      await poll(picking);
      expect(claimed.toSorted()).toEqual(["later.csv", "old.csv"]);
    });

    test("lasts until a listing was complete", async () => {
      await field.write("old.csv", "content", old);
      const picking = pickup({ initial: "skip", settle: { observations: 1 } });
      await rename(field.root, join(field.outside, "elsewhere"));
      expect(await poll(picking)).toMatchObject({ error: { code: "HG-DROP-002" } });
      await rename(join(field.outside, "elsewhere"), field.root);
      expect(await poll(picking)).toMatchObject({ claimed: 0, skipped: 1 });
    });
  });
});

describe("a listing in the order of pickup", () => {
  const entries = ["c 3", "a 1", "d 10", "b 2"].map((words): FileEntry => {
    const [path = "", mtime = ""] = words.split(" ");
    return { path: `${path}.csv`, size: 1, mtime: mtime.padStart(2, "0") };
  });
  async function* listed(fault?: Error): AsyncGenerator<readonly FileEntry[]> {
    yield entries.slice(0, 3);
    yield entries.slice(3);
    if (fault !== undefined) throw fault;
  }
  const inOrder = ["a.csv", "b.csv", "c.csv", "d.csv"];

  test("comes in groups, oldest first or by name", async () => {
    const groups = await Array.fromAsync(inPickupOrder(listed(), 3, clock), ({ entries }) => entries);
    expect(groups.map(({ length }) => length)).toEqual([3, 1]);
    expect(groups.flat().map(({ path }) => path)).toEqual(inOrder);
    expect(groups.flat()).toEqual(entries.toSorted((one, other) => (one.path < other.path ? -1 : 1)));
    const byName = await Array.fromAsync(inPickupOrder(listed(), 9, clock, "name"));
    expect(byName.flatMap((group) => group.entries).map(({ path }) => path)).toEqual(inOrder);
  });

  test("returns the listed files before it throws the fault", async () => {
    const seen: string[] = [];
    const looking = (async () => {
      for await (const group of inPickupOrder(listed(new Error("the folder has gone")), 2, clock))
        seen.push(...group.entries.map(({ path }) => path));
    })();
    await expect(looking).rejects.toThrow("the folder has gone");
    expect(seen).toEqual(inOrder);
  });
});

test("sorts files by name where the drop is configured so, numbers by their value", () => {
  const oldest = new Oldest(3, "name");
  const paths = ["2019-10.csv", "2019-9.csv", "b/1.csv", "2018-12.csv"];
  for (const [index, path] of paths.entries()) oldest.add({ id: index, path, mtime: String(9 - index) });
  expect([oldest.take().map(({ path }) => path), oldest.beyond]).toEqual([
    ["2018-12.csv", "2019-9.csv", "2019-10.csv"],
    1,
  ]);
});
