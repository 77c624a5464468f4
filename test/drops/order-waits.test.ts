/**
 * A listing that was cut does not turn the order of a lane round, nor takes history for news. The journal is
 * a ledger.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { dropOptions } from "#gateway/drops/options.ts";
import { Pickup, type PickupFacts } from "#gateway/drops/pickup.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import type { FileEntry } from "#gateway/model.ts";
import { BINDING } from "../ledger/fixtures.ts";
import { type Field, never, openLocal, type Settings } from "./field.ts";

const MINUTE = 60_000;
const SETTLE = { observations: 2, interval: "2s" };

let field: Field;
let ledger: Ledger;
let nowMs: number;
/** Folders that cannot be listed now. */
let broken: Set<string>;
/** Folders whose listing breaks off after one file, the newest. */
let brokenInside: Set<string>;
let claimed: string[];
let warnings: string[];
/** Another drop whose files come to the same lanes, and its ledger. */
let other: Field;
let journal: Ledger;
const clock: Clock = {
  ...systemClock,
  monotonicMs: () => nowMs,
  now: () => Temporal.Instant.fromEpochMilliseconds(Date.UTC(2026, 2, 1) + nowMs),
};

beforeEach(async () => {
  field = await openLocal();
  ledger = await openSqliteLedger({ path: join(field.outside, "ledger.sqlite"), clock });
  other = await openLocal();
  journal = ledger;
  nowMs = 0;
  broken = new Set();
  brokenInside = new Set();
  claimed = [];
  warnings = [];
});
afterEach(async () => {
  await ledger.close();
  await field.close();
  await other.close();
});

/** Lists folder by folder, in the order of their names, and breaks off at one that is broken. */
async function* listing(
  place: Field,
  signal: AbortSignal,
  onFolder?: (folder: string, below: readonly string[]) => void,
) {
  const files = (await Array.fromAsync(place.drop.list(signal))).flat();
  const folderOf = (path: string) => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");
  const folders = [...new Set(["", ...files.map(({ path }) => folderOf(path))])].sort();
  for (const folder of folders) {
    if (broken.has(folder)) throw new Error(`${folder} cannot be listed`);
    const own = files.filter(({ path }) => folderOf(path) === folder);
    yield brokenInside.has(folder) ? own.toSorted(byTime).slice(-1) : own;
    if (brokenInside.has(folder)) throw new Error(`the listing of ${folder} broke off`);
    onFolder?.(folder, folder === "" ? folders.slice(1) : []);
  }
}

const byTime = (one: FileEntry, other: FileEntry) => Number(one.mtime) - Number(other.mtime);

/** As the rest knows it, and as its listing is here. */
const listed = (place: Field, name: string) =>
  new Proxy(place.drop, {
    get: (of, key) => {
      if (key === "name") return name;
      if (key !== "list") return Reflect.get(of, key);
      return (...facts: [AbortSignal, (() => void)?]) => listing(place, ...facts);
    },
  });

function pickup(settings: Settings = {}, place = field): Pickup {
  const name = place === field ? "field" : "other";
  const options = dropOptions.parse({
    kind: "local",
    name,
    path: place.root,
    settle: SETTLE,
    ...settings,
  });
  const facts: PickupFacts = {
    drop: listed(place, name),
    options,
    journal,
    laneMates: () => [place === field ? listed(other, "other") : listed(field, "field")],
    clock,
    lanesOf: (path) => (path.endsWith(".csv") ? [path.split("-")[0]?.split("/").at(-1) ?? ""] : []),
    claim: async (arrivals, told) => {
      for (const { id, path } of arrivals) {
        claimed.push(path);
        if (told?.has(id) === true) warnings.push(told.get(id) ?? "");
        await ledger.openRun(id, BINDING, "lane");
      }
    },
  };
  return new Pickup(facts);
}

async function poll(of: Pickup, afterMs = 2000) {
  nowMs += afterMs;
  return of.poll(never);
}

const at = (second: number) => new Date(Date.UTC(2026, 1, 1, 0, 0, second));

/** The base file was seen once when its folder can be listed no more, and its correction has settled. */
async function cut(of: Pickup): Promise<void> {
  await field.write("b/lane-base.csv", "base", at(1));
  await poll(of);
  broken.add("b");
  await field.write("a/lane-correction.csv", "correction", at(2));
  await poll(of);
}

