/**
 * What every ledger must do, whichever database is behind it. `open` gives an empty ledger; it is closed
 * after each test.
 */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "#core/clock.ts";
import { InvariantError, RejectedError } from "#core/errors.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run } from "#gateway/model.ts";
import { advanceConformance } from "./advance-conformance.ts";
import { approvedKeyConformance } from "./approved-key-conformance.ts";
import { containerConformance } from "./container-conformance.ts";
import { fileConformance } from "./file-conformance.ts";
import { finishedConformance } from "./finished-conformance.ts";
import {
  BINDING,
  claimed,
  deliver,
  entry,
  list,
  mapped,
  outcome,
  record,
  sight,
  slice,
  steppingClock,
} from "./fixtures.ts";
import { historyConformance } from "./history-conformance.ts";
import { keyConformance } from "./key-conformance.ts";
import { laneConformance } from "./lane-conformance.ts";
import { listConformance } from "./list-conformance.ts";
import { operatorConformance } from "./operator-conformance.ts";
import { pollConformance } from "./poll-conformance.ts";
import { pruneConformance } from "./prune-conformance.ts";
import { triggerListConformance } from "./trigger-list-conformance.ts";
import { unconfirmedConformance } from "./unconfirmed-conformance.ts";

export type OpenLedger = (clock: Clock) => Promise<Ledger>;

export function ledgerConformance(name: string, open: OpenLedger): void {
  describe(`${name} ledger`, () => {
    let ledger: Ledger;
    beforeEach(async () => {
      ledger = await open(steppingClock());
    });
    afterEach(async () => {
      await ledger.close();
    });
    const current = () => ledger;
    describe("polls", () => pollConformance(current));
    describe("pruning", () => pruneConformance(current));
    describe("commands of operators", () => operatorConformance(current));
    describe("files after their end", () => finishedConformance(current));
    describe("history", () => historyConformance(current));
    describe("containers", () => containerConformance(current));
    describe("approved host keys", () => approvedKeyConformance(current));
    describe("triggers of services", () => triggerListConformance(current));
    describe("unconfirmed runs", () => unconfirmedConformance(current));
    describe("arrivals", () => arrivals(current));
    describe("runs", () => runs(current));
    describe("lists", () => listConformance(current));
    describe("lanes", () => lanes(current));
    describe("the order of lanes", () => laneConformance(current));
    describe("batches", () => batches(current));
    describe("keys", () => keyConformance(current));
    describe("advances", () => advanceConformance(current));
    describe("outcomes", () => outcomes(current));
    describe("queries of operators", () => questions(current));
    describe("lists of files", () => fileConformance(current));
    describe("writes that share a commit", () => sharedCommits(current));
  });
}

