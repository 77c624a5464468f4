/** Asks the threads that read and judge whole series, a few variables at a time; answers come in order. */
import { availableParallelism } from "node:os";
import type { Piscina } from "piscina";
import { besideModule } from "../../support/threads/beside.ts";
import { createWorkerPool } from "../../support/threads/worker-pool.ts";
import { FairQueue } from "../../support/turns.ts";
import type { HubOptions } from "../options.ts";
import type { SeriesAnswer, SeriesJob, VariableAsk } from "./job.ts";

export interface SeriesThread {
  readonly store: HubOptions["store"];
}

export interface SeriesReports {
  /** Rows as JSON with commas between them; the threads stop when the caller does. */
  texts(asked: SeriesAsked): AsyncGenerator<string, void>;
  close(): Promise<void>;
}

export interface SeriesAsked {
  readonly accountId: number;
  /** Without variables. */
  readonly job: SeriesJob;
  readonly variables: AsyncIterable<readonly VariableAsk[]>;
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
  // Reports of one account, however many, hold no other one back.
  const turns = new FairQueue<number>(threads);
  const start = () => {
    const module = besideModule(import.meta.url, "worker");
    const data: SeriesThread = { store };
    const facts = { module, threads, idleMs: IDLE_MS, megabytes: MEMORY_MEGABYTES, data };
    return createWorkerPool<SeriesJob, SeriesAnswer>(facts);
  };
  return {
    async *texts({ accountId, job, variables: asks }) {
      pool ??= start();
      const asked = pool;
      const left = new AbortController();
      const running: Promise<SeriesAnswer>[] = [];
      const tasks = tasksOf(asks);
      const ask = async () => {
        const { value: variables } = await tasks.next();
        if (variables === undefined) return;
        const answer = turns.run(accountId, () => asked.run({ ...job, variables }, { signal: left.signal }));
        answer.catch(() => undefined); // The first fault ends the report; it is thrown where its turn comes.
        running.push(answer);
      };
      try {
        for (let thread = 0; thread < threads; thread += 1) await ask();
        for (let next = running.shift(); next !== undefined; next = running.shift()) {
          const answer = await next;
          if (answer.kind === "trouble") throw new StoreTrouble(answer.words);
          await ask();
          yield* answer.texts;
        }
      } finally {
        left.abort();
        await tasks.return();
      }
    },
    close: async () => await pool?.destroy(),
  };
}

async function* tasksOf(asks: SeriesAsked["variables"]): AsyncGenerator<readonly VariableAsk[], void> {
  for await (const part of asks)
    for (let at = 0; at < part.length; at += VARIABLES_AT_ONCE) yield part.slice(at, at + VARIABLES_AT_ONCE);
}
