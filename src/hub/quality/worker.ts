/** A thread that reads and judges whole series: a year of a thousand variables takes seconds of a processor. */
import { workerData } from "node:worker_threads";
import { isDatabaseTrouble } from "../../sql/trouble.ts";
import { wordsOf } from "../../support/errors.ts";
import { openSeries } from "../store/open.ts";
import type { SeriesAnswer, SeriesJob } from "./job.ts";
import { judge } from "./judge.ts";
import { lossRows } from "./losses.ts";
import type { SeriesThread } from "./service.ts";

const { store: options } = workerData as SeriesThread;

/** The result is plain data, since errors lose their kind between threads. */
export async function perform(job: SeriesJob): Promise<SeriesAnswer> {
  const series = openSeries(options);
  try {
    const texts: string[] = [];
    for (const variable of job.variables) {
      const rows =
        job.report === "losses"
          ? await lossRows(series, { ...variable, settings: job.settings })
          : [await judge(series, { ...variable, settings: job.settings })].filter((row) => row !== null);
      if (rows.length > 0) texts.push(rows.map((row) => JSON.stringify(row)).join(","));
    }
    return { kind: "rows", texts };
  } catch (thrown) {
    if (!isDatabaseTrouble(thrown)) throw thrown;
    return { kind: "trouble", words: wordsOf(thrown) };
  } finally {
    await series.close();
  }
}