function arrivals(ledger: () => Ledger): void {
  it("reports states with reasons, and only changes of state are events", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    await ledger().advanceArrival(arrival.id, "settling", "1 of 3 equal looks");
    const after = await ledger().advanceArrival(arrival.id, "unmatched", "no trigger");
    expect(after).toMatchObject({ state: "unmatched", reason: "no trigger" });
    expect((await ledger().events(arrival.id)).map((event) => event.what)).toEqual([
      "arrival.settling",
      "arrival.unmatched",
    ]);
  });

  it("lists the arrivals at a drop by state, oldest first, up to a limit", async () => {
    await list(
      ledger(),
      "field",
      ["c", "a", "b"].map((path) => entry(path)),
    );
    await list(ledger(), "other", [entry("x")]);
    const found = await ledger().arrivalsIn("field", ["unmatched", "settling"], 2);
    expect(found.map(({ path }) => path)).toEqual(["c", "a"]);
    const others = await ledger().arrivalsIn("field", ["unmatched", "settling"], 2, found.at(-1)?.id);
    expect(others.map(({ path }) => path)).toEqual(["b"]);
    await list(ledger(), "field", [entry("b")]);
    expect((await ledger().arrivalsIn("field", ["settling"])).map(({ path }) => path)).toEqual(["b"]);
  });

  it("refuses to make an arrival matched without a run, which would lose it", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    await expect(ledger().advanceArrival(arrival.id, "matched", "claimed")).rejects.toThrow(InvariantError);
    expect((await ledger().arrival(arrival.id))?.state).toBe("settling");
  });

  it("finds the same bytes at the same path while the earlier ones are in progress or delivered", async () => {
    const run = await mapped(ledger(), "a.csv", record(["A"]), "same");
    await list(ledger(), "field", []);
    const again = (await sight(ledger(), "a.csv")).arrival;
    const elsewhere = (await sight(ledger(), "b.csv")).arrival;
    expect((await ledger().duplicateOf(again, "same"))?.id).toBe(run.arrivalId);
    expect(await ledger().duplicateOf(again, "other")).toBeNull();
    expect(await ledger().duplicateOf(elsewhere, "same")).toBeNull();
    await deliver(ledger(), run);
    expect((await ledger().duplicateOf(again, "same"))?.id).toBe(run.arrivalId);
  });

  it("reports an earlier unfetched run at the same path, and records no later one meanwhile", async () => {
    const first = await claimed(ledger(), "a.csv");
    await list(ledger(), "field", []);
    const second = await claimed(ledger(), "a.csv");
    const { arrivalId: id, drop, path, size, mtime } = second;
    const version = { id, drop, path, size, mtime };
    expect((await ledger().unfetchedBefore(version))?.id).toBe(first.id);
    const others = [{ id: first.arrivalId }, { path: "b.csv" }, { size: 1 }, { mtime: "2" }];
    for (const other of others) expect(await ledger().unfetchedBefore({ ...version, ...other })).toBeNull();
    const fetched = { to: "fetched", change: { sha256: "same" } } as const;
    const advance = { id: second.id, from: "claimed", through: [fetched], duplicates: "skip" } as const;
    expect(await ledger().advanceRuns([advance])).toEqual([{ run: null, why: "unfetched" }]);
    await ledger().advanceRun(first.id, "claimed", "fetched", { sha256: "same" });
    expect(await ledger().unfetchedBefore(version)).toBeNull();
    // Now it is known that both are the same.
    expect(await ledger().advanceRuns([advance])).toEqual([{ run: null, why: "known" }]);
    expect((await ledger().arrival(id))?.sha256).toBeNull();
  });

  it.each(["quarantined", "cancelled"] as const)(
    "does not count a predecessor at rest %s without accepted readings",
    async (state) => {
      const run = await mapped(ledger(), "a.csv", record(["A"]), "same");
      await ledger().advanceRun(run.id, "mapped", state, {
        reason: { code: "HG-MAP-001", message: "broken" },
      });
      await list(ledger(), "field", []);
      const { arrival } = await sight(ledger(), "a.csv");
      expect(await ledger().duplicateOf(arrival, "same")).toBeNull();
    },
  );

  it.each(["accepted", "sending"] as const)(
    "counts a predecessor in quarantine with a batch that is %s",
    async (state) => {
      const run = await mapped(ledger(), "a.csv", record(["A"], [slice("1"), slice("2")]), "same");
      await ledger().advanceRun(run.id, "mapped", "delivering");
      const [first] = await ledger().batches(run.id);
      await ledger().advanceBatch(first?.operationId ?? "", "ready", "sending", { attempted: true });
      if (state === "accepted")
        await ledger().advanceBatch(first?.operationId ?? "", "sending", state, { answer: "200" });
      await ledger().advanceRun(run.id, "delivering", "quarantined");
      await list(ledger(), "field", []);
      const { arrival } = await sight(ledger(), "a.csv");
      expect((await ledger().duplicateOf(arrival, "same"))?.id).toBe(run.arrivalId);
    },
  );

  it("counts a predecessor that is held, and the stored part of a discarded one", async () => {
    const held = await mapped(ledger(), "held.csv", record(["A"]), "same");
    await ledger().advanceRun(held.id, "mapped", "held");
    for (const [path, stored] of [
      ["none.csv", 0],
      ["some.csv", 4],
    ] as const) {
      const run = await deliver(ledger(), await mapped(ledger(), path, record([path]), "same"));
      await ledger().advanceRun(run.id, "accepted", "discarded", { points: { stored } });
    }
    await list(ledger(), "field", []);
    const found: Record<string, boolean> = {};
    for (const path of ["held.csv", "none.csv", "some.csv"]) {
      const { arrival } = await sight(ledger(), path);
      found[path] = (await ledger().duplicateOf(arrival, "same")) !== null;
    }
    expect(found).toEqual({ "held.csv": true, "none.csv": false, "some.csv": true });
  });

  it("returns an arrival to its drop when its bytes came back as another arrival", async () => {
    const run = await mapped(ledger(), "a.csv", record(["A"]), "same");
    await list(ledger(), "field", []);
    const { sightings } = await list(ledger(), "field", [entry("a.csv", 100, "7")]);
    const arrival = sightings[0]?.arrival ?? { id: 0 };
    await ledger().recordReturn(run.arrivalId, arrival.id, "the same bytes");
    expect(await ledger().arrival(arrival.id)).toMatchObject({
      state: "duplicate",
      reason: "the same bytes",
    });
    expect((await ledger().arrival(arrival.id))?.goneAt).not.toBeNull();
    const there = { size: 100, mtime: "7" };
    expect(await ledger().arrival(run.arrivalId)).toMatchObject({ ...there, state: "matched", goneAt: null });
    expect(await ledger().run(run.id), "the run finishes what lies there").toMatchObject({
      ...run,
      ...there,
    });
    expect((await ledger().events(run.arrivalId)).at(-1)?.what).toBe("arrival.returned");
  });

  it("marks a file as gone as soon as a run misses it, so that it is new when it is listed again", async () => {
    const run = await claimed(ledger(), "a.csv");
    await ledger().advanceRun(run.id, "claimed", "cancelled", { gone: true, detail: "it vanished" });
    expect((await ledger().arrival(run.arrivalId))?.goneAt).not.toBeNull();
    expect((await sight(ledger(), "a.csv")).seen).toBe("new");
  });
}

