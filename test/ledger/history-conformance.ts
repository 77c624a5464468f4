import { expect, it } from "vitest";
import { runIdTimeMs } from "#core/run-id.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { BINDING, claimed, deliver, mapped, record, sight } from "./fixtures.ts";

const EVER = { fromMs: 0, untilMs: Date.parse("2100-01-01T00:00:00Z") };

export function historyConformance(ledger: () => Ledger): void {
  it("counts files, accepted points, runs that need a person, and delays of a time", async () => {
    const first = await deliver(ledger(), await mapped(ledger(), "a.csv", record(["A"])));
    const second = await claimed(ledger(), "b.csv");
    await ledger().advanceRun(second.id, "claimed", "quarantined", { reason: { code: "HG-MAP-001", message: "none" } });
    const replay = { of: second.id, rejectedOnly: false, overwrite: false, by: "ann" };
    await ledger().openRun(second.arrivalId, BINDING, "lane", { replay });
    const all = await ledger().runTotals(EVER);
    expect(all).toMatchObject({ files: 2, points: 10, errors: 1, delayed: 1 });
    const [batch] = await ledger().batches(first.id);
    const delayMs = Date.parse(batch?.acceptedAt ?? "") - Date.parse(first.createdAt);
    expect(all.delaySumMs).toBeCloseTo(delayMs, 0);

    const until = { fromMs: 0, untilMs: runIdTimeMs(second.id) };
    expect(await ledger().runTotals(until)).toMatchObject({ files: 1, points: 10, errors: 0 });
    const since = { fromMs: runIdTimeMs(second.id), untilMs: EVER.untilMs };
    expect(await ledger().runTotals(since)).toMatchObject({
      files: 1,
      points: 0,
      errors: 1,
      delaySumMs: 0,
      delayed: 0,
    });
  });

  it("finds the first file that a trigger claimed in each of several times", async () => {
    const first = await claimed(ledger(), "a.csv");
    const second = await claimed(ledger(), "b.csv", "lane", { ...BINDING, settings: { changed: true } });
    await claimed(ledger(), "c.csv", "lane", { ...BINDING, trigger: "another" });
    const after = { fromMs: runIdTimeMs(first.id) + 1, untilMs: EVER.untilMs };
    const before = { fromMs: 0, untilMs: runIdTimeMs(first.id) };
    expect(await ledger().firstFilesOf(BINDING.trigger, [EVER, after, before])).toEqual([
      { arrivalId: first.arrivalId, at: first.createdAt },
      { arrivalId: second.arrivalId, at: second.createdAt },
      null,
    ]);
    expect(await ledger().firstFilesOf("unknown", [EVER])).toEqual([null]);
  });

  it("finds the newest file of a drop", async () => {
    await sight(ledger(), "a.csv", "one");
    const { arrival } = await sight(ledger(), "b.csv", "one");
    await sight(ledger(), "c.csv", "other");
    expect(await ledger().lastArrivalAt("one")).toMatchObject({ id: arrival.id, path: "b.csv" });
    expect(await ledger().lastArrivalAt("none")).toBeNull();
  });

  it("counts the runs of each version of a mapper", async () => {
    const newer = { ...BINDING.mapper, version: "2", digest: "newer" };
    const first = await claimed(ledger(), "a.csv");
    const second = await claimed(ledger(), "b.csv", "lane", { ...BINDING, settings: { changed: true } });
    const third = await claimed(ledger(), "c.csv", "lane", { ...BINDING, mapper: newer });
    await ledger().advanceRun(second.id, "claimed", "quarantined", { reason: { code: "HG-MAP-001", message: "none" } });
    expect(await ledger().mapperRuns()).toEqual([
      { mapper: newer, runs: 1, quarantined: 0, first: third.id, last: third.id },
      { mapper: BINDING.mapper, runs: 2, quarantined: 1, first: first.id, last: second.id },
    ]);
  });
}
