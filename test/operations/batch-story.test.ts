/** Many batches of a run, folded for people. */
import { expect, it } from "vitest";
import type { Batch, LedgerEvent } from "#gateway/model.ts";
import { batchStory, eventStory } from "#gateway/operations/batch-story.ts";

const at = (nth: number) => new Date(Date.UTC(2026, 2, 1) + nth * 1_000).toISOString();

function batch(nth: number, more: Partial<Batch> = {}): Batch {
  return {
    ...{ sequence: String(nth), offset: nth, length: 10, points: 5, digest: "", runId: "r", operationId: `r-${nth}` },
    ...{ state: "accepted", attempts: 1, answer: `accepted in ${nth} ms`, acceptedAt: at(nth), outcome: null },
    ...{ idempotencyKey: "", repeats: null },
    ...more,
  };
}

const outcome = (stored: number): Batch["outcome"] => ({
  ...{ operationId: "", by: "webhook", received: 5, stored, discarded: [], at: at(1), detail: "" },
});

/** 2,300 batches, of which some were refused, sent again or not stored as a whole. */
const ODD: Readonly<Record<number, Partial<Batch>>> = {
  700: { state: "rejected", answer: "400: the date is no date" },
  900: { attempts: 2 },
  1200: { outcome: outcome(3) },
};
const batches = Array.from({ length: 2_300 }, (_, index) => batch(index + 1, ODD[index + 1] ?? {}));

function eventsOf(all: readonly Batch[]): readonly LedgerEvent[] {
  const event = (what: string, nth: number, more: Partial<LedgerEvent> = {}): LedgerEvent => ({
    ...{ at: at(nth), arrivalId: 1, runId: "r", operationId: null, what, detail: "" },
    ...more,
  });
  const ofBatches = all.flatMap(({ operationId, state, answer }, nth) => [
    event("batch.sending", nth, { operationId }),
    event(`batch.${state}`, nth, { operationId, detail: answer ?? "" }),
  ]);
  return [event("run.delivering", 0), ...ofBatches, event("run.accepted", all.length)];
}

it("shows of many batches the first, the last, and those that failed or differ", () => {
  const { shown, folded } = batchStory(batches);
  expect(shown.map(({ sequence }) => sequence)).toEqual(["1", "700", "900", "1200", "2300"]);
  expect(folded).toEqual({ batches: 2_295, points: 5 * 2_295, odd: 0 });
  const few = batches.slice(0, 20);
  expect(batchStory(few).shown).toEqual(few);
});

it("counts those that differ beyond the ones that it shows", () => {
  const many = batches.map((one, nth) => (nth % 10 === 5 ? { ...one, attempts: 3 } : one));
  const { shown, folded } = batchStory(many);
  expect(shown).toHaveLength(22);
  expect(folded.batches).toBe(2_300 - 22);
  expect(folded.odd).toBe(230 + 3 - 20);
});

it("folds the events of batches that went alike, and none of those that failed or differ", () => {
  const events = eventsOf(batches);
  const story = eventStory(events, [{ batches }]);
  expect(story.map(({ what, operationId, folded }) => [what, operationId, folded?.count ?? 1])).toEqual([
    ["run.delivering", null, 1],
    ["batch.sending", "r-1", 2_297],
    ["batch.accepted", "r-1", 2_297],
    ["batch.sending", "r-700", 1],
    ["batch.rejected", "r-700", 1],
    ["batch.sending", "r-900", 1],
    ["batch.accepted", "r-900", 1],
    ["batch.sending", "r-1200", 1],
    ["batch.accepted", "r-1200", 1],
    ["run.accepted", null, 1],
  ]);
  expect(story[1]?.folded).toEqual({ count: 2_297, lastAt: at(2_299), lastOperationId: "r-2300" });
  const few = eventsOf(batches.slice(0, 20));
  expect(eventStory(few, [{ batches: batches.slice(0, 20) }])).toEqual(few);
});

it("folds the events of failed batches too, where they are more than can be read", () => {
  const refused = batches.map((one) => ({ ...one, state: "rejected" as const, attempts: 4 }));
  // Twenty are shown one by one, with two events each; the others are a line for each kind.
  expect(eventStory(eventsOf(refused), [{ batches: refused }]).length).toBeLessThan(50);
});