test("a file whose done-file is listed is taken while another folder cannot be listed", async () => {
  const picking = pickup({ settle: { ...SETTLE, doneFile: "{name}.done" } });
  broken.add("b");
  await field.write("b/other-1.csv", "one", at(1));
  for (const name of ["a/first-1.csv", "a/first-1.csv.done", "a/second-1.csv"]) await field.write(name, "one", at(1));
  await poll(picking);
  await poll(picking);
  expect(claimed).toEqual(["a/first-1.csv"]);
  expect(picking.waiting().map(({ reason }) => reason)).toContain("waits for its done-file a/second-1.csv.done");
});

describe("files of a folder whose listing breaks off", () => {
  const put = async () => {
    await field.write("a/lane-base.csv", "base", at(1));
    await field.write("a/lane-correction.csv", "correction", at(2));
    await field.write("0/lane2-other.csv", "other", at(3));
    brokenInside.add("a");
  };

  test("wait for those that were not listed, and files of complete folders do not", async () => {
    const picking = pickup();
    await put();
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["0/lane2-other.csv"]);
    expect(picking.waiting()).toMatchObject([
      { path: "a/lane-correction.csv", reason: expect.stringContaining("the listing of a broke off") },
    ]);
    brokenInside.clear();
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["0/lane2-other.csv", "a/lane-base.csv", "a/lane-correction.csv"]);
    expect(warnings).toEqual([]);
  });

  test("go with a warning when `order.wait` is over", async () => {
    const picking = pickup();
    await put();
    await poll(picking);
    await poll(picking);
    await poll(picking, 10 * 60_000);
    expect(claimed).toEqual(["0/lane2-other.csv", "a/lane-correction.csv"]);
    expect(warnings).toEqual([expect.stringContaining("has broken off for 600 s")]);
  });
});

test("a file that waits for its cut folder holds back later files of its lane in complete folders", async () => {
  const picking = pickup();
  await field.write("a/lane-older.csv", "older", at(1));
  await field.write("0/lane-newer.csv", "newer", at(2));
  brokenInside.add("a");
  await poll(picking);
  await poll(picking);
  expect(claimed).toEqual([]);
  brokenInside.clear();
  await poll(picking);
  expect(claimed).toEqual(["a/lane-older.csv", "0/lane-newer.csv"]);
});

describe("while the folder of a file that was seen earlier cannot be listed", () => {
  test("later files of its lane wait, and both are picked up in order when it can be listed again", async () => {
    const picking = pickup();
    await cut(picking);
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual([]);
    broken.clear();
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["b/lane-base.csv", "a/lane-correction.csv"]);
    expect(warnings).toEqual([]);
  });

  test("later files wait for it once and for a limited time, also over a restart, then continue", async () => {
    await cut(pickup());
    // Another process: what it knows is in the ledger alone.
    const again = pickup();
    await poll(again);
    await poll(again, MINUTE);
    expect(claimed).toEqual([]);
    expect(again.waiting().map(({ reason }) => reason)).toEqual([
      expect.stringContaining("waits for b/lane-base.csv, which was seen earlier"),
    ]);
    await poll(again, 10 * MINUTE);
    expect(claimed).toEqual(["a/lane-correction.csv"]);
    expect(warnings).toEqual([expect.stringContaining("it goes before b/lane-base.csv")]);
    await field.write("a/lane-more.csv", "more", at(3));
    await poll(again);
    await poll(again);
    expect(claimed).toEqual(["a/lane-correction.csv", "a/lane-more.csv"]);
    expect(warnings).toHaveLength(2);
  });

  test("the remaining wait is reported, so that the next poll comes in time", async () => {
    const picking = pickup({ order: { wait: "1m" } });
    await cut(picking);
    expect((await poll(picking)).orderWaitMs).toBe(MINUTE - 2000);
    expect((await poll(picking, MINUTE)).orderWaitMs).toBeNull();
    expect(claimed).toEqual(["a/lane-correction.csv"]);
  });

  test("files of other lanes, older ones, and those without a trigger continue", async () => {
    const picking = pickup();
    await cut(picking);
    await field.write("a/other-1.csv", "other", at(2));
    await field.write("a/lane-older.csv", "older", at(0));
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["a/lane-older.csv", "a/other-1.csv"]);
  });

  test("no file waits for one under a temporary name, or in a folder that was listed in full", async () => {
    await field.write("b/lane-base.csv.part", "base", at(1));
    await field.write("a/lane-gone.csv", "base", at(1));
    const picking = pickup();
    await poll(picking);
    broken.add("b");
    await rm(join(field.root, "a/lane-gone.csv"));
    await field.write("a/lane-correction.csv", "correction", at(2));
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["a/lane-correction.csv"]);
  });

  test("later files still wait when the folder is listed again, until the file has settled", async () => {
    const picking = pickup({ settle: { ...SETTLE, observations: 3 } });
    await cut(picking);
    await poll(picking);
    await poll(picking);
    broken.clear();
    await field.write("b/lane-base.csv", "base, grown", at(1));
    await poll(picking);
    expect(claimed).toEqual([]);
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["b/lane-base.csv", "a/lane-correction.csv"]);
  });
});

