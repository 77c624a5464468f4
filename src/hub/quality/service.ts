/** Asks the threads that read and judge whole series, a few variables at a time; answers come in order. */
import { availableParallelism } from "node:os";
import type { Piscina } from "piscina";
import { besideModule } from "#core/threads/beside.ts";
import { createWorkerPool } from "#core/threads/worker-pool.ts";
import { FairQueue } from "#core/turns.ts";
import type { HubOptions } from "../options.ts";
import type { SeriesAnswer, SeriesJob, VariableAsk } from "./losses.ts";

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
/** A further thread for an account that has none. */
const SPARE = 1;
const IDLE_MS = 10_000;
const MEMORY_MEGABYTES = 512;

type SeriesPool = Pick<Piscina<SeriesJob, SeriesAnswer>, "run" | "destroy">;

export function createSeriesReports(
  { store }: Pick<HubOptions, "store">,
  start: (threads: number) => SeriesPool = (threads) => {
    const module = besideModule(import.meta.url, "worker");
    const data: SeriesThread = { store };
    return createWorkerPool({ module, threads, idleMs: IDLE_MS, megabytes: MEMORY_MEGABYTES, data });
  },
): SeriesReports {
  let pool: SeriesPool | null = null;
  const threads = Math.max(1, Math.min(THREADS_MAX, availableParallelism() - 1));
  // Reports of one account, however many, hold no other one back.
  const turns = new FairQueue<number>(threads, { spare: SPARE });
  /** Others have their turn between two slices of a task. */
  const judged = async (asked: SeriesPool, accountId: number, job: SeriesJob, signal: AbortSignal) => {
    const texts: string[] = [];
    for (let left = job.variables; left.length > 0; ) {
      const answer = await turns.run(accountId, () => asked.run({ ...job, variables: left }, { signal }), signal);
      if (answer.kind === "trouble") throw new StoreTrouble(answer.words);
      texts.push(...answer.texts);
      left = left.slice(answer.judged);
    }
    return texts;
  };
  return {
    async *texts({ accountId, job, variables: asks }) {
      pool ??= start(threads + SPARE);
      const asked = pool;
      const left = new AbortController();
      const running: Promise<readonly string[]>[] = [];
      const tasks = tasksOf(asks);
      const ask = async () => {
        const { value: variables } = await tasks.next();
        if (variables === undefined) return;
        const answer = judged(asked, accountId, { ...job, variables }, left.signal);
        answer.catch(() => undefined); // The first fault ends the report; it is thrown where its turn comes.
        running.push(answer);
      };
      try {
        for (let thread = 0; thread < threads; thread += 1) await ask();
        for (let next = running.shift(); next !== undefined; next = running.shift()) {
          const texts = await next;
          await ask();
          yield* texts;
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
