/** Settled arrivals meet the triggers, many at a time and from several drops at once. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { TransientError } from "#core/errors.ts";
import { silentLog } from "#core/log.ts";
import { settleEach } from "#core/promises.ts";
import { gatewayConfig } from "#gateway/config.ts";
import type { Drop } from "#gateway/drops/drop.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import type { Arrival, MapperIdentity } from "#gateway/model.ts";
import type { ClaimParts } from "#gateway/runs/claim-parts.ts";
import { claimArrivals } from "#gateway/runs/claims.ts";
import { FinishFaults } from "#gateway/runs/finish-faults.ts";
import { openLookupStore } from "#gateway/runs/lookups.ts";
import { Pauses } from "#gateway/runs/pauses.ts";
import { claimParts } from "#gateway/runs.ts";
import { createRegistry } from "#gateway/triggers/registry.ts";
import { entry } from "../ledger/fixtures.ts";

let folder: string;
let ledger: Ledger;
let woken: number;
/** Mappers that cannot be looked at now, and those that take until they are let go. */
let broken: Set<string>;
let gates: Map<string, Promise<void>>;
let parts: ClaimParts;

const trigger = (name: string) => ({
  name,
  fileNamePatternMatches: [{ filterType: "StartsWith", value: name }],
  mapper: `mapper-${name}`,
});

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "headgate-"));
  ledger = await openLedger({ kind: "sqlite", path: join(folder, "ledger.sqlite") }, { clock: systemClock });
  woken = 0;
  broken = new Set();
  gates = new Map();
  const who = { clientId: "a", clientSecret: "b", username: "c", password: "d" };
  const urls = { base: "http://h/base", push: "http://h/push", token: "http://h/token" };
  const config = gatewayConfig.parse({
    services: [{ name: "hub", ...urls, credentials: who }],
    ledger: { kind: "sqlite", path: join(folder, "ledger.sqlite") },
    spool: { path: join(folder, "spool") },
    drops: ["one", "two"].map((name) => ({ kind: "local", name, path: join(folder, name) })),
    triggers: ["a", "b"].map(trigger),
  });
  parts = claimParts(config, {
    ledger,
    log: silentLog,
    clock: systemClock,
    registry: createRegistry(config.triggers),
    dropEntry: () => undefined,
    lookups: await openLookupStore([], join(folder, "spool"), systemClock),
    zones: null,
    versions: { ...({} as Parameters<typeof claimParts>[1]["versions"]), current },
    pauses: await Pauses.read(ledger),
    finishFaults: new FinishFaults(systemClock),
    inner: undefined,
    undoneAt: undefined,
    onRun: () => {
      woken += 1;
    },
  });
});
afterEach(async () => {
  await ledger.close();
  rmSync(folder, { recursive: true });
});

async function current(name: string): Promise<MapperIdentity> {
  await gates.get(name);
  if (broken.has(name)) throw new TransientError("HG-SPOOL-004", { operation: "copy mapper", subject: name });
  return { name, version: "1.0.0", digest: "d" };
}

async function sight(drop: string, names: readonly string[]): Promise<readonly Arrival[]> {
  const poll = await ledger.beginPoll(drop);
  const sightings = await poll.record(names.map((name) => entry(name)));
  await poll.complete();
  return sightings.map(({ arrival }) => arrival);
}

const runs = async () => (await ledger.runsIn(["claimed"])).map(({ path }) => path);
const states = async (arrivals: readonly Arrival[]) =>
  (await ledger.arrivals(arrivals.map(({ id }) => id))).map(({ path, state }) => [path, state]);