function runs(ledger: () => Ledger): void {
  it("opens a run with its arrival and binding, and with ascending ids", async () => {
    const first = await claimed(ledger(), "in/a.csv");
    const second = await claimed(ledger(), "in/b.csv");
    expect(first).toMatchObject({ state: "claimed", path: "in/a.csv", drop: "field", binding: BINDING });
    expect(second.id > first.id).toBe(true);
    expect((await ledger().arrival(first.arrivalId))?.state).toBe("matched");
  });

  it("refuses an update from another state than expected, and a forbidden transition", async () => {
    const run = await claimed(ledger(), "a.csv");
    await ledger().advanceRun(run.id, "claimed", "fetched");
    await expect(ledger().advanceRun(run.id, "claimed", "fetched")).rejects.toThrow(InvariantError);
    await expect(ledger().advanceRun(run.id, "fetched", "accepted")).rejects.toThrow(InvariantError);
    expect((await ledger().run(run.id))?.state).toBe("fetched");
  });

  it("keeps facts that a change leaves out, and removes a reason on request", async () => {
    const run = await claimed(ledger(), "a.csv");
    await ledger().advanceRun(run.id, "claimed", "fetched", { sha256: "abc" });
    const reason = { code: "HG-PUSH-001", message: "away" };
    await ledger().noteRun(run.id, { reason, points: { mapped: 7 }, event: "run.waiting" });
    expect(await ledger().noteRun(run.id, { points: { rejected: 2 } })).toMatchObject({
      sha256: "abc",
      reason,
      points: { mapped: 7, rejected: 2 },
    });
    expect((await ledger().noteRun(run.id, { reason: null })).reason).toBeNull();
    expect((await ledger().arrival(run.arrivalId))?.sha256).toBe("abc");
    expect((await ledger().events(run.arrivalId)).at(-1)).toMatchObject({
      what: "run.waiting",
      detail: "away",
    });
  });

  it("decides the finish once, and marks the arrival gone when the source has left", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "a.csv"));
    await ledger().noteRun(run.id, { finishPlan: { action: "archive", to: "archive/a.csv" } });
    await expect(ledger().noteRun(run.id, { finishPlan: { action: "delete" } })).rejects.toThrow(InvariantError);
    const at = "2026-03-02T00:00:00.000Z";
    const after = await ledger().noteRun(run.id, { finished: { at, left: true }, event: "source.archived" });
    expect(after).toMatchObject({ finishPlan: { to: "archive/a.csv" }, finishedAt: at });
    expect((await ledger().arrival(run.arrivalId))?.goneAt).toBe(at);
  });

  it("lists runs by state in the order of arrivals, also only those whose source is unfinished", async () => {
    const one = await claimed(ledger(), "1");
    const two = await claimed(ledger(), "2");
    const three = await claimed(ledger(), "3");
    await ledger().advanceRun(one.id, "claimed", "cancelled");
    await ledger().advanceRun(two.id, "claimed", "fetched");
    await ledger().noteRun(one.id, { finished: { at: "2026-03-02T00:00:00.000Z", left: false } });
    const ids = async (...query: Parameters<Ledger["runsIn"]>) => (await ledger().runsIn(...query)).map(({ id }) => id);
    expect(await ids(["claimed", "fetched", "cancelled"])).toEqual([one.id, two.id, three.id]);
    expect(await ids(["claimed", "fetched"], { limit: 1 })).toEqual([two.id]);
    expect(await ids(["claimed", "cancelled"], { unfinished: true })).toEqual([three.id]);
    const besides = { except: [two.id], after: one.id, drop: one.drop };
    expect(await ids(["claimed", "fetched", "cancelled"], besides)).toEqual([three.id]);
    expect((await ledger().recentRuns(2)).map(({ id }) => id)).toEqual([three.id, two.id]);
    expect((await ledger().recentRuns(9, ["cancelled"])).map(({ id }) => id)).toEqual([one.id]);
  });

  it("keeps the refused rows of a quarantined file", async () => {
    const run = await claimed(ledger(), "a.csv");
    const rejected = [{ code: "HG-MAP-001", message: "no number", place: { row: 7, column: "value" } }];
    await ledger().advanceRun(run.id, "claimed", "quarantined", { rejected });
    expect(await ledger().rejectedRows(run.id)).toEqual(rejected);
  });
}

