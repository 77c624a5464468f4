/** What the spool takes when it is nearly full. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { SpoolQuota } from "#gateway/spool/quota.ts";

let folder: string;
let nowMs: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  nowMs = 0;
  for (const name of ["inputs", "segments", "intake"]) mkdirSync(join(folder, name));
});
afterEach(() => rmSync(folder, { recursive: true }));

type Shared = (() => Promise<number>) | null;

function quota(shared: Shared = null, onSpace: (ids: readonly string[]) => void = () => undefined): SpoolQuota {
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const held = async () => new Set<string>();
  const parts = { clock, log: silentLog, held, shared, onSpace };
  return new SpoolQuota(folder, { budget: 1_000, headroom: 0 }, parts);
}

/** What it tells of room, one time after the other. */
function listening() {
  const told: (readonly string[])[] = [];
  let next = Promise.withResolvers<void>();
  const of = quota(null, (ids) => {
    told.push(ids);
    next.resolve();
    next = Promise.withResolvers();
  });
  return { of, told, next: () => next.promise };
}

const put = (path: string, bytes: number) => writeFileSync(join(folder, path), Buffer.alloc(bytes));

/** Time enough for another count. */
async function later(of: SpoolQuota): Promise<Awaited<ReturnType<SpoolQuota["state"]>>> {
  nowMs += 60_000;
  return await of.state();
}

describe("the room of the spool", () => {
  it("is taken by what is being fetched until that is given up, or written and counted", async () => {
    const of = quota();
    expect(await of.reserve("a", 200, false)).toBeNull();
    expect((await of.state()).usedBytes).toBe(600);
    expect(await of.reserve("b", 200, false)).toMatchObject({ code: "HG-SPOOL-005" });
    of.fetched("a", null);
    expect(await of.reserve("b", 200, false)).toBeNull();
    put("inputs/b", 200);
    of.fetched("b", 200);
    expect((await of.state()).usedBytes).toBe(600);
    put("segments/b", 250);
    of.mapped("b");
    expect((await of.state()).usedBytes).toBe(600);
    expect((await later(of)).usedBytes).toBe(450);
    expect((await of.state()).usedBytes).toBe(450);
  });

  it("is not counted for each file while there is plenty, and is before what others wrote can fill it", async () => {
    const of = quota();
    put("segments/a", 100);
    expect(await of.reserve("a", 10, false)).toBeNull();
    of.fetched("a", null);
    put("segments/b", 800);
    nowMs += 5_000;
    expect(await of.reserve("b", 10, false)).toBeNull();
    of.fetched("b", null);
    // More than half of the budget would be in use, by what is known.
    expect(await of.reserve("c", 150, false)).toBeNull();
    expect(await of.reserve("d", 10, false)).toMatchObject({ code: "HG-SPOOL-005" });
    of.fetched("c", null);
    nowMs += 60_000;
    expect(await of.reserve("e", 50, false)).toMatchObject({ code: "HG-SPOOL-005" });
  });

  it("is granted to refused files when something left the spool, in their order, as far as it suffices", async () => {
    const { of, told, next } = listening();
    put("segments/a", 600);
    put("segments/b", 400);
    for (const id of ["first", "second", "third"]) expect(await of.reserve(id, 100, false)).not.toBeNull();
    rmSync(join(folder, "segments/a"));
    const heard = next();
    of.freed();
    await heard;
    expect(told).toEqual([["first", "second"]]);
    expect(await of.reserve("second", 100, false)).toBeNull();
    expect(await of.reserve("first", 100, false)).toBeNull();
    const again = next();
    of.fetched("first", null);
    await again;
    expect(told).toEqual([["first", "second"], ["third"]]);
    of.close();
  });

  it("is told to who was refused by an older count than what left the spool", async () => {
    const { of, told, next } = listening();
    put("segments/a", 1_000);
    expect((await of.state()).usedBytes).toBe(1_000);
    rmSync(join(folder, "segments/a"));
    of.freed();
    const heard = next();
    expect(await of.reserve("b", 100, false)).not.toBeNull();
    await heard;
    expect(told).toEqual([["b"]]);
    of.close();
  });

  it("is granted to a file beyond the budget once the spool is empty, and to no cancelled one behind it", async () => {
    const { of, told, next } = listening();
    put("segments/a", 1_000);
    expect(await of.reserve("given up", 1, false)).not.toBeNull();
    nowMs += 60_000;
    expect(await of.reserve("huge", 5_000, false)).not.toBeNull();
    rmSync(join(folder, "segments/a"));
    const heard = next();
    of.freed();
    await heard;
    expect(told).toEqual([["huge"]]);
    of.close();
  });

  it("is there for a file of which a part came before, as it was for the whole", async () => {
    const of = quota();
    expect(await of.reserve("huge", 5_000, false)).toBeNull();
    put("inputs/huge", 4_000);
    of.fetched("huge", null);
    expect((await later(of)).full).toContain("fills the budget");
    expect(await of.reserve("other", 10, false)).toMatchObject({ code: "HG-SPOOL-005" });
    expect(await of.reserve("huge", 5_000, false)).toBeNull();
    expect(await of.reserve("other", 10, false)).toMatchObject({ code: "HG-SPOOL-005" });
  });

  it("is not taken twice by a file that is fetched again, since it was not mapped with others", async () => {
    const of = quota();
    expect(await of.reserve("first", 200, false)).toBeNull();
    put("inputs/first", 200);
    of.fetched("first", 200);
    expect(await of.reserve("first", 200, false)).toBeNull();
    expect(await of.reserve("second", 100, false)).toMatchObject({ code: "HG-SPOOL-005" });
  });

  it("lets bodies that fill the budget by themselves go on, a few at a time, and takes nothing else", async () => {
    put("intake/1.json", 600);
    const of = quota(async () => 500);
    expect(await of.state()).toMatchObject({ usedBytes: 1_100, sharedBytes: 500 });
    expect((await of.full())?.code).toBe("HG-SPOOL-005");
    expect(await of.reserve("file", 10, false)).toMatchObject({ code: "HG-SPOOL-005" });
    expect(await of.reserve("body", 200, false, true)).toBeNull();
    expect(await of.reserve("next", 200, false, true)).toMatchObject({ code: "HG-SPOOL-005" });
    of.fetched("body", null);
    expect(await of.reserve("next", 200, false, true)).toBeNull();
  });

  it("keeps in mind what waits in the ledger's database while that cannot be asked", async () => {
    let isAway = false;
    const of = quota(async () => {
      if (isAway) throw new Error("the database is away");
      return 950;
    });
    expect(await of.reserve("file", 10, false)).toBeNull();
    of.fetched("file", null);
    isAway = true;
    expect(await later(of)).toMatchObject({ usedBytes: 950, sharedBytes: 950, full: null });
    expect(await of.reserve("file", 100, false)).toMatchObject({ code: "HG-SPOOL-005" });
  });
});
