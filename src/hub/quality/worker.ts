/** A thread that reads and judges whole series: a year of a thousand variables takes seconds of a processor. */
import { workerData } from "node:worker_threads";
import { wordsOf } from "#core/errors.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import { openSeries } from "../store/open.ts";
import { judge } from "./judge.ts";
import { lossRows, type SeriesAnswer, type SeriesJob } from "./losses.ts";
import type { SeriesThread } from "./service.ts";

const { store: options } = workerData as SeriesThread;

/** Then another account may have the thread, since twenty long series take seconds. */
const SLICE_MS = 200;

/** The result is plain data, since errors lose their kind between threads. */
export async function perform(job: SeriesJob): Promise<SeriesAnswer> {
  const series = openSeries(options);
  try {
    const texts: string[] = [];
    const endMs = performance.now() + SLICE_MS;
    let judged = 0;
    for (const variable of job.variables) {
      const rows =
        job.report === "losses"
          ? await lossRows(series, { ...variable, settings: job.settings })
          : [await judge(series, { ...variable, settings: job.settings })].filter((row) => row !== null);
      if (rows.length > 0) texts.push(rows.map((row) => JSON.stringify(row)).join(","));
      judged += 1;
      if (performance.now() >= endMs) break;
    }
    return { kind: "rows", texts, judged };
  } catch (thrown) {
    if (!isDatabaseTrouble(thrown)) throw thrown;
    return { kind: "trouble", words: wordsOf(thrown) };
  } finally {
    await series.close();
  }
}