function lanes(ledger: () => Ledger): void {
  it("lets a run wait for an earlier one that shares a target until that one is accepted", async () => {
    const first = await mapped(ledger(), "1", record(["A", "B"]));
    const second = await mapped(ledger(), "2", record(["B", "C"]));
    const third = await mapped(ledger(), "3", record(["D"]));
    expect((await ledger().blockedBy(second))?.id).toBe(first.id);
    expect(await ledger().blockedBy(first)).toBeNull();
    expect(await ledger().blockedBy(third)).toBeNull();
    await deliver(ledger(), first);
    expect(await ledger().blockedBy(second)).toBeNull();
  });

  it("does not let a run at rest block others", async () => {
    const first = await mapped(ledger(), "1");
    const second = await mapped(ledger(), "2");
    await ledger().advanceRun(first.id, "mapped", "held");
    expect(await ledger().blockedBy(second)).toBeNull();
    await ledger().advanceRun(first.id, "held", "mapped");
    expect((await ledger().blockedBy(second))?.id).toBe(first.id);
    await ledger().advanceRun(first.id, "mapped", "quarantined");
    expect(await ledger().blockedBy(second)).toBeNull();
  });

  it("waits for an earlier run whose targets are unknown yet, and not for other lanes", async () => {
    const elsewhere = await claimed(ledger(), "0", "other lane");
    const unmapped = await claimed(ledger(), "1");
    const run = await mapped(ledger(), "2", record(["Z"]));
    expect((await ledger().blockedBy(run))?.id).toBe(unmapped.id);
    await ledger().advanceRun(unmapped.id, "claimed", "cancelled");
    expect(await ledger().blockedBy(run)).toBeNull();
    expect(await ledger().blockedBy(elsewhere)).toBeNull();
  });

  it("counts targets of different identifier kinds as shared", async () => {
    const first = await mapped(ledger(), "1", record(["A"], [slice("1")], "variableId"));
    const second = await mapped(ledger(), "2", record(["B"], [slice("1")], "sourceEan"));
    expect((await ledger().blockedBy(second))?.id).toBe(first.id);
  });
}

