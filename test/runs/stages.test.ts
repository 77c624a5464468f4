/** Which runs a stage takes beside those in progress. */
import { expect, test } from "vitest";
import type { Run } from "#gateway/model.ts";
import { freeSlots, openStages } from "#gateway/runs/stages.ts";

const OPTIONS = { intakeConcurrency: 3, intakePerDrop: null, deliveryConcurrency: 1 };

function runOf(drop: string, nth: number, size = 100): Run {
  return { id: `${drop} ${nth}`, drop, size, binding: { service: "hub" } } as Run;
}

/** Takes runs of the drop until the stage takes no more; their number. */
function takeAll(mayTake: (run: Run) => boolean, drop: string, size?: number): number {
  for (let nth = 0; nth < 1_000; nth += 1) if (!mayTake(runOf(drop, nth, size))) return nth;
  return 1_000;
}

test("a drop with a thousand files fills the slots, and a further drop has a spare one for its first file", () => {
  const [intake] = openStages({ ...OPTIONS, intakeSpare: 2 });
  if (intake === undefined) throw new Error("there is no stage");
  const mayTake = freeSlots(intake);
  expect(takeAll(mayTake, "a")).toBe(256 + 3);
  expect(["b", "b", "c", "d", "a"].map((drop) => mayTake(runOf(drop, 0, 1e9)))).toEqual([
    true,
    false,
    true,
    false,
    false,
  ]);
});

test("without spare slots, each drop waits until one of the others has ended", () => {
  const [intake] = openStages({ ...OPTIONS, intakeSpare: 0 });
  if (intake === undefined) throw new Error("there is no stage");
  const mayTake = freeSlots(intake);
  expect(takeAll(mayTake, "a", 1e9)).toBe(3);
  expect(mayTake(runOf("b", 0, 1e9))).toBe(false);
});