describe("while one complete listing does not show a file that was seen earlier", () => {
  const base = () => field.write("b/lane-base.csv", "base", at(1));

  /** The base file was seen once and is away, and its correction was seen. */
  async function away(of: Pickup, name = "b/lane-base.csv"): Promise<void> {
    await field.write(name, "base", at(1));
    await poll(of);
    await field.write("a/lane-correction.csv", "correction", at(2));
    await poll(of, 10);
    await rm(join(field.root, name));
    expect(await poll(of)).toMatchObject({ missing: 1, gone: 0 });
  }

  test("later files of its lane wait, and both are picked up in order when it is back", async () => {
    const picking = pickup();
    await away(picking);
    expect(claimed).toEqual([]);
    expect(picking.waiting().map(({ reason }) => reason)).toEqual([
      expect.stringContaining("waits for b/lane-base.csv, which was seen earlier"),
    ]);
    await base();
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["b/lane-base.csv", "a/lane-correction.csv"]);
    expect(warnings).toEqual([]);
  });

  test("later files wait over a restart, until it has settled", async () => {
    await away(pickup({ settle: { ...SETTLE, observations: 3 } }));
    const again = pickup();
    await base();
    await poll(again);
    await field.write("b/lane-base.csv", "base, grown", at(1));
    await poll(again);
    expect(claimed).toEqual([]);
    await poll(again);
    expect(claimed).toEqual(["b/lane-base.csv", "a/lane-correction.csv"]);
  });

  test("later files continue without a warning when the next listing does not show it either", async () => {
    const picking = pickup();
    await away(picking);
    expect(await poll(picking)).toMatchObject({ missing: 0, gone: 1, claimed: 1 });
    expect(claimed).toEqual(["a/lane-correction.csv"]);
    expect(warnings).toEqual([]);
  });

  test("later files continue with a warning when it is back and has not settled for `order.wait`", async () => {
    const picking = pickup({ order: { wait: "1m" } });
    await away(picking);
    await field.write("b/lane-base.csv", "base, grown", at(1));
    expect((await poll(picking, 10)).orderWaitMs).toBe(MINUTE - 10);
    await field.write("b/lane-base.csv", "base, grown again", at(1));
    await poll(picking, MINUTE);
    expect(claimed).toEqual(["a/lane-correction.csv"]);
    expect(warnings).toEqual([expect.stringContaining("it goes before b/lane-base.csv")]);
  });

  test("no file waits for one under a temporary name, and no other lane waits for this one", async () => {
    const picking = pickup({ temporaryNames: ["*-hidden.csv"] });
    await field.write("a/other-1.csv", "other", at(2));
    await away(picking, "b/lane-hidden.csv");
    expect(claimed.toSorted()).toEqual(["a/lane-correction.csv", "a/other-1.csv"]);
  });
});

describe("while another folder of the drop cannot be listed", () => {
  test("a file that its fully listed folder lacks is awaited after one listing, and not after two", async () => {
    const picking = pickup();
    await field.write("a/lane-base.csv", "base", at(1));
    await field.write("b/other.csv", "other", at(1));
    await poll(picking);
    await field.write("a/lane-correction.csv", "correction", at(2));
    await poll(picking, 10);
    broken.add("b");
    await rm(join(field.root, "a/lane-base.csv"));
    expect(await poll(picking)).toMatchObject({ missing: 1, gone: 0 });
    expect(claimed).toEqual([]);
    expect(await poll(picking)).toMatchObject({ missing: 0, gone: 1 });
    expect(claimed).toEqual(["a/lane-correction.csv"]);
    expect(warnings).toEqual([]);
  });

  test("a file that is back there is picked up before the files that waited for it", async () => {
    const picking = pickup();
    await field.write("a/lane-base.csv", "base", at(1));
    await field.write("b/other.csv", "other", at(1));
    await poll(picking);
    await field.write("a/lane-correction.csv", "correction", at(2));
    await poll(picking, 10);
    broken.add("b");
    await rm(join(field.root, "a/lane-base.csv"));
    await poll(picking);
    await field.write("a/lane-base.csv", "base", at(1));
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["a/lane-base.csv", "a/lane-correction.csv"]);
  });
});

