/** Asks the threads that read and judge whole series, a few variables at a time; answers come in order. */
import { availableParallelism } from "node:os";
import type { Piscina } from "piscina";
import { besideModule } from "../../support/threads/beside.ts";
import { createWorkerPool } from "../../support/threads/worker-pool.ts";
import type { HubOptions } from "../options.ts";
import type { SeriesAnswer, SeriesJob } from "./job.ts";

export interface SeriesThread {
  readonly store: HubOptions["store"];
}

export interface SeriesReports {
  /** Rows as JSON with commas between them; the threads stop when the caller does. */
  texts(job: SeriesJob): AsyncGenerator<string, void>;
  close(): Promise<void>;
}

/** The database is at fault, and the same may succeed later. */
export class StoreTrouble extends Error {}

/** Variables of one task: enough that a connection of its own costs little. */
const VARIABLES_AT_ONCE = 20;
/** Other requests of the hub need a processor, too. */
const THREADS_MAX = 2;
const IDLE_MS = 10_000;
const MEMORY_MEGABYTES = 512;

export function createSeriesReports({ store }: Pick<HubOptions, "store">): SeriesReports {
  let pool: Piscina<SeriesJob, SeriesAnswer> | null = null;
  const threads = Math.max(1, Math.min(THREADS_MAX, availableParallelism() - 1));
  const start = () => {
    const module = besideModule(import.meta.url, "worker");
    const data: SeriesThread = { store };
    const facts = { module, threads, idleMs: IDLE_MS, megabytes: MEMORY_MEGABYTES, data };
    return createWorkerPool<SeriesJob, SeriesAnswer>(facts);
  };
  return {
    async *texts(job) {
      pool ??= start();
      const asked = pool;
      const left = new AbortController();
      const running: Promise<SeriesAnswer>[] = [];
      let at = 0;
      const ask = () => {
        const variables = job.variables.slice(at, at + VARIABLES_AT_ONCE);
        at += VARIABLES_AT_ONCE;
        if (variables.length === 0) return;
        const answer = asked.run({ ...job, variables }, { signal: left.signal });
        answer.catch(() => undefined); // The first fault ends the report; it is thrown where its turn comes.
        running.push(answer);
      };
      try {
        for (let thread = 0; thread < threads; thread += 1) ask();
        for (let next = running.shift(); next !== undefined; next = running.shift()) {
          const answer = await next;
          if (answer.kind === "trouble") throw new StoreTrouble(answer.words);
          ask();
          yield* answer.texts;
        }
      } finally {
        left.abort();
      }
    },
    close: async () => await pool?.destroy(),
  };
}
