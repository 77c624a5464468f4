import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { deliver, entry, mapped, sight } from "./fixtures.ts";

const AT = "2026-03-01T00:00:00.000Z";
const LATER = "2026-03-01T01:00:00.000Z";

/** Files that are watched after their end, archives of a drop, and pauses of writers. */
export function finishedConformance(ledger: () => Ledger): void {
  it("watches a finished file until its end, and knows its place", async () => {
    const run = await deliver(ledger(), await mapped(ledger(), "a.csv"));
    const watched = {
      place: "aside",
      identity: null,
      plan: { action: "delete" },
      endsAt: LATER,
      checkAt: AT,
    } as const;
    await ledger().noteRun(run.id, { finished: { at: AT, left: true }, watched });
    const files = ledger().finishedFiles;
    const [file] = await files.due("field", AT, 10);
    expect(file).toMatchObject({ ...watched, path: "a.csv", runId: run.id, size: run.size, changed: false });
    expect(await files.of(run.arrivalId)).toEqual(file);
    if (file === undefined) return;
    await files.postpone("field", [{ place: "aside", identity: "1:2", checkAt: LATER }]);
    expect(await files.due("field", AT, 10)).toEqual([]);
    await files.change(file, { changed: true, size: 7, checkAt: AT });
    expect(await files.due("field", AT, 10)).toMatchObject([{ changed: true, size: 7, identity: "1:2" }]);
    await files.change(file, { ended: true, event: { what: "source.deleted", detail: "a.csv" } });
    expect(await files.of(run.arrivalId)).toBeNull();
    expect((await ledger().events(run.arrivalId)).at(-1)).toMatchObject({ what: "source.deleted" });
  });

  it("returns, in parts, the files that their finish has moved, with the last place of each", async () => {
    const ended = async (path: string, ...events: [what: string, detail: string][]) => {
      const { arrival } = await sight(ledger(), path, "places");
      for (const [what, detail] of events)
        await ledger().addEvent({ arrivalId: arrival.id, runId: null, operationId: null, what, detail });
      return arrival.id;
    };
    const first = await ended("x/a.csv", ["source.left", ""], ["source.archived", "x/a.csv → old/x/a; 1.csv"]);
    await ended("b.csv", ["source.archived", "b.csv → old/b.csv"], ["source.returned", "old/b.csv → b.csv"]);
    await ended("c.csv", ["source.archived", "c.csv → old/c.csv"], ["source.changed", ""]);
    const aside = "x/d; e.csv → x/.aside-1; copied to old/x/d; e.csv after then, unless it changes";
    const last = await ended("x/d; e.csv", ["source.archived", "x/d; e.csv → old/x"], ["source.aside", aside]);
    await ended("f.csv");
    const { placed } = ledger().finishedFiles;
    const files = [
      { arrivalId: first, path: "x/a.csv", place: "old/x/a; 1.csv" },
      { arrivalId: last, path: "x/d; e.csv", place: "x/.aside-1" },
    ];
    expect(await placed("places", 0, 10)).toEqual({ files, next: null });
    const part = await placed("places", 0, 3);
    expect(part).toEqual({ files: files.slice(0, 1), next: expect.any(Number) });
    expect(await placed("places", part.next ?? 0, 3)).toEqual({ files: files.slice(1), next: null });
    expect(await placed("field", 0, 10)).toEqual({ files: [], next: null });
  });

  it("returns a file that waits at its path once a later version came there", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    const { id: arrivalId, drop, path, size, mtime } = arrival;
    const file = {
      place: path,
      identity: null,
      plan: { action: "delete" },
      endsAt: LATER,
      checkAt: LATER,
    } as const;
    const event = { what: "source.waits", detail: "" };
    await ledger().advanceArrival(arrivalId, "skipped", "");
    await ledger().finishedFiles.watch({ ...file, drop, path, size, mtime, arrivalId }, event);
    expect(await ledger().finishedFiles.due("field", AT, 10)).toEqual([]);
    const poll = await ledger().beginPoll("field");
    await poll.record([entry("a.csv", 200, "2")]);
    await poll.abandon();
    expect(await ledger().finishedFiles.due("field", AT, 10)).toMatchObject([{ path: "a.csv", arrivalId }]);
  });

  it("returns changed files that cannot go back to their paths, over all drops, until their watch ends", async () => {
    const { arrival } = await sight(ledger(), "a.csv");
    const { id: arrivalId, drop, path, size, mtime } = arrival;
    const looks = { endsAt: LATER, checkAt: LATER };
    const file = { place: "old/a.csv", identity: null, plan: { action: "delete" }, ...looks } as const;
    const event = { what: "source.aside", detail: "" };
    await ledger().advanceArrival(arrivalId, "skipped", "");
    const { finishedFiles } = ledger();
    await finishedFiles.watch({ ...file, drop, path, size, mtime, arrivalId }, event);
    expect(await finishedFiles.occupied()).toEqual([]);
    const watched = await finishedFiles.of(arrivalId);
    if (watched === null) throw new Error("it is not watched");
    await finishedFiles.change(watched, { changed: true, occupiedSince: AT });
    expect(await finishedFiles.occupied()).toEqual([{ ...watched, changed: true, occupiedSince: AT }]);
    await finishedFiles.change(watched, { ended: true });
    expect(await finishedFiles.occupied()).toEqual([]);
  });

  it("remembers the archives of a drop, and the longest pause of its writers", async () => {
    for (const folders of [["old"], ["new", "old"], []]) {
      const poll = await ledger().beginPoll("field", folders);
      await poll.abandon();
      expect(poll.archives).toContain("old");
    }
    expect((await ledger().finishedFiles.archives("field")).toSorted()).toEqual(["new", "old"]);
    expect(await ledger().finishedFiles.archives("other")).toEqual([]);
    for (const pauseMs of [2_000, 5_000, 1_000])
      await ledger().finishedFiles.noteGrowthPause("field", `${pauseMs}.csv`, pauseMs);
    expect(await ledger().finishedFiles.growthPause("field")).toMatchObject({
      path: "5000.csv",
      pauseMs: 5_000,
    });
  });
}