describe("while the ledger fails", () => {
  /** The ledger, with another `record` or `cutShort`. */
  function failing(which: "record" | "cutShort"): { fails: boolean } {
    const state = { fails: true };
    const beginPoll: Ledger["beginPoll"] = async (...asked) => {
      const open = await ledger.beginPoll(...asked);
      return new Proxy(open, {
        get: (of, key) => {
          if (key === which && state.fails) return () => Promise.reject(new Error("the ledger fails"));
          const found: unknown = Reflect.get(of, key);
          return typeof found === "function" ? found.bind(of) : found;
        },
      });
    };
    journal = { ...ledger, beginPoll };
    return state;
  }

  test("no file of an interrupted listing is picked up, since it is unknown for which files it must wait", async () => {
    const state = failing("cutShort");
    const picking = pickup();
    await cut(picking);
    expect(await poll(picking)).toMatchObject({ claimed: 0, error: new Error("the ledger fails") });
    expect((await picking.takeLeft(never)).claimed).toBe(0);
    state.fails = false;
    await poll(picking);
    expect(claimed).toEqual([]);
    broken.clear();
    await poll(picking);
    await poll(picking);
    expect(claimed).toEqual(["b/lane-base.csv", "a/lane-correction.csv"]);
  });

  test("a file that was listed and not recorded is neither missing nor new at the first contact", async () => {
    await field.write("a/lane-old.csv", "old", at(1));
    const state = failing("record");
    const picking = pickup({ initial: "skip" });
    await poll(picking);
    state.fails = false;
    broken.add("b");
    await field.write("b/lane-old.csv", "old", at(1));
    for (let times = 0; times < 3; times += 1) await poll(picking);
    expect(claimed).toEqual([]);
  });
});

describe("a lane over several drops", () => {
  test("waits for a file of the other drop that cannot be listed, and both are picked up in order", async () => {
    const [here, there] = [pickup(), pickup({}, other)];
    await other.write("b/lane-base.csv", "base", at(1));
    await poll(there);
    broken.add("b");
    await poll(there);
    await field.write("a/lane-correction.csv", "correction", at(2));
    await field.write("a/lane-older.csv", "older", at(0));
    await poll(here);
    await poll(here);
    await poll(here);
    expect(claimed).toEqual(["a/lane-older.csv"]);
    expect(here.waiting().map(({ reason }) => reason)).toEqual([
      expect.stringContaining("waits for b/lane-base.csv at the drop other, which was seen earlier"),
    ]);
    broken.clear();
    await poll(there);
    await poll(there);
    await poll(here);
    expect(claimed).toEqual(["a/lane-older.csv", "b/lane-base.csv", "a/lane-correction.csv"]);
    expect(warnings).toEqual([]);
  });

  test("continues with a warning when `order.wait` is over", async () => {
    const [here, there] = [pickup({ order: { wait: "1m" } }), pickup({}, other)];
    await other.write("b/lane-base.csv", "base", at(1));
    await poll(there);
    broken.add("b");
    await poll(there);
    await field.write("a/lane-correction.csv", "correction", at(2));
    await poll(here);
    expect((await poll(here)).orderWaitMs).toBe(MINUTE - 4000);
    await poll(here, MINUTE);
    expect(claimed).toEqual(["a/lane-correction.csv"]);
    expect(warnings).toEqual([
      expect.stringContaining("it goes before b/lane-base.csv at the drop other, which was seen at"),
    ]);
  });
});

describe("the first contact with a drop whose `initial` skips existing files", () => {
  test("is complete folder by folder: old files are skipped, new files elsewhere are picked up", async () => {
    await field.write("a/lane-old.csv", "old", at(1));
    await field.write("b/lane-old.csv", "old", at(1));
    broken.add("b");
    const settings = { initial: "skip" };
    await poll(pickup(settings));
    await field.write("a/lane-new.csv", "new", at(2));
    await field.write("aa/lane-new.csv", "new", at(2));
    const again = pickup(settings);
    await poll(again);
    await poll(again);
    expect(claimed.toSorted()).toEqual(["a/lane-new.csv", "aa/lane-new.csv"]);
    broken.clear();
    await poll(again);
    await poll(again);
    expect(claimed).toHaveLength(2);
    await field.write("b/lane-new.csv", "new", at(3));
    await poll(again);
    await poll(again);
    expect(claimed.at(-1)).toBe("b/lane-new.csv");
  });
});