function batches(ledger: () => Ledger): void {
  it("creates batches ready with the run, named by prefix, run and sequence, in the order of sending", async () => {
    const prefixed = await claimed(ledger(), "p", "lane", { ...BINDING, operationPrefix: "plant-7" });
    await ledger().advanceRun(prefixed.id, "claimed", "fetched");
    await ledger().advanceRun(prefixed.id, "fetched", "mapping");
    const slices = ["1", "2", "10"].map((sequence) => slice(sequence));
    const run = await ledger().recordMapped(prefixed.id, record(["A"], slices));
    expect(run).toMatchObject({ state: "mapped", points: { mapped: 30 } });
    expect((await ledger().batches(run.id)).map((batch) => [batch.operationId, batch.state])).toEqual(
      ["1", "2", "10"].map((sequence) => [`plant-7-${run.id}-${sequence}`, "ready"]),
    );
    expect((await ledger().trace("plant-7")).map(({ arrival }) => arrival.path)).toEqual(["p"]);
  });

  it("counts attempts and responses, and the run's accepted and rejected points", async () => {
    const run = await mapped(ledger(), "a", record(["A"], [slice("1", 10), slice("2", 5)]));
    await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
    await ledger().advanceBatch(`${run.id}-1`, "sending", "sending", { attempted: true, answer: "503" });
    const batch = await ledger().advanceBatch(`${run.id}-1`, "sending", "accepted", { answer: "200" });
    expect(batch).toMatchObject({ attempts: 2, answer: "200", state: "accepted" });
    expect(batch.acceptedAt).not.toBeNull();
    await ledger().advanceBatch(`${run.id}-2`, "ready", "sending", { attempted: true });
    await ledger().advanceBatch(`${run.id}-2`, "sending", "rejected", { answer: "400" });
    expect((await ledger().run(run.id))?.points).toMatchObject({ accepted: 10, rejected: 5 });
  });

  it("never sends an accepted batch again", async () => {
    const run = await mapped(ledger(), "a");
    await deliver(ledger(), run);
    await expect(ledger().advanceBatch(`${run.id}-1`, "accepted", "sending")).rejects.toThrow(InvariantError);
  });

  it("splits a batch into children that follow it and contain the same points", async () => {
    const run = await mapped(ledger(), "a", record(["A"], [slice("1", 10), slice("2", 4)]));
    const id = `${run.id}-1`;
    await ledger().advanceBatch(id, "ready", "sending", { attempted: true });
    await expect(ledger().splitBatch(id, [slice("1.1", 3)], "413")).rejects.toThrow(InvariantError);
    await expect(ledger().splitBatch(id, [slice("2.1", 10)], "413")).rejects.toThrow(InvariantError);
    const children = await ledger().splitBatch(id, [slice("1.1", 6), slice("1.2", 4)], "413");
    expect(children.map((child) => child.operationId)).toEqual([`${id}.1`, `${id}.2`]);
    expect((await ledger().batches(run.id)).map(({ sequence, state }) => [sequence, state])).toEqual([
      ["1", "split"],
      ["1.1", "ready"],
      ["1.2", "ready"],
      ["2", "ready"],
    ]);
    await ledger().advanceBatch(`${id}.1`, "ready", "sending", { attempted: true });
    await ledger().advanceBatch(`${id}.1`, "sending", "accepted");
    expect((await ledger().run(run.id))?.points.accepted).toBe(6);
  });

  it("keeps accepted batches when a lost segment is mapped again with equal bytes, and refuses others", async () => {
    const what = record(["A"], [slice("1", 10), slice("2", 5)]);
    const run = await mapped(ledger(), "a", what);
    await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
    await ledger().advanceBatch(`${run.id}-1`, "sending", "accepted");
    await ledger().advanceRun(run.id, "mapped", "fetched");
    await ledger().advanceRun(run.id, "fetched", "mapping");
    const other = record(["A"], [slice("1", 10), slice("2", 5, "else")]);
    await expect(ledger().recordMapped(run.id, other)).rejects.toThrow(RejectedError);
    expect((await ledger().run(run.id))?.state).toBe("mapping");
    expect((await ledger().recordMapped(run.id, what)).points).toMatchObject({ mapped: 15, accepted: 10 });
    expect((await ledger().batches(run.id)).map(({ state }) => state)).toEqual(["accepted", "ready"]);
  });
}

