import fc from "fast-check";
import { expect, it } from "vitest";
import { continuationRunId, createRunIds, entryRunId, runIdTimeMs } from "#core/run-id.ts";
import { archivedRun } from "#gateway/drops/paths.ts";

const time = fc.integer({ min: 0, max: 2 ** 47 });

it("run ids sort by time", () => {
  fc.assert(
    fc.property(fc.uniqueArray(time, { minLength: 2 }), (times) => {
      const sorted = [...times].sort((a, b) => a - b);
      const ids = sorted.map((ms) => createRunIds()(ms));
      expect(ids).toEqual([...ids].sort());
      for (const id of ids) expect(id).toMatch(/^[0-9a-hjkmnp-tv-z]{26}$/);
    }),
  );
});

it("run ids always increase, also when the clock stands still or steps back, and beyond former ones", () => {
  fc.assert(
    fc.property(fc.array(time, { minLength: 1 }), time, (times, before) => {
      const last = createRunIds()(before);
      const next = createRunIds(last);
      const ids = [last, ...times.map((ms) => next(ms))];
      for (const [index, id] of ids.entries()) if (index > 0) expect(id > (ids[index - 1] ?? "")).toBe(true);
    }),
  );
});

it("returns the time at which a run id was created", () => {
  fc.assert(
    fc.property(time, (ms) => {
      expect(runIdTimeMs(createRunIds()(ms))).toBe(ms);
    }),
  );
});

it("carries to the next greater id when no more random ones fit behind the last", () => {
  expect(createRunIds("00000000010fzzzzzzzzzzzzzz")(0)).toBe("00000000010g00000000000000");
});

it("puts a run that continues another right after it", () => {
  fc.assert(
    fc.property(time, time, (first, then) => {
      const next = createRunIds();
      const held = next(first);
      const ids = [held, continuationRunId(held), continuationRunId(continuationRunId(held)), next(then)];
      expect(ids).toEqual([...new Set(ids)].sort());
      expect(archivedRun(`archive/a.${ids[2]}.csv`)).toBe(ids[2]);
    }),
  );
});

it("puts the runs of entries between that of their container and the next one, at every depth", () => {
  fc.assert(
    fc.property(time, time, fc.uniqueArray(fc.nat(), { minLength: 1, maxLength: 5 }), (first, then, places) => {
      const next = createRunIds();
      const container = next(first);
      const entries = places.toSorted((a, b) => a - b).map((place) => entryRunId(container, place));
      const inner = entries.flatMap((id) => [id, entryRunId(id, 0), entryRunId(id, 1)]);
      // Also when the last one that a new process knows is that of an entry.
      const ids = [container, ...inner, createRunIds(inner.at(-1))(then)];
      expect(ids).toEqual([...ids].sort());
      expect(next(then) > (inner.at(-1) ?? "")).toBe(true);
      expect(runIdTimeMs(inner.at(-1) ?? "")).toBe(first);
    }),
  );
});
