/** Runs that pass several states in one transaction: they must come to the same as one by one, or record nothing. */
import { expect, it } from "vitest";
import { InvariantError } from "#core/errors.ts";
import type { Advanced, Ledger, RunAdvance } from "#gateway/ledger/ledger.ts";
import type { Run, RunState } from "#gateway/model.ts";
import { BINDING, claimed, entry, list, mapped, outcome, record, sight, slice } from "./fixtures.ts";

const REJECTED = { code: "HG-MAP-003", message: "no number", place: { row: 3 } };

type Intake = Partial<Pick<RunAdvance, "duplicates" | "mapped">> & { readonly sha256?: string };

const FINDING = { kind: "skipRows", message: "left out", count: 2, first: { row: 3 }, last: { row: 9, text: "Total" } };
const MAPPED = {
  ...record(["A", "B"], [slice("1", 10), slice("2", 5)]),
  findings: [FINDING],
  detail: "15 points",
};

/** `claimed → fetched → mapping → mapped`. */
function intake(run: Run, change: Intake = {}): RunAdvance {
  const { sha256 = "same", ...rest } = change;
  return {
    id: run.id,
    from: "claimed",
    through: [
      { to: "fetched", change: { sha256, reason: null, detail: "100 bytes" } },
      { to: "mapping", change: { detail: "by standard" } },
      { to: "mapped" },
    ],
    duplicates: "skip",
    mapped: MAPPED,
    ...rest,
  };
}

async function take(ledger: Ledger, run: Run, change: Intake = {}): Promise<Advanced> {
  const [advanced] = await ledger.advanceRuns([intake(run, change)]);
  if (advanced === undefined) throw new Error("nothing was answered");
  return advanced;
}

/** Everything of a run but its times and what it is called. */
async function lifeOf(ledger: Ledger, run: Run) {
  const strip = (text: string) => text.replaceAll(run.id, "run").replaceAll(run.path, "file");
  const now = await ledger.run(run.id);
  const events = (await ledger.events(run.arrivalId)).map(({ what, detail, operationId }) => ({
    what,
    detail: strip(detail),
    operationId: operationId === null ? null : strip(operationId),
  }));
  const batches = (await ledger.batches(run.id)).map((batch) => ({
    ...batch,
    runId: "",
    operationId: strip(batch.operationId),
    idempotencyKey: strip(batch.idempotencyKey),
    acceptedAt: batch.acceptedAt === null ? null : "then",
  }));
  return {
    run: { ...now, id: "", arrivalId: 0, path: "", createdAt: "", changedAt: "" },
    sha256: (await ledger.arrival(run.arrivalId))?.sha256,
    rejected: await ledger.rejectedRows(run.id),
    events,
    batches,
  };
}