function outcomes(ledger: () => Ledger): void {
  it("records an outcome that comes before the acceptance, and counts stored and discarded points", async () => {
    const run = await mapped(ledger(), "a", record(["A"], [slice("1", 10), slice("2", 5)]));
    await ledger().advanceRun(run.id, "mapped", "delivering");
    await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
    expect(await ledger().recordOutcome(outcome(`${run.id}-1`, 8, 2))).toBe(run.id);
    const batch = await ledger().advanceBatch(`${run.id}-1`, "sending", "accepted");
    expect(batch.outcome).toEqual(outcome(`${run.id}-1`, 8, 2));
    expect((await ledger().run(run.id))?.points).toMatchObject({ accepted: 10, stored: 8, discarded: 2 });
  });

  it("changes nothing at a repetition, and recognizes operations of others", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "a"));
    await ledger().recordOutcome(outcome(`${run.id}-1`, 10));
    const before = await ledger().trace(run.id);
    expect(await ledger().recordOutcome(outcome(`${run.id}-1`, 1, 9))).toBe(run.id);
    expect(await ledger().trace(run.id)).toEqual(before);
    expect(await ledger().recordOutcome(outcome("somebody-else", 10))).toBeNull();
    expect(await ledger().runOfOperation(`${run.id}-1`)).toMatchObject({ id: run.id, binding: run.binding });
    expect(await ledger().runOfOperation("somebody-else")).toBeNull();
  });

  const later = "2026-03-01T00:00:01.000Z";
  const storedOf = async (run: Run) => (await ledger().run(run.id))?.points;
  const eventsOf = async (run: Run) =>
    (await ledger().events(run.arrivalId))
      .filter(({ what }) => what.startsWith("outcome."))
      .map(({ detail }) => detail);

  it.each([
    ["in order", false],
    ["the newer one first", true],
  ] as const)(
    "counts the newest of two outcomes of an operation that come %s, and reports both once",
    async (_, isTurned) => {
      const run = await deliver(ledger(), await mapped(ledger(), "a"));
      const failed = outcome(`${run.id}-1`, 0, 10);
      const applied = { ...outcome(`${run.id}-1`, 10), at: later };
      const told = isTurned ? [applied, failed] : [failed, applied];
      for (const one of [...told, ...told]) await ledger().recordOutcome(one);
      expect(await storedOf(run)).toMatchObject({ stored: 10, discarded: 0 });
      expect((await ledger().batches(run.id))[0]?.outcome).toEqual(applied);
      const events = await eventsOf(run);
      expect(events).toHaveLength(2);
      expect(events.join()).toMatch(/0 of 10 stored; 10 of sourceEan=A discarded: unknown variable/);
      expect(events.join()).toMatch(/10 of 10 stored/);
    },
  );

  it("keeps a newer read-back that found everything when an older webhook contradicts it", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "a"));
    await ledger().recordOutcome({ ...outcome(`${run.id}-1`, 10, 0, "read-back"), at: later });
    await ledger().recordOutcome(outcome(`${run.id}-1`, 0, 10));
    expect(await storedOf(run)).toMatchObject({ stored: 10, discarded: 0 });
    expect(await eventsOf(run)).toHaveLength(2);
  });

  it("prefers the service's webhook to an earlier read-back", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "a"));
    await ledger().recordOutcome(outcome(`${run.id}-1`, 4, 6, "read-back"));
    await ledger().recordOutcome(outcome(`${run.id}-1`, 10));
    await ledger().recordOutcome(outcome(`${run.id}-1`, 4, 6, "read-back"));
    expect((await ledger().run(run.id))?.points).toMatchObject({ stored: 10, discarded: 0 });
  });
}

