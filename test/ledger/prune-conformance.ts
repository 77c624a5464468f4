import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { claimed, deliver, entry, list, mapped, sight } from "./fixtures.ts";

const EARLY = "1970-01-01T00:00:00.000Z";
const LATE = "2999-01-01T00:00:00.000Z";
const FINISHED = { finished: { at: "2026-03-01T00:00:00.000Z", left: true } } as const;

export function pruneConformance(ledger: () => Ledger): void {
  async function delivered(path: string): Promise<number> {
    const run = await deliver(ledger(), await mapped(ledger(), path));
    await ledger().noteRun(run.id, { ...FINISHED, settled: true });
    return run.arrivalId;
  }

  it("forgets a delivered file that left before the instant, with all its records", async () => {
    const id = await delivered("a.csv");
    expect(await ledger().prune(EARLY, 10)).toBe(0);
    expect(await ledger().prune(LATE, 10)).toBe(1);
    expect(await ledger().arrival(id)).toBeNull();
    expect(await ledger().events(id)).toEqual([]);
    expect(await ledger().trace("a.csv")).toEqual([]);
    expect(await ledger().prune(LATE, 10)).toBe(0);
  });

  it("forgets no more at once than its limit", async () => {
    for (const path of ["a", "b", "c"]) await delivered(path);
    expect(await ledger().prune(LATE, 2)).toBe(2);
    expect(await ledger().prune(LATE, 2)).toBe(1);
  });

  it("never forgets a file at a drop, or an earlier version of it, which may come again", async () => {
    const lying = await mapped(ledger(), "lying.csv");
    const before = await delivered("again.csv");
    const { arrival } = await sight(ledger(), "again.csv");
    expect(await ledger().prune(LATE, 10)).toBe(0);
    expect((await ledger().arrival(lying.arrivalId))?.goneAt).toBeNull();
    expect((await ledger().duplicateOf(arrival, "sha-again.csv"))?.id).toBe(before);
  });

  it("never forgets files in progress, with awaited outcomes, not finished, or that need attention", async () => {
    const running = await mapped(ledger(), "running.csv");
    const accepted = await deliver(ledger(), await mapped(ledger(), "accepted.csv"));
    await ledger().noteRun(accepted.id, FINISHED);
    const unfinished = await claimed(ledger(), "unfinished.csv");
    await ledger().advanceRun(unfinished.id, "claimed", "cancelled");
    const broken = await claimed(ledger(), "broken.csv");
    await ledger().advanceRun(broken.id, "claimed", "quarantined");
    await ledger().noteRun(broken.id, FINISHED);
    await list(ledger(), "field", []);
    expect(await ledger().prune(LATE, 10)).toBe(0);
    for (const run of [running, accepted, unfinished, broken]) expect(await ledger().run(run.id)).not.toBeNull();
  });

  it("forgets a file that was seen and left without a run", async () => {
    await list(ledger(), "field", [entry("a"), entry("b")]);
    await list(ledger(), "field", [entry("b")]);
    expect(await ledger().prune(LATE, 10)).toBe(1);
    expect(await ledger().arrivalsIn("field", ["settling"])).toHaveLength(1);
  });
}
