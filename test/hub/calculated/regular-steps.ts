/** Points at regular dates, for tests of what formulas see. */
import type { DirectedSteps, Interval, PointSteps } from "#hub/calculated/recalculation/reach.ts";

/** Points at the multiples of a step, and the queries that were made for ordered dates. */
export function regularSteps(stepMs: number, { fromMs, toMs }: Interval) {
  const queries = { made: 0, dates: 0 };
  const directed = (first: (ms: number) => number, moveMs: number): DirectedSteps => {
    const dateOf = (ms: number, nth: number) => {
      const date = first(ms) + nth * moveMs;
      return date >= fromMs && date <= toMs ? date : null;
    };
    return {
      nth: async (ms, count) => dateOf(ms, count - 1),
      async next(ms, limit) {
        const dates = Array.from({ length: limit }, (_, nth) => dateOf(ms, nth)).filter((date) => date !== null);
        queries.made += 1;
        queries.dates += dates.length;
        return dates;
      },
    };
  };
  const steps: PointSteps = {
    after: directed((ms) => (Math.floor(ms / stepMs) + 1) * stepMs, stepMs),
    before: directed((ms) => (Math.ceil(ms / stepMs) - 1) * stepMs, -stepMs),
  };
  return { steps, queries };
}
