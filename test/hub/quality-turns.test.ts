/** Tasks of data quality take turns by account; the threads are replaced. */
import { expect, test } from "vitest";
import type { SeriesAnswer, SeriesJob, VariableAsk } from "#hub/quality/losses.ts";
import { createSeriesReports } from "#hub/quality/service.ts";

const SERIES = 5;

/** Variables that only have an id. */
const asksOf = (first: number) =>
  Array.from({ length: SERIES }, (_, nth) => ({ variable: { id: first + nth } })) as unknown as readonly VariableAsk[];

/** Tasks end when they are told to. */
function scene() {
  const begun: { readonly ids: readonly number[]; readonly end: (answer: SeriesAnswer) => void }[] = [];
  let threads = 0;
  const reports = createSeriesReports({ store: {} as never }, (most) => {
    threads = most;
    const run = ({ variables }: SeriesJob) => {
      const { promise, resolve } = Promise.withResolvers<SeriesAnswer>();
      begun.push({ ids: variables.map(({ variable }) => variable.id), end: resolve });
      return promise;
    };
    return { run, destroy: async () => undefined } as never;
  });
  const report = async (accountId: number, first: number) => {
    const variables = (async function* () {
      yield asksOf(first);
    })();
    const job = { report: "quality", settings: {}, variables: [] } as unknown as SeriesJob;
    return Array.fromAsync(reports.texts({ accountId, job, variables }));
  };
  /** Judges so many of its variables. */
  const end = (nth: number, judged: number) => {
    const one = begun[nth];
    one?.end({ kind: "rows", texts: one.ids.slice(0, judged).map(String), judged });
  };
  return { begun, report, end, threads: () => threads };
}

test("a report of an account begins at once, whatever number of those of another account runs and waits", async () => {
  const { begun, report, threads } = scene();
  for (let nth = 0; nth < 1_000; nth += 1) void report(1, 1);
  await expect.poll(() => begun.length).toBeGreaterThan(0);
  void report(2, 100);
  await expect.poll(() => begun.at(-1)?.ids[0]).toBe(100);
  // It has the thread that one account cannot have.
  expect(begun).toHaveLength(threads());
});

test("a task gives way after its slice, and its report has all rows in order", async () => {
  const { begun, report, end, threads } = scene();
  const reports = Array.from({ length: threads() + 3 }, (_, nth) => report(1, 10 * (nth + 1)));
  await expect.poll(() => begun.length).toBeGreaterThan(0);
  const own = begun.length;
  void report(2, 100);
  const third = report(3, 200);
  await expect.poll(() => begun.length).toBe(own + 1);
  const tasks = reports.length + 3;
  for (let nth = 0; nth < tasks; nth += 1) {
    await expect.poll(() => begun.length).toBeGreaterThan(nth);
    end(nth, nth === 0 ? 2 : SERIES);
  }
  expect(begun.findIndex(({ ids }) => ids[0] === 200)).toBeLessThanOrEqual(own + 2);
  expect(await third).toEqual(["200", "201", "202", "203", "204"]);
  expect(await reports[0]).toEqual(["10", "11", "12", "13", "14"]);
});