function questions(ledger: () => Ledger): void {
  it("traces by operation, run, name, path and the beginning of an id", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "in/a.csv"));
    await claimed(ledger(), "else/b.csv");
    for (const query of [`${run.id}-1`, run.id, "a.csv", "in/a.csv", `${run.id}-`, run.id.slice(0, -1)]) {
      const found = await ledger().trace(query);
      expect(found.map(({ arrival }) => arrival.path)).toContain("in/a.csv");
      expect(found[0]?.runs[0]?.batches[0]?.operationId ?? `${run.id}-1`).toBe(`${run.id}-1`);
    }
    expect((await ledger().trace("in/")).map(({ arrival }) => arrival.path)).toEqual(["in/a.csv"]);
    expect(await ledger().trace("n/")).toEqual([]);
    expect(await ledger().trace("never.csv")).toEqual([]);
    expect(await ledger().trace("else/a.csv")).toEqual([]);
  });

  it("counts the files that it would trace, however many it returns, with the entries of containers", async () => {
    for (const folder of ["in", "on", "up"]) await claimed(ledger(), `${folder}/a.csv`);
    const container = await claimed(ledger(), "in/b.zip");
    await ledger().advanceRun(container.id, "claimed", "fetched", { sha256: "s" });
    const entries = [1, 2, 3].map((nth) => ({ path: `${nth}.csv`, size: 1 }));
    await ledger().recordOpened(container.id, entries, "3 entries");
    const queries = { "a.csv": 3, "in/": 5, "b.zip": 4, [container.id]: 4, "in/a.csv": 1, "never.csv": 0, "": 0 };
    for (const [query, count] of Object.entries(queries)) {
      expect([query, await ledger().countTraced(query)]).toEqual([query, count]);
      expect(await ledger().trace(query)).toHaveLength(count);
      expect(await ledger().trace(query, 2)).toHaveLength(Math.min(count, 2));
    }
  });

  it("traces by the archived path of a file, in full or by name, and not by a part of the name", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "in/a.csv"));
    await ledger().noteRun(run.id, { finishPlan: { action: "archive", to: 'archive/in/a".01x.csv' } });
    for (const query of ['archive/in/a".01x.csv', 'a".01x.csv', 'in/a".01x.csv'])
      expect((await ledger().trace(query)).map(({ arrival }) => arrival.path)).toEqual(["in/a.csv"]);
    expect(await ledger().trace('".01x.csv')).toEqual([]);
  });

  it("shows the whole life of a file in order, newest version first", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "a.csv"));
    await list(ledger(), "field", [entry("a.csv", 101)]);
    const [newest, oldest] = await ledger().trace("a.csv");
    expect(newest?.arrival).toMatchObject({ size: 101, state: "settling" });
    expect(oldest?.events.map(({ what }) => what)).toEqual([
      "arrival.settling",
      "arrival.matched",
      "run.claimed",
      "run.fetched",
      "run.mapping",
      "run.mapped",
      "run.delivering",
      "batch.sending",
      "batch.accepted",
      "run.accepted",
      "arrival.superseded",
    ]);
    expect(oldest?.events.every((event) => event.arrivalId === run.arrivalId)).toBe(true);
    const times = oldest?.events.map(({ at }) => at) ?? [];
    expect(times).toEqual([...times].sort());
  });

  it("tallies the files at the drops and the files worked on since", async () => {
    const old = await deliver(ledger(), await mapped(ledger(), "old"));
    await ledger().noteRun(old.id, { finished: { at: "2026-03-01T00:01:00.000Z", left: true } });
    const [start] = (await ledger().events(old.arrivalId)).slice(-1);
    const since = new Date(Date.parse(start?.at ?? "") + 30_000).toISOString();
    await list(
      ledger(),
      "field",
      ["1", "2", "3", "4"].map((path) => entry(path)),
    );
    for (let step = 0; step < 40; step += 1) await ledger().addEvent(noise(old.arrivalId));
    const done = await deliver(ledger(), await mapped(ledger(), "1", record(["A"], [slice("1", 7)])));
    const bad = await claimed(ledger(), "2");
    await ledger().advanceRun(bad.id, "claimed", "quarantined");
    await ledger().advanceArrival((await sight(ledger(), "3")).arrival.id, "unmatched", "no trigger");
    await ledger().noteRun(done.id, { finished: { at: since, left: true } });
    expect(await ledger().tally(since)).toEqual({
      files: { delivered: 1, quarantined: 1, unmatched: 1, settling: 1 },
      points: { mapped: 7, accepted: 7, stored: 0, rejected: 0 },
      drops: new Map([["field", 1]]),
    });
  });

  it("counts runs in progress or held by trigger, drop and lane, and not those at rest", async () => {
    const first = await claimed(ledger(), "1");
    await claimed(ledger(), "2");
    const done = await deliver(ledger(), await mapped(ledger(), "3"));
    const { trigger, service, mapper } = BINDING;
    const common = { drop: "field", trigger, service, mapper: mapper.name, runs: 1 };
    expect((await ledger().backlog()).toSorted((a, b) => (a.state < b.state ? -1 : 1))).toEqual([
      { ...common, state: "accepted", oldest: done.createdAt },
      { ...common, state: "claimed", runs: 2, oldest: first.createdAt },
    ]);
    await ledger().noteRun(done.id, { settled: true });
    await ledger().advanceRun(first.id, "claimed", "quarantined");
    expect((await ledger().backlog()).map(({ state, runs }) => [state, runs])).toEqual([["claimed", 1]]);
  });
}

