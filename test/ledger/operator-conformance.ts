import { expect, it } from "vitest";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Run } from "#gateway/model.ts";
import { BINDING, claimed, deliver, entry, list, mapped, record, sight } from "./fixtures.ts";

const FINISHED = { finished: { at: "2026-03-01T00:00:00.000Z", left: false } } as const;
const BROKEN = { reason: { code: "HG-MAP-004", message: "no number" } };

export function operatorConformance(ledger: () => Ledger): void {
  async function delivered(path: string, targets: readonly string[] = ["A"]): Promise<Run> {
    const run = await deliver(ledger(), await mapped(ledger(), path, record(targets)));
    return ledger().noteRun(run.id, { ...FINISHED, settled: true });
  }
  const replayOf = (run: Run) =>
    ledger().openRun(run.arrivalId, BINDING, "lane", {
      replay: { of: run.id, rejectedOnly: false, overwrite: false, by: "ann" },
    });
  const target = (name: string) => ({ kind: "sourceEan", target: name });

  it("a pause stays until it ends, with its author and reason", async () => {
    const set = await ledger().pause({ kind: "drop", name: "field", by: "ann", why: "moves" });
    await ledger().pause({ kind: "trigger", name: "field", by: "bob", why: "" });
    expect(await ledger().pauses()).toMatchObject([set, { kind: "trigger", by: "bob" }]);
    await ledger().pause({ kind: "drop", name: "field", by: "eve", why: "moved" });
    expect((await ledger().pauses())[0]).toMatchObject({ by: "eve", why: "moved" });
    expect(await ledger().resume("drop", "field")).toBe(true);
    expect(await ledger().resume("drop", "field")).toBe(false);
    expect(await ledger().pauses()).toHaveLength(1);
  });

  it("forgets every version of a file and reports its records, so that it counts as new", async () => {
    const first = await delivered("in/a.csv");
    await list(ledger(), "field", []);
    const again = await sight(ledger(), "in/a.csv");
    await ledger().advanceArrival(again.arrival.id, "duplicate", "came before");
    const other = await delivered("in/b.csv");
    expect(await ledger().arrivalsAt("in/a.csv")).toHaveLength(2);
    expect(await ledger().forget("elsewhere", "in/a.csv", { by: "ann", why: "" })).toMatchObject({
      arrivals: 0,
    });
    expect(await ledger().forget("field", "in/a.csv", { by: "ann", why: "" })).toEqual({
      arrivals: 2,
      runs: [first.id],
      acceptedPoints: 10,
      unanswered: 0,
    });
    expect(await ledger().run(first.id)).toBeNull();
    expect(await ledger().run(other.id)).not.toBeNull();
    const fresh = await sight(ledger(), "in/a.csv");
    expect(fresh.seen).toBe("new");
    expect(await ledger().duplicateOf(fresh.arrival, "sha-in/a.csv")).toBeNull();
  });

  it("does not forget a file while one of its runs is in progress", async () => {
    const running = await mapped(ledger(), "running.csv");
    const accepted = await deliver(ledger(), await mapped(ledger(), "accepted.csv", record(["B"])));
    for (const path of ["running.csv", "accepted.csv"])
      await expect(ledger().forget("field", path, { by: "ann", why: "" })).rejects.toMatchObject({
        code: "HG-LEDG-006",
      });
    for (const run of [running, accepted]) expect(await ledger().events(run.arrivalId)).not.toEqual([]);
  });

  it("forgets a container with its entries, and not while one of them is in progress", async () => {
    const container = await claimed(ledger(), "c.zip");
    await ledger().advanceRun(container.id, "claimed", "fetched");
    await ledger().recordOpened(container.id, [entry("a.csv")], "1 entry");
    const [inside] = (await ledger().entries(container.arrivalId)).unclaimed;
    const run = await ledger().openRun(inside?.id ?? 0, BINDING, "lane");
    await expect(ledger().forget("field", "c.zip", { by: "ann", why: "" })).rejects.toMatchObject({
      code: "HG-LEDG-006",
    });
    await ledger().advanceRun(run.id, "claimed", "cancelled");
    await ledger().noteRun(run.id, FINISHED);
    await ledger().noteRun(container.id, { settled: true });
    expect(await ledger().forget("field", "c.zip", { by: "ann", why: "" })).toMatchObject({ arrivals: 2 });
    expect(await ledger().trace("a.csv")).toEqual([]);
  });

  it("returns of the runs at rest only the latest of each file, with its place", async () => {
    const old = await claimed(ledger(), "a.csv");
    await ledger().advanceRun(old.id, "claimed", "quarantined", BROKEN);
    const other = await claimed(ledger(), "b.csv");
    await ledger().advanceRun(other.id, "claimed", "quarantined", BROKEN);
    const ids = async () => (await ledger().restingIn(["quarantined"], 9)).map(({ run }) => run.id);
    expect(await ids()).toEqual([other.id, old.id]);
    const replay = await replayOf(old);
    expect(await ids()).toEqual([other.id]);
    await ledger().advanceRun(replay.id, "claimed", "quarantined", BROKEN);
    expect(await ids()).toEqual([replay.id, other.id]);
    expect((await ledger().restingIn(["quarantined"], 1))[0]?.arrival).toMatchObject({ path: "a.csv" });
  });

  it("a replay is a new run of the same arrival that names the run before it", async () => {
    const old = await delivered("a.csv");
    const replay = await replayOf(old);
    expect(replay).toMatchObject({
      arrivalId: old.arrivalId,
      state: "claimed",
      sha256: old.sha256,
      replay: { of: old.id, by: "ann" },
    });
    expect(old.replay).toBeNull();
    expect((await ledger().runOf(old.arrivalId))?.id).toBe(replay.id);
    const told = (await ledger().events(old.arrivalId)).at(-1);
    expect(told).toMatchObject({ what: "run.claimed", detail: expect.stringContaining(old.id) });
    const noted = await ledger().noteRun(replay.id, {
      replay: { of: old.id, rejectedOnly: false, overwrite: false, by: "ann", spared: ["x"] },
    });
    expect(noted.replay?.spared).toEqual(["x"]);
    await expect(replayOf(old)).rejects.toMatchObject({ code: "HG-LEDG-006" });
  });

  it("finds later delivered runs of other files that share a target", async () => {
    const old = await delivered("old.csv", ["A", "B"]);
    const shares = await delivered("shares.csv", ["B", "C"]);
    await delivered("else.csv", ["D"]);
    const open = await mapped(ledger(), "open.csv", record(["A"]));
    const replay = await replayOf(old);
    const beyond = await delivered("beyond.csv", ["A"]);
    const ids = async (names: readonly string[], before: string) =>
      (await ledger().laterRuns(old, names.map(target), before)).map(({ id }) => id);
    expect(await ids(["A", "B"], replay.id)).toEqual([shares.id]);
    expect(await ids(["A"], replay.id)).toEqual([]);
    expect(await ids(["A", "B"], "~")).toEqual([shares.id, beyond.id]);
    await deliver(ledger(), open);
    expect(await ids(["A"], replay.id)).toEqual([open.id]);
  });

  it("finds the runs of other files that overtook a held one and share a target", async () => {
    const held = await mapped(ledger(), "held.csv", record(["A", "B"]));
    await ledger().advanceRun(held.id, "mapped", "held");
    const ids = async (limit = 9) => (await ledger().laterDeliverers(held, limit)).map(({ id }) => id);
    await delivered("else.csv", ["D"]);
    const waiting = await mapped(ledger(), "waiting.csv", record(["A"]));
    expect(await ids()).toEqual([]);
    await ledger().advanceRun(waiting.id, "mapped", "delivering");
    const shares = await delivered("shares.csv", ["B", "C"]);
    expect(await ids()).toEqual([waiting.id, shares.id]);
    expect(await ids(1)).toEqual([waiting.id]);
    expect(await ledger().laterDeliverers(shares, 9)).toEqual([]);
  });

  it("begins no delivery while an earlier run of the same targets is in the way, also one just released", async () => {
    const held = await mapped(ledger(), "held.csv", record(["A"]));
    await ledger().advanceRun(held.id, "mapped", "held");
    const later = await mapped(ledger(), "later.csv", record(["A"]));
    expect(await ledger().blockedBy(later)).toBeNull();
    expect(await ledger().resumeHeld(held.id, "mapped", [], "structure came")).toMatchObject({
      state: "mapped",
      reason: null,
    });
    expect(await ledger().beginDelivery(later.id, "to main")).toMatchObject({
      run: null,
      blockedBy: { id: held.id },
    });
    expect(await ledger().run(later.id)).toMatchObject({ state: "mapped" });
    expect((await ledger().beginDelivery(held.id, "to main")).run).toMatchObject({ state: "delivering" });
    expect((await ledger().beginDelivery(later.id, "to main")).blockedBy).toMatchObject({ id: held.id });
    expect((await ledger().events(later.arrivalId)).map(({ what }) => what)).not.toContain("run.delivering");
  });

  it.each(["mapped", "delivering"] as const)(
    "lets no held run resume (%s) past one that it did not see",
    async (to) => {
      const held = await mapped(ledger(), "held.csv", record(["A"]));
      await ledger().advanceRun(held.id, "mapped", "held");
      const resume = (seen: readonly string[] | null) => ledger().resumeHeld(held.id, to, seen, "");
      const later = await mapped(ledger(), "later.csv", record(["A"]));
      await ledger().beginDelivery(later.id, "");
      for (const seen of [[], [later.id], null]) expect(await resume(seen), "it delivers now").toBeNull();
      await ledger().advanceRun(later.id, "delivering", "accepted");
      expect(await resume([])).toBeNull();
      const other = await delivered("other.csv");
      expect(await resume([later.id])).toBeNull();
      expect(await ledger().run(held.id)).toMatchObject({ state: "held" });
      expect(await resume(to === "mapped" ? [later.id, other.id] : null)).toMatchObject({ state: to });
    },
  );

  it("continues a held run in its place of the lane, and puts a replay that a person ordered last", async () => {
    const held = await mapped(ledger(), "held.csv", record(["A"]));
    await ledger().advanceRun(held.id, "mapped", "held");
    const later = await mapped(ledger(), "later.csv", record(["A"]));
    const other = { ...held.binding, mapper: { ...held.binding.mapper, version: "9.9.9", digest: "99" } };
    const order = { of: held.id, rejectedOnly: false, overwrite: true, by: "Headgate", why: "the mapper was changed" };
    const replace = (id: string, continues?: "claim") =>
      ledger().replaceHeld(
        id,
        { code: "HG-RUN-010", message: "the mapper was changed" },
        {
          binding: other,
          lane: held.lane,
          replay: { ...order, of: id, ...(continues === undefined ? {} : { continues }) },
        },
      );
    const { run } = await replace(held.id, "claim");
    expect(run).toMatchObject({
      state: "claimed",
      arrivalId: held.arrivalId,
      binding: { mapper: { version: "9.9.9" } },
    });
    expect(run.id > held.id && run.id < later.id).toBe(true);
    expect(await ledger().run(held.id)).toMatchObject({
      state: "cancelled",
      reason: { message: `the mapper was changed; its file is run ${run.id} now` },
    });
    expect(await ledger().runOf(held.arrivalId)).toMatchObject({ id: run.id });
    // What it will deliver is not known before it is mapped.
    expect((await ledger().beginDelivery(later.id, "to main")).blockedBy).toMatchObject({ id: run.id });
    await expect(replace(held.id, "claim")).rejects.toThrow("is cancelled, and not held");
    expect(await ledger().runOf(held.arrivalId)).toMatchObject({ id: run.id });

    await ledger().advanceRun(run.id, "claimed", "fetched", { sha256: "a" });
    await ledger().advanceRun(run.id, "fetched", "mapping");
    await ledger().recordMapped(run.id, record(["A"]));
    expect((await ledger().beginDelivery(later.id, "to main")).blockedBy).toMatchObject({ id: run.id });
    await ledger().advanceRun(run.id, "mapped", "held");
    const { run: again } = await replace(run.id);
    expect(again.id > later.id).toBe(true);
    expect((await ledger().beginDelivery(later.id, "to main")).run).toMatchObject({ state: "delivering" });
    expect(await ledger().check()).toEqual([]);
  });

  it("releases no held run into the delivery of an earlier one", async () => {
    const earlier = await mapped(ledger(), "earlier.csv", record(["A"]));
    const held = await mapped(ledger(), "held.csv", record(["A"]));
    await ledger().advanceRun(held.id, "mapped", "held");
    await ledger().beginDelivery(earlier.id, "");
    expect(await ledger().resumeHeld(held.id, "delivering", [], "")).toBeNull();
    await ledger().advanceRun(earlier.id, "delivering", "accepted");
    expect(await ledger().resumeHeld(held.id, "delivering", [], "")).toMatchObject({ state: "delivering" });
  });

  it("tells by drop which files were replaced or had been delivered since an instant", async () => {
    for (const path of ["a.csv", "b.csv"]) {
      const { id } = await delivered(path);
      for (let nth = 0; nth < 2; nth += 1) await ledger().noteRun(id, { event: "source.changed", detail: "" });
    }
    for (const [path, repeats] of [
      ["c.csv", "earlier-1"],
      ["d.csv", "earlier-2"],
    ] as const) {
      const { id } = await mapped(ledger(), path, record([path]));
      await ledger().advanceRun(id, "mapped", "delivering");
      await ledger().advanceBatch(`${id}-1`, "ready", "sending", { attempted: true });
      await ledger().acceptBatch(`${id}-1`, "200", { service: "main" }, repeats);
    }
    const latestAt = expect.any(String);
    expect(await ledger().noticesSince("2000-01-01T00:00:00.000Z")).toEqual([
      { kind: "repeated", drop: "field", files: 2, example: "earlier-2", latestAt },
      { kind: "replaced", drop: "field", files: 2, example: "b.csv", latestAt },
    ]);
    expect(await ledger().noticesSince("2999-01-01T00:00:00.000Z")).toEqual([]);
  });

  it("finds no fault in its own records", async () => {
    const old = await delivered("a.csv");
    await mapped(ledger(), "b.csv");
    const broken = await claimed(ledger(), "c.csv");
    await ledger().advanceRun(broken.id, "claimed", "quarantined", BROKEN);
    const replay = await replayOf(old);
    await ledger().advanceRun(replay.id, "claimed", "cancelled");
    expect(await ledger().check()).toEqual([]);
  });

  it("forgets a file whose broken run was replayed successfully, when its time has come", async () => {
    const old = await claimed(ledger(), "a.csv");
    await ledger().advanceRun(old.id, "claimed", "quarantined", BROKEN);
    await ledger().noteRun(old.id, FINISHED);
    const replay = await replayOf(old);
    await ledger().advanceRun(replay.id, "claimed", "fetched");
    await ledger().advanceRun(replay.id, "fetched", "empty");
    await list(ledger(), "field", []);
    expect(await ledger().prune("2999-01-01T00:00:00.000Z", 9)).toBe(0);
    await ledger().noteRun(replay.id, FINISHED);
    expect(await ledger().prune("2999-01-01T00:00:00.000Z", 9)).toBe(1);
  });
}
