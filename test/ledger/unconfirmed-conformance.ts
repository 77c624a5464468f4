import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run } from "#gateway/model.ts";
import { claimed, deliver, mapped, outcome, record, sight } from "./fixtures.ts";

const EVER = "2000-01-01T00:00:00.000Z";
const LATER = "2027-01-01T00:00:00.000Z";
const UNKNOWN = { reason: { code: "HG-RUN-005", message: "the service is away" } };

/** Accepted runs of which nobody could say in time whether they are stored. */
export function unconfirmedConformance(ledger: () => Ledger): void {
  async function unconfirmed(path: string): Promise<Run> {
    const run = await deliver(ledger(), await mapped(ledger(), path));
    return ledger().advanceRun(run.id, "accepted", "unconfirmed", UNKNOWN);
  }

  it("are listed, counted separately in the summary, and reported in the backlog", async () => {
    const run = await unconfirmed("a.csv");
    expect(await ledger().runsIn(["unconfirmed"])).toMatchObject([{ id: run.id, reason: UNKNOWN.reason }]);
    expect(await ledger().runsIn(["unconfirmed"], { unsettled: true })).toHaveLength(1);
    expect(await ledger().runsIn(["unconfirmed"], { unfinished: true })).toHaveLength(1);
    expect(await ledger().restingIn(["unconfirmed"], 9)).toMatchObject([{ arrival: { path: "a.csv" } }]);
    expect((await ledger().tally(EVER)).files).toEqual({ unconfirmed: 1 });
    expect(await ledger().backlog()).toMatchObject([{ state: "unconfirmed", runs: 1 }]);
    expect(await ledger().check()).toEqual([]);
  });

  it("release the next run of their lane, and their content is a duplicate when it comes again", async () => {
    await unconfirmed("a.csv");
    const next = await mapped(ledger(), "b.csv", record(["A"]));
    expect(await ledger().blockedBy(next)).toBeNull();
    const { arrival } = await sight(ledger(), "c.csv");
    expect(await ledger().duplicateOf({ ...arrival, path: "a.csv" }, "sha-a.csv")).not.toBeNull();
  });

  it("count among those that overtake a held run, and that a replay would overwrite", async () => {
    const first = await mapped(ledger(), "a.csv");
    const later = await unconfirmed("b.csv");
    expect(await ledger().laterDeliverers(first, 9)).toMatchObject([{ id: later.id }]);
    const targets = [{ kind: "sourceEan", target: "A" }];
    expect(await ledger().laterRuns(first, targets, "~")).toMatchObject([{ id: later.id }]);
  });

  it("become confirmed or discarded by a late outcome, and are never sent again", async () => {
    const stored = await unconfirmed("a.csv");
    const lost = await unconfirmed("b.csv");
    await ledger().recordOutcome(outcome(`${stored.id}-1`, 10));
    await ledger().advanceRun(stored.id, "unconfirmed", "confirmed", { reason: null });
    await ledger().advanceRun(lost.id, "unconfirmed", "discarded");
    const third = await unconfirmed("c.csv");
    for (const state of ["mapped", "delivering", "accepted", "cancelled"] as const)
      await expect(ledger().advanceRun(third.id, "unconfirmed", state)).rejects.toMatchObject({
        code: "HG-BUG-001",
      });
  });

  it("are not forgotten by pruning, and can be forgotten and replayed by an operator", async () => {
    const run = await unconfirmed("a.csv");
    await ledger().noteRun(run.id, { finished: { at: EVER, left: true } });
    expect(await ledger().prune(LATER, 9)).toBe(0);
    await ledger().openRun(run.arrivalId, run.binding, "lane", {
      replay: { of: run.id, rejectedOnly: false, overwrite: false, by: "ann" },
    });
    const other = await unconfirmed("b.csv");
    expect(await ledger().forget("field", "b.csv", { by: "ann", why: "" })).toMatchObject({
      runs: [other.id],
      acceptedPoints: 10,
    });
  });

  it("of a container's entries keep the container at its path until they are finished", async () => {
    const container = await claimed(ledger(), "c.zip");
    await ledger().advanceRun(container.id, "claimed", "fetched");
    await ledger().recordOpened(container.id, [{ path: "a.csv", size: 1 }], "1 entry");
    const [inside] = (await ledger().entries(container.arrivalId)).unclaimed;
    const run = await ledger().openRun(inside?.id ?? 0, container.binding, "lane");
    await ledger().advanceRun(run.id, "claimed", "fetched");
    await ledger().advanceRun(run.id, "fetched", "mapping");
    await deliver(ledger(), await ledger().recordMapped(run.id, record(["A"])));
    await ledger().advanceRun(run.id, "accepted", "unconfirmed", UNKNOWN);
    expect(await ledger().entries(container.arrivalId)).toMatchObject({
      inProgress: null,
      done: 0,
      staying: [{ path: "c.zip!/a.csv", state: "unconfirmed" }],
    });
    await ledger().noteRun(run.id, { finished: { at: EVER, left: false } });
    expect(await ledger().entries(container.arrivalId)).toMatchObject({ done: 1, staying: [] });
  });
}