function noise(arrivalId: number) {
  return { arrivalId, runId: null, operationId: null, what: "note", detail: "" };
}

function sharedCommits(ledger: () => Ledger): void {
  it("open a refused run in quarantine, where it is never seen as claimed", async () => {
    const { sightings } = await list(ledger(), "field", [entry("refused.zip")]);
    const refusal = { code: "HG-PACK-005", message: "it lies in another" };
    const run = await ledger().openRun(sightings[0]?.arrival.id ?? 0, BINDING, "lane", { refusal });
    expect(run).toMatchObject({ state: "quarantined", reason: refusal });
    const events = (await ledger().events(run.arrivalId)).map(({ what }) => what);
    expect(events.slice(-2)).toEqual(["run.claimed", "run.quarantined"]);
  });

  it("open a list of runs in its order, without one that is refused and those behind it in its lanes", async () => {
    const { sightings } = await list(
      ledger(),
      "field",
      ["a", "b", "c", "d"].map((path) => entry(path)),
    );
    const opening = (path: string, lanes: readonly string[]) => {
      const found = sightings.find(({ arrival }) => arrival.path === path);
      return { arrivalId: found?.arrival.id ?? 987_654, binding: BINDING, lane: lanes[0] ?? "", lanes };
    };
    const opened = await ledger().openRuns([
      opening("a", ["one"]),
      opening("none", ["one", "two"]),
      opening("b", ["two"]),
      opening("c", ["three"]),
      opening("d", ["one"]),
    ]);
    expect(opened).toMatchObject([
      { run: { path: "a", lane: "one", state: "claimed" } },
      { run: null, why: "fault", thrown: { code: "HG-BUG-001" } },
      { run: null, why: "behind" },
      { run: { path: "c", lane: "three" } },
      { run: null, why: "behind" },
    ]);
    expect((await ledger().runsIn(["claimed"])).map(({ path }) => path)).toEqual(["a", "c"]);
    const waiting = await ledger().arrivalsIn("field", ["settling"]);
    expect(waiting.map(({ path }) => path)).toEqual(["b", "d"]);
  });

  it("do not affect each other when one of them fails", async () => {
    const { sightings } = await list(ledger(), "field", [entry("a"), entry("b"), entry("c")]);
    const [a, b, c] = sightings.map(({ arrival }) => arrival.id);
    const results = await Promise.allSettled([
      ledger().openRun(a ?? 0, BINDING, "lane"),
      ledger().openRun(987_654, BINDING, "lane"),
      ledger().advanceArrival(b ?? 0, "matched", "must not be"),
      ledger().openRun(c ?? 0, BINDING, "lane"),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect((await ledger().runsIn(["claimed"])).map(({ path }) => path)).toEqual(["a", "c"]);
  });
}
