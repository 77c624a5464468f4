import { readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { Watcher } from "#gateway/drops/watcher.ts";
import { type Field, openLocal, type Settings } from "./field.ts";
import { MemoryJournal } from "./memory-journal.ts";

let field: Field;
let journal: MemoryJournal;
let claimed: string[];
const watchers: Watcher[] = [];

beforeEach(async () => {
  field = await openLocal();
  journal = new MemoryJournal();
  claimed = [];
});
afterEach(async () => {
  for (const watcher of watchers.splice(0)) await watcher.stop();
  await field.close();
});

function watch(settings: Settings = {}, drop: Drop = field.drop, clock = systemClock): Watcher {
  const watcher = new Watcher({
    drop,
    options: dropOptions.parse({ kind: "local", name: "field", path: field.root, ...settings }),
    journal,
    clock,
    log: silentLog,
    claim: async (arrivals) => {
      for (const { id, path } of arrivals) {
        claimed.push(path);
        await journal.advanceArrival(id, "matched", "");
      }
    },
  });
  watchers.push(watcher);
  watcher.start();
  return watcher;
}

test("offers a file that no trigger claimed to changed triggers, unless the drop offers it once", async () => {
  await field.write("a.csv", "x");
  const settings = { settle: { observations: 1, interval: "0s" } };
  const offered: string[] = [];
  const left = async (drop: Drop) => {
    const watcher = new Watcher({
      ...{ drop, journal, clock: systemClock, log: silentLog },
      options: dropOptions.parse({ kind: "local", name: "field", path: field.root, ...settings }),
      claim: async (arrivals) => {
        for (const { id, path } of arrivals) {
          offered.push(path);
          await journal.advanceArrival(id, "unmatched", "no trigger");
        }
      },
    });
    watchers.push(watcher);
    return watcher;
  };
  const again = await left(deaf());
  again.start();
  await expect.poll(() => offered).toEqual(["a.csv"]);
  expect(await again.rematch()).toBe(1);
  const once = await left({ ...deaf(), offersOnce: true });
  expect(await once.rematch()).toBe(0);
  expect(offered).toEqual(["a.csv", "a.csv"]);
});

/** The same drop without events. */
function deaf(): Drop {
  const { drop } = field;
  return {
    name: drop.name,
    kind: drop.kind,
    list: (signal) => drop.list(signal),
    stat: (path, signal) => drop.stat(path, signal),
    fetch: (entries, to, signal) => drop.fetch(entries, to, signal),
    finish: (planned, signal) => drop.finish(planned, signal),
    modifiedMs: (entry) => drop.modifiedMs(entry),
    probe: (signal) => drop.probe(signal),
    close: () => drop.close(),
  };
}

describe("a watcher", () => {
  test("polls continuously, sooner while files settle", async () => {
    await field.write("a.csv", "content");
    const watcher = watch({ every: "1h", settle: { interval: "20ms" } }, deaf());
    await expect.poll(() => claimed).toEqual(["a.csv"]);
    await expect.poll(() => watcher.status().nextPollAt).not.toBeNull();
    expect(watcher.status()).toMatchObject({
      drop: "field",
      kind: "local",
      consecutiveFailures: 0,
      lastError: null,
      inProgress: false,
      settlingCount: 0,
    });
    expect(watcher.status().completePolls).toBeGreaterThanOrEqual(2);
  });

  test("does not poll sooner for temporary names", async () => {
    await field.write("a.csv.part", "content");
    const watcher = watch({ every: "1h", settle: { interval: "1ms" } }, deaf());
    await watcher.pollNow();
    expect(watcher.status()).toMatchObject({ settlingCount: 0, temporaryCount: 1 });
    const next = Temporal.Instant.from(watcher.status().nextPollAt ?? "");
    expect(next.since(Temporal.Now.instant()).total("minutes")).toBeGreaterThan(50);
    expect(watcher.status().waiting[0]?.reason).toContain("temporary name");
  });

  test("reports whether events arrive, and leaves no file of the test behind", async () => {
    const watcher = watch({ every: "1h" });
    await expect.poll(() => watcher.status().eventsArrive).toBe(true);
    await expect.poll(() => readdir(field.root)).toEqual([]);
    expect(watch({ every: "1h" }, deaf()).status().eventsArrive).toBeNull();
  });

  test.each([
    { arrive: true, minutes: 180 },
    { arrive: false, minutes: 60 },
  ])("polls a slow folder less often, where events arrive: $arrive", async ({ arrive, minutes }) => {
    let listingsMs = 0;
    const drop: Drop = {
      ...deaf(),
      list: (signal) => {
        listingsMs += 120_000;
        return field.drop.list(signal);
      },
      watch: () => async () => undefined,
      eventsArrive: () => arrive,
    };
    const watcher = watch({ every: "1h" }, drop, {
      now: () => systemClock.now(),
      sleep: (ms, signal) => systemClock.sleep(ms, signal),
      monotonicMs: () => systemClock.monotonicMs() + listingsMs,
    });
    await expect.poll(() => watcher.status().nextPollAt).not.toBeNull();
    const next = Temporal.Instant.from(watcher.status().nextPollAt ?? "");
    expect(Math.round(next.since(Temporal.Now.instant()).total("minutes"))).toBe(minutes);
  });

  test.each([
    { of: "files that it picked up", picksUp: true },
    { of: "known files", picksUp: false },
  ])("after a slow poll of $of, events cause another at once: $picksUp", async ({ picksUp }) => {
    await field.write("a.csv", "content");
    let slowMs = 0;
    let notice = () => {};
    const pauses: number[] = [];
    const drop: Drop = {
      ...deaf(),
      async *list(signal) {
        notice(); // Something changes while it is polled.
        yield* field.drop.list(signal);
        slowMs += 60_000;
      },
      watch: (onChange) => {
        notice = onChange;
        return async () => undefined;
      },
    };
    watch({ every: "1h", settle: { observations: picksUp ? 1 : 3, interval: "1h" } }, drop, {
      now: () => systemClock.now(),
      sleep: async (ms, signal) => {
        pauses.push(ms);
        return await systemClock.sleep(3_600_000, signal);
      },
      monotonicMs: () => systemClock.monotonicMs() + slowMs,
    });
    await expect.poll(() => pauses.length).toBeGreaterThan(0);
    if (picksUp) expect(pauses[0]).toBe(100);
    else expect(pauses[0]).toBeGreaterThanOrEqual(300_000);
  });

  test("polls sooner after the event of a file in a new folder", async () => {
    const watcher = watch({ every: "1h", settle: { observations: 1 } });
    await expect.poll(() => watcher.status().eventsArrive).toBe(true);
    let at = 0;
    await expect
      .poll(async () => {
        await field.write(`in/deep/${at++}.csv`, "content");
        return claimed.length;
      })
      .toBeGreaterThan(1);
  });

  test("polls only by the calendar when it is configured so", async () => {
    const watcher = watch({ every: "10ms", cron: "0 0 1 1 *", settle: { observations: 1 } });
    await watcher.pollNow();
    const polls = watcher.status().completePolls;
    await field.write("a.csv", "content");
    await expect.poll(() => watcher.status().nextPollAt).not.toBeNull();
    const next = Temporal.Instant.from(watcher.status().nextPollAt ?? "");
    expect(next.toString()).toMatch(/-01-01T00:00:00/);
    expect(watcher.status()).toMatchObject({ completePolls: polls, eventsArrive: null });
  });

  test("polls sooner after the event of a file", async () => {
    const watcher = watch({ every: "1h", settle: { observations: 1 } });
    await watcher.pollNow();
    let at = 0;
    // The events begin some time after the watcher did, so files keep coming until one was noticed.
    await expect
      .poll(async () => {
        await field.write(`${at++}.csv`, "content");
        return claimed.length;
      })
      .toBeGreaterThan(0);
  });

  test("continues at once when one poll is not enough, and lists again only when due or requested", async () => {
    for (const name of ["a.csv", "b.csv", "c.csv"]) await field.write(name, "content");
    let listings = 0;
    const counted: Drop = {
      ...deaf(),
      list: (signal) => {
        listings += 1;
        return field.drop.list(signal);
      },
    };
    const settings = { perPollMax: 1, settle: { observations: 1 } };
    const watcher = watch({ every: "1h", ...settings }, counted);
    await expect.poll(() => claimed).toEqual(["a.csv", "b.csv", "c.csv"]);
    await expect.poll(() => watcher.status()).toMatchObject({ leftCount: 0, inProgress: false });
    expect(listings).toBe(1);
    await field.write("d.csv", "content");
    await watcher.pollNow();
    expect(listings).toBe(2);
    expect(claimed.at(-1)).toBe("d.csv");
    await watcher.stop();
    for (const name of ["e.csv", "f.csv", "g.csv"]) await field.write(name, "content");
    watch({ every: "0s", ...settings }, counted);
    await expect.poll(() => claimed.length).toBe(7);
    expect(listings).toBeGreaterThanOrEqual(5);
  });

  test("reports the fault and the time of the next attempt, backs off, and recovers", async () => {
    const elsewhere = join(field.outside, "elsewhere");
    await rename(field.root, elsewhere);
    const watcher = watch({ every: "1h", backoffMax: "2h" }, deaf());
    await expect.poll(() => watcher.status().consecutiveFailures).toBe(1);
    expect((await watcher.pollNow()).error).toBeDefined();
    await expect.poll(() => watcher.status().nextPollAt).not.toBeNull();
    expect(watcher.status()).toMatchObject({
      consecutiveFailures: 2,
      lastCompletePoll: null,
      lastError: { code: "HG-DROP-002", hint: expect.stringContaining("Create the folder") },
    });
    const next = Temporal.Instant.from(watcher.status().nextPollAt ?? "");
    expect(next.since(Temporal.Now.instant()).total("minutes")).toBeGreaterThan(90);
    await rename(elsewhere, field.root);
    expect((await watcher.pollNow()).error).toBeUndefined();
    expect(watcher.status()).toMatchObject({ consecutiveFailures: 0, lastError: null });
  });

  test("stops in the middle of a listing that never ends", async () => {
    const { promise: listing, resolve } = Promise.withResolvers<void>();
    const stuck: Drop = {
      ...deaf(),
      async *list(signal) {
        resolve();
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () =>
            reject(new TransientError("HG-DROP-012", { operation: "list drop", subject: "field" })),
          );
        });
        yield [{ path: "never", size: 0, mtime: "" }];
      },
    };
    const watcher = watch({}, stuck);
    await listing;
    const waiting = watcher.pollNow();
    await watcher.stop();
    await expect(waiting).rejects.toThrow("no longer polled");
    expect(watcher.status()).toMatchObject({ inProgress: false, nextPollAt: null });
  });
});