export function advanceConformance(ledger: () => Ledger): void {
  const BROKEN = { reason: { code: "HG-MAP-001", message: "broken" } };
  const nothingOf = async (run: Run, state: RunState = "claimed") => {
    expect(await ledger().run(run.id)).toMatchObject({ state, sha256: null, points: { mapped: 0 } });
    expect(await ledger().batches(run.id)).toEqual([]);
    expect((await ledger().arrival(run.arrivalId))?.sha256).toBeNull();
    expect((await ledger().events(run.arrivalId)).map(({ what }) => what)).not.toContain("run.mapped");
  };
  /** The same path again, after the first went. */
  const again = async (path: string) => {
    await list(ledger(), "field", []);
    return claimed(ledger(), path);
  };
  const begin = async (run: Run) => {
    const begun = await ledger().beginDelivery(run.id, "to main");
    if (begun.run === null) throw new Error(`${begun.blockedBy.path} is in the way`);
    return begun.batches;
  };
  const sending = async (path: string, slices = [slice("1", 10), slice("2", 5)]) => {
    const run = await mapped(ledger(), path, record([path], slices));
    for (const { operationId } of await begin(run))
      await ledger().advanceBatch(operationId, "ready", "sending", { attempted: true });
    return run;
  };
  const accept = (run: Run, sequence: string) =>
    ledger().acceptBatch(`${run.id}-${sequence}`, "200 OK", { service: "main" });

  it("a run that passes several states ends like one that passes them one by one", async () => {
    const mappedOnce = { ...MAPPED, rejected: [REJECTED], rejectedCount: 1 };
    const alone = await claimed(ledger(), "alone");
    const words = { sha256: "same", reason: null, detail: "100 bytes" };
    await ledger().advanceRun(alone.id, "claimed", "fetched", words);
    await ledger().advanceRun(alone.id, "fetched", "mapping", { detail: "by standard" });
    await ledger().recordMapped(alone.id, mappedOnce);
    const together = await claimed(ledger(), "together");
    await ledger().noteRun(together.id, BROKEN);
    const { run } = await take(ledger(), together, { mapped: mappedOnce });
    expect(run).toEqual(await ledger().run(together.id));
    expect(run?.findings).toEqual([FINDING]);
    expect(await lifeOf(ledger(), together)).toEqual(await lifeOf(ledger(), alone));
    expect((await ledger().blockedBy(together))?.id, "it shares targets").toBe(alone.id);
    expect(await ledger().check()).toEqual([]);
  });

  it("a run in another state than expected, or with a forbidden transition, does not advance", async () => {
    const run = await claimed(ledger(), "a");
    await ledger().advanceRun(run.id, "claimed", "quarantined", BROKEN);
    const refused = { run: null, why: "fault", thrown: expect.any(InvariantError) };
    expect(await take(ledger(), run)).toEqual(refused);
    await nothingOf(run, "quarantined");
    const once = await claimed(ledger(), "b");
    await take(ledger(), once);
    expect(await take(ledger(), once)).toEqual(refused);
    expect(await ledger().batches(once.id)).toHaveLength(2);
    const hasty = await claimed(ledger(), "c");
    const { id } = hasty;
    const wrong: readonly RunAdvance[] = [
      { id, from: "claimed", through: [{ to: "fetched" }, { to: "mapped" }], mapped: MAPPED },
      { id, from: "claimed", through: [{ to: "fetched" }, { to: "mapping" }, { to: "mapped" }] },
      { id, from: "claimed", through: [{ to: "fetched" }], mapped: MAPPED },
      { id: "nobody", from: "claimed", through: [{ to: "fetched" }] },
    ];
    expect(await ledger().advanceRuns(wrong)).toEqual(wrong.map(() => refused));
    await nothingOf(hasty);
  });

  it.each(["skip", "flag"] as const)("repeated content is not recorded (%s)", async (rule) => {
    await take(ledger(), await claimed(ledger(), "a"));
    const run = await again("a");
    expect(await take(ledger(), run, { duplicates: rule })).toEqual({ run: null, why: "known" });
    await nothingOf(run);
    const other = await take(ledger(), run, { sha256: "other", duplicates: rule });
    expect(other.run).toMatchObject({ state: "mapped", sha256: "other" });
  });

  it("repeated content is recorded where all content is processed", async () => {
    await take(ledger(), await claimed(ledger(), "a"));
    // Of the same size and time it may be the first version itself that is back, and the caller finds out.
    const back = await again("a");
    expect(await take(ledger(), back, { duplicates: "process" })).toEqual({ run: null, why: "known" });
    await nothingOf(back);
    const { sightings } = await list(ledger(), "field", [entry("a", 100, "2")]);
    const run = await ledger().openRun(sightings[0]?.arrival.id ?? 0, BINDING, "lane");
    expect((await take(ledger(), run, { duplicates: "process" })).run?.state).toBe("mapped");
  });

  it("the later of two equal versions in one list is not recorded", async () => {
    const first = await claimed(ledger(), "a");
    const second = await again("a");
    const [one, other] = await ledger().advanceRuns([intake(first), intake(second)]);
    expect(one?.run?.state).toBe("mapped");
    expect(other).toEqual({ run: null, why: "known" });
    await nothingOf(second);
  });

  it("the later of two equal versions in one list waits when it comes first", async () => {
    const first = await claimed(ledger(), "a");
    const second = await again("a");
    const [other, one] = await ledger().advanceRuns([intake(second), intake(first)]);
    expect(one?.run?.state).toBe("mapped");
    expect(other).toEqual({ run: null, why: "unfetched" });
    await nothingOf(second);
  });

  it("the run of an arrival that is a duplicate is not recorded", async () => {
    const copy = await claimed(ledger(), "copy");
    await ledger().advanceArrival(copy.arrivalId, "duplicate", "the same bytes came before");
    expect(await take(ledger(), copy)).toEqual({ run: null, why: "known" });
    await nothingOf(copy);
  });

  it("a run that was mapped before keeps its batches, or does not advance", async () => {
    const lost = await mapped(ledger(), "lost", MAPPED);
    const batches = await ledger().batches(lost.id);
    await ledger().advanceRun(lost.id, "mapped", "claimed");
    const otherwise = { ...MAPPED, batches: [slice("1", 15)] };
    expect(await take(ledger(), lost, { mapped: otherwise })).toMatchObject({
      why: "fault",
      thrown: { code: "HG-LEDG-005" },
    });
    expect(await ledger().run(lost.id)).toMatchObject({ state: "claimed", sha256: "sha-lost" });
    expect((await take(ledger(), lost, { sha256: "sha-lost" })).run?.state).toBe("mapped");
    expect(await ledger().batches(lost.id)).toEqual(batches);
  });

  it("a run that fails affects no other run of its list, and is not changed", async () => {
    const [bad, good] = [await claimed(ledger(), "bad"), await claimed(ledger(), "good")];
    const broken = { ...MAPPED, batches: [slice("1"), slice("not a number")] };
    const results = await ledger().advanceRuns([intake(bad, { mapped: broken }), intake(good)]);
    expect(results.map(({ run }) => run?.state ?? null)).toEqual([null, "mapped"]);
    await nothingOf(bad);
    expect((await ledger().run(good.id))?.state).toBe("mapped");
  });

  it("a delivery begins with the present batches of its run", async () => {
    const run = await mapped(ledger(), "a", record(["A"], [slice("1"), slice("2")]));
    await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
    const batches = await begin(run);
    expect(batches).toEqual(await ledger().batches(run.id));
    expect(batches.map(({ state }) => state)).toEqual(["sending", "ready"]);
    const later = await mapped(ledger(), "b", record(["A"]));
    expect(await ledger().beginDelivery(later.id, "to main")).not.toHaveProperty("batches");
  });

  it("the last accepted batch also accepts its run, as two separate writes would", async () => {
    const alone = await sending("alone");
    for (const sequence of ["1", "2"])
      await ledger().advanceBatch(`${alone.id}-${sequence}`, "sending", "accepted", { answer: "200 OK" });
    await ledger().advanceRun(alone.id, "delivering", "accepted", {
      reason: null,
      detail: "15 points accepted by main",
    });
    const together = await sending("together");
    await ledger().noteRun(together.id, BROKEN);
    expect(await accept(together, "1")).toBeNull();
    expect(await ledger().run(together.id)).toMatchObject({ state: "delivering", points: { accepted: 10 } });
    const answered = await accept(together, "2");
    expect(answered).toEqual(await ledger().run(together.id));
    const sha256 = "";
    const lives = await Promise.all([lifeOf(ledger(), together), lifeOf(ledger(), alone)]);
    const [one, other] = lives.map((life) => ({ ...life, sha256, run: { ...life.run, sha256 } }));
    expect(one).toEqual(other);
    expect(await ledger().check()).toEqual([]);
  });

  it("a run is accepted when the last two of its batches are in one commit", async () => {
    const run = await sending("a");
    const answers = await Promise.all([accept(run, "2"), accept(run, "1")]);
    expect(answers.map((answer) => answer?.state ?? null)).toEqual([null, "accepted"]);
    expect(answers[1]?.points.accepted).toBe(15);
  });

  it("batches that are accepted in any order add up, and the last of them accepts the run", async () => {
    const points = [10, 5, 7, 1, 20];
    const run = await sending(
      "a",
      points.map((count, at) => slice(String(at + 1), count)),
    );
    let sum = 0;
    for (const [nth, at] of [4, 0, 3, 2, 1].entries()) {
      sum += points[at] ?? 0;
      const state = nth === points.length - 1 ? "accepted" : "delivering";
      expect((await accept(run, String(at + 1)))?.state ?? "delivering").toBe(state);
      expect(await ledger().run(run.id)).toMatchObject({ state, points: { accepted: sum, rejected: 0 } });
    }
    expect(await ledger().check()).toEqual([]);
  });

  it("a run with a batch that the service refused is not accepted with the last one", async () => {
    const run = await sending("a");
    await ledger().advanceBatch(`${run.id}-1`, "sending", "rejected", { answer: "400" });
    expect(await accept(run, "2")).toBeNull();
    expect(await ledger().run(run.id)).toMatchObject({
      state: "delivering",
      points: { accepted: 5, rejected: 10 },
    });
  });

  it("the children of a split batch count, and not the batch itself", async () => {
    const run = await sending("a");
    await accept(run, "1");
    await ledger().splitBatch(`${run.id}-2`, [slice("2.1", 3), slice("2.2", 2)], "413");
    for (const sequence of ["2.1", "2.2"])
      await ledger().advanceBatch(`${run.id}-${sequence}`, "ready", "sending", { attempted: true });
    expect(await accept(run, "2.2")).toBeNull();
    expect(await accept(run, "2.1")).toMatchObject({ state: "accepted", points: { accepted: 15 } });
  });

  it("a batch in another state than expected is not accepted, and neither is its run", async () => {
    const run = await mapped(ledger(), "a");
    await ledger().beginDelivery(run.id, "to main");
    await expect(accept(run, "1")).rejects.toThrow(InvariantError);
    await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
    expect(await accept(run, "1")).toMatchObject({ state: "accepted" });
    await expect(accept(run, "1"), "told twice").rejects.toThrow(InvariantError);
    await expect(accept(run, "9")).rejects.toThrow(InvariantError);
    expect((await ledger().events(run.arrivalId)).filter(({ what }) => what === "run.accepted")).toHaveLength(1);
  });

  it("a batch of a run that was given up is accepted, and the run stays unchanged", async () => {
    const run = await sending("a", [slice("1", 10)]);
    await ledger().advanceRun(run.id, "delivering", "cancelled", BROKEN);
    expect(await accept(run, "1")).toBeNull();
    expect(await ledger().run(run.id)).toMatchObject({
      state: "cancelled",
      points: { accepted: 10 },
      ...BROKEN,
    });
    expect((await ledger().batches(run.id))[0]).toMatchObject({ state: "accepted", answer: "200 OK" });
  });

  it("the finish plan of an accepted run is kept, unless it was decided before", async () => {
    const finishPlan = { action: "archive", to: "done/a" } as const;
    const last = (run: Run) => ledger().acceptBatch(`${run.id}-1`, "200", { service: "main", finishPlan });
    expect(await last(await sending("a", [slice("1")]))).toMatchObject({ finishPlan });
    const decided = await sending("b", [slice("1")]);
    await ledger().noteRun(decided.id, { finishPlan: { action: "leave" } });
    expect(await last(decided)).toMatchObject({ state: "accepted", finishPlan: { action: "leave" } });
  });

  it("the outcome of a webhook before the response to a batch is kept", async () => {
    const run = await sending("a", [slice("1", 10)]);
    await ledger().recordOutcome(outcome(`${run.id}-1`, 8, 2));
    expect((await accept(run, "1"))?.points).toMatchObject({ accepted: 10, stored: 8, discarded: 2 });
    expect((await ledger().batches(run.id))[0]?.outcome).toMatchObject({ stored: 8 });
  });

  it("releases later runs of the same targets, once it is accepted", async () => {
    const run = await claimed(ledger(), "a");
    await take(ledger(), run, { mapped: record(["A"]) });
    const later = await claimed(ledger(), "b");
    await take(ledger(), later, { sha256: "b", mapped: record(["A"]) });
    await ledger().beginDelivery(run.id, "to main");
    expect(await ledger().beginDelivery(later.id, "to main")).toMatchObject({ blockedBy: { id: run.id } });
    await ledger().advanceBatch(`${run.id}-1`, "ready", "sending", { attempted: true });
    await accept(run, "1");
    expect(await ledger().beginDelivery(later.id, "to main")).toMatchObject({ run: { state: "delivering" } });
    await sight(ledger(), "c");
  });
}
