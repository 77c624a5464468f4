/** Lists of runs: each goes along an index of its own, and all must tell the same. */
import { expect, it } from "vitest";
import type { Ledger, RunFilter } from "#gateway/ledger/ledger.ts";
import type { Run, RunState } from "#gateway/model.ts";
import { ALL_RUN_STATES } from "#gateway/states.ts";
import { BINDING, entry, list, record } from "./fixtures.ts";

const STATES = ALL_RUN_STATES;
/** The shortest way to each state that is not the first. */
const WAYS: Readonly<Record<string, readonly RunState[]>> = {
  fetched: ["fetched"],
  opened: ["fetched", "opened"],
  mapping: ["fetched", "mapping"],
  mapped: ["fetched", "mapping", "mapped"],
  delivering: ["fetched", "mapping", "mapped", "delivering"],
  accepted: ["fetched", "mapping", "mapped", "delivering", "accepted"],
  confirmed: ["fetched", "mapping", "mapped", "delivering", "accepted", "confirmed"],
  discarded: ["fetched", "mapping", "mapped", "delivering", "accepted", "discarded"],
  empty: ["fetched", "empty"],
  emptied: ["fetched", "mapping", "emptied"],
  held: ["fetched", "mapping", "mapped", "held"],
  quarantined: ["quarantined"],
  cancelled: ["cancelled"],
};

interface Known {
  readonly run: Run;
  readonly settled: boolean;
}

/** Of each state one that is settled and finished, and one that is neither, in another drop and lane. */
async function oneOfEach(ledger: Ledger): Promise<readonly Known[]> {
  const known: Known[] = [];
  for (const drop of ["field", "other"]) {
    const { sightings } = await list(
      ledger,
      drop,
      STATES.map((state) => entry(state)),
    );
    for (const { arrival } of sightings) {
      const state = arrival.path as RunState;
      let run = await ledger.openRun(arrival.id, BINDING, `lane of ${drop}`);
      for (const to of WAYS[state] ?? [])
        run =
          to === "mapped"
            ? await ledger.recordMapped(run.id, record([`${drop} ${state}`]))
            : await ledger.advanceRun(run.id, run.state, to);
      const settled = drop === "field";
      if (settled)
        run = await ledger.noteRun(run.id, {
          settled,
          finished: { at: "2026-03-01T00:00:00.000Z", left: false },
        });
      known.push({ run, settled });
    }
  }
  return known;
}

function isIn({ run, settled }: Known, filter: RunFilter): boolean {
  if (filter.unfinished === true && run.finishedAt !== null) return false;
  if (filter.unsettled === true && settled) return false;
  if (filter.drop !== undefined && run.drop !== filter.drop) return false;
  if (filter.lane !== undefined && run.lane !== filter.lane) return false;
  if (filter.after !== undefined && run.id <= filter.after) return false;
  return filter.except?.includes(run.id) !== true;
}

export function listConformance(ledger: () => Ledger): void {
  it("returns the same runs, drops and lanes for every combination of filters", async () => {
    const known = await oneOfEach(ledger());
    const middle = known[STATES.length - 2]?.run.id ?? "";
    const asked: readonly RunFilter[] = [
      {},
      { limit: 5 },
      { unfinished: true },
      { unsettled: true, limit: 7 },
      { unsettled: true, unfinished: true },
      { drop: "other" },
      { lane: "lane of field", limit: 3 },
      { drop: "field", lane: "lane of other" },
      { unfinished: true, drop: "other", ours: true },
      { unsettled: true, lane: "lane of other", ours: true },
      { after: middle, except: known.slice(-2).map(({ run }) => run.id) },
    ];
    const groups: readonly (readonly RunState[])[] = [STATES, ...STATES.map((state) => [state])];
    for (const filter of asked)
      for (const states of groups) {
        const words = JSON.stringify({ states, ...filter });
        const wanted = known.filter((one) => states.includes(one.run.state) && isIn(one, filter));
        const runs = wanted.map(({ run }) => run);
        expect(await ledger().runsIn(states, filter), words).toEqual(runs.slice(0, filter.limit));
        for (const by of ["drop", "lane"] as const)
          expect((await ledger().groupsOf(states, by, filter)).toSorted(), words).toEqual(
            [...new Set(runs.map((run) => run[by]))].sort(),
          );
      }
  });

  it("returns the newest runs of some states, and those at rest that are the latest of their files", async () => {
    const known = (await oneOfEach(ledger())).map(({ run }) => run);
    const some: readonly RunState[] = ["claimed", "held", "quarantined", "accepted", "delivering"];
    const newest = known.filter(({ state }) => some.includes(state)).toReversed();
    expect(await ledger().recentRuns(4, some)).toEqual(newest.slice(0, 4));
    expect(await ledger().recentRuns(99)).toEqual(known.toReversed());
    const old = known.find(({ state }) => state === "accepted");
    const replay = { of: old?.id ?? "", rejectedOnly: false, overwrite: false, by: "ann" };
    await ledger().openRun(old?.arrivalId ?? 0, BINDING, "lane", { replay });
    const resting = await ledger().restingIn(["held", "accepted"], 9);
    const wanted = newest.filter(({ id, state }) => id !== old?.id && /held|accepted/.test(state));
    expect(resting.map(({ run }) => run)).toEqual(wanted);
    expect(resting.map(({ arrival }) => arrival.id)).toEqual(wanted.map(({ arrivalId }) => arrivalId));
  });
  it("returns the newest run of a trigger, whatever its present configuration", async () => {
    const { sightings } = await list(
      ledger(),
      "field",
      ["a", "b", "c"].map((path) => entry(path)),
    );
    const runs: Run[] = [];
    for (const [nth, { arrival }] of sightings.entries()) {
      const own = nth === 2 ? { trigger: "other" } : { settings: { nth } };
      runs.push(await ledger().openRun(arrival.id, { ...BINDING, ...own }, "lane"));
    }
    expect((await ledger().latestRunOf(BINDING.trigger))?.id).toBe(runs[1]?.id);
    expect((await ledger().latestRunOf("other"))?.id).toBe(runs[2]?.id);
    expect(await ledger().latestRunOf("none")).toBeNull();
  });
}