describe("a claim of many arrivals", () => {
  it("opens their runs in their order, and tells of them once", async () => {
    const names = ["b2.csv", "a9.csv", "b1.csv", "a1.csv"];
    await claimArrivals(await sight("one", names), parts);
    expect(await runs()).toEqual(names);
    expect(woken).toBe(1);
    const [first, second] = await ledger.runsIn(["claimed"]);
    expect(first?.binding).toMatchObject({ trigger: "b", service: "hub", mapper: { name: "mapper-b" } });
    expect(second?.binding).toMatchObject({ trigger: "a", mapper: { name: "mapper-a", version: "1.0.0" } });
  });

  it("keeps the order of two drops that ask one after the other, also when the second is ready first", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gates.set("mapper-a", promise);
    const first = claimArrivals(await sight("one", ["a1.csv", "a2.csv"]), parts);
    const second = claimArrivals(await sight("two", ["b1.csv"]), parts);
    // Time enough for the second to go by.
    await ledger.runsIn(["claimed"]);
    expect(await runs()).toEqual([]);
    resolve();
    await Promise.all([first, second]);
    expect(await runs()).toEqual(["a1.csv", "a2.csv", "b1.csv"]);
  });

  it("claims the others of them when one fails, throws, and lets the next ones have their turn", async () => {
    broken.add("mapper-a");
    const arrivals = await sight("one", ["b1.csv", "a1.csv", "none.csv", "b2.csv"]);
    await expect(claimArrivals(arrivals, parts)).rejects.toThrow(TransientError);
    expect(await states(arrivals)).toEqual([
      ["b1.csv", "matched"],
      ["a1.csv", "settling"],
      ["none.csv", "unmatched"],
      ["b2.csv", "matched"],
    ]);
    broken.clear();
    const again = (await ledger.arrivals(arrivals.map(({ id }) => id))).filter(({ state }) => state === "settling");
    await claimArrivals(again, parts);
    expect(await runs()).toEqual(["b1.csv", "b2.csv", "a1.csv"]);
  });

  it("claims no later file of a lane whose earlier ones were not recorded, and those of other lanes", async () => {
    const names = Array.from({ length: 600 }, (_, at) => `${at >= 250 && at % 2 === 1 ? "b" : "a"}${1000 + at}.csv`);
    const arrivals = await sight("one", names);
    const full = new TransientError("HG-SPOOL-004", { operation: "write", subject: "ledger" });
    let isFull = true;
    // The first list fails as a whole; those after it succeed.
    const openRuns: Ledger["openRuns"] = (openings) =>
      isFull && openings.some(({ arrivalId }) => arrivalId === arrivals[100]?.id)
        ? Promise.reject(full)
        : ledger.openRuns(openings);
    const claimed = { ...parts, ledger: { ...ledger, openRuns } };
    await expect(claimArrivals(arrivals, claimed)).rejects.toBe(full);
    const ofLane = (lane: string) => names.filter((name) => name.startsWith(lane));
    const inOrder = async (lane: string) => (await runs()).filter((name) => name.startsWith(lane));
    expect(await inOrder("a")).toEqual([]);
    expect(await inOrder("b")).toEqual(ofLane("b"));
    isFull = false;
    const left = (await ledger.arrivals(arrivals.map(({ id }) => id))).filter(({ state }) => state === "settling");
    await claimArrivals(left, claimed);
    expect(await inOrder("a")).toEqual(ofLane("a"));
  });

  it("claims no later file of a lane in the same list as one that is refused", async () => {
    const names = ["a0.csv", "a1.csv", "b0.csv", "a2.csv", "b1.csv", "none.csv"];
    const arrivals = await sight("one", names);
    await ledger.forget("one", "a1.csv", { by: "a person", why: "it is wrong" });
    await expect(claimArrivals(arrivals, parts)).rejects.toMatchObject({ code: "HG-BUG-001" });
    expect(await runs()).toEqual(["a0.csv", "b0.csv", "b1.csv"]);
    const left = (await ledger.arrivals(arrivals.map(({ id }) => id))).filter(({ state }) => state === "settling");
    expect(left.map(({ path }) => path)).toEqual(["a2.csv"]);
    await claimArrivals(left, parts);
    expect(await runs()).toEqual(["a0.csv", "b0.csv", "b1.csv", "a2.csv"]);
  });

  it("claims no later file of a lane whose earlier one cannot be claimed now", async () => {
    const arrivals = await sight("one", ["a0.csv", "a1.csv", "a2.csv", "b1.csv"]);
    const provenance: ClaimParts["provenance"] = async ({ path }) => {
      if (path === "a1.csv") throw new TransientError("HG-SPOOL-004", { operation: "read", subject: path });
      return null;
    };
    await expect(claimArrivals(arrivals, { ...parts, provenance })).rejects.toThrow(TransientError);
    expect(await runs()).toEqual(["a0.csv", "b1.csv"]);
    await claimArrivals(arrivals.slice(1, 3), parts);
    expect(await runs()).toEqual(["a0.csv", "b1.csv", "a1.csv", "a2.csv"]);
  });

  it("leaves an unmatched file where it lies until the ledger knows that it is unmatched", async () => {
    const finished: string[] = [];
    const finish: Drop["finish"] = (planned) =>
      settleEach(planned, async ({ entry: { path } }) => {
        finished.push(path);
        return "done" as const;
      });
    const action = { action: "delete" } as const;
    const rules = { delivered: action, quarantined: action, unmatched: action, duplicate: action };
    const post = { drop: { finish } as Drop, finish: rules, duplicates: "skip", guardMs: 0 } as const;
    const arrivals = await sight("one", ["lost.csv", "x.csv"]);
    const full = new TransientError("HG-SPOOL-004", { operation: "write", subject: "ledger" });
    const advanceArrival: Ledger["advanceArrival"] = (id, ...change) =>
      id === arrivals[0]?.id ? Promise.reject(full) : ledger.advanceArrival(id, ...change);
    const failing = { ...parts, ledger: { ...ledger, advanceArrival }, dropEntry: () => post };
    await expect(claimArrivals(arrivals, failing)).rejects.toBe(full);
    expect(await states(arrivals)).toEqual([
      ["lost.csv", "settling"],
      ["x.csv", "unmatched"],
    ]);
    expect(finished).toEqual(["x.csv"]);
  });

  it("wakes nobody when no trigger claims them", async () => {
    await claimArrivals(await sight("one", ["none.csv"]), parts);
    expect(woken).toBe(0);
    expect(await ledger.arrivalsIn("one", ["unmatched"])).toMatchObject([
      { reason: 'a: StartsWith "a": no · b: StartsWith "b": no' },
    ]);
  });
});
