/**
 * Statements that may take long, in threads with connections of their own. A thread is ended with the time of its
 * statement, as soon as that calls a function of this program, as each test of a filter does for each row.
 */
import type { Piscina } from "piscina";
import { besideModule } from "#core/threads/beside.ts";
import { createWorkerPool } from "#core/threads/worker-pool.ts";
import { FairQueue } from "#core/turns.ts";
import type { Statement, Steps } from "../database.ts";
import { LongFilter } from "../filter.ts";

export interface ApartThread {
  readonly path: string;
}

/** Other requests of the hub need a processor, too. */
const THREADS = 2;
const IDLE_MS = 60_000;
const MEMORY_MEGABYTES = 512;

export interface Apart {
  ask<T>(accountId: number, work: () => Steps<T>): Promise<T>;
  close(): Promise<void>;
}

/** `limitMs`: of one statement, without its wait for other accounts. */
export function createApart(path: string, limitMs: number): Apart {
  const turns = new FairQueue<number>(THREADS, { ofOne: 1 });
  let pool: Piscina<Statement, unknown> | null = null;
  let isClosed = false;
  const start = () => {
    const module = besideModule(import.meta.url, "apart-worker");
    const data: ApartThread = { path };
    const facts = { module, threads: THREADS, idleMs: IDLE_MS, megabytes: MEMORY_MEGABYTES, data };
    return createWorkerPool<Statement, unknown>(facts);
  };
  const answer = async (statement: Statement) => {
    // A pool that was ended would start again, on a store that is closed.
    if (isClosed) throw new Error("the store is closed");
    pool ??= start();
    const signal = AbortSignal.timeout(limitMs);
    try {
      return await pool.run(statement, { signal });
    } catch (thrown) {
      throw signal.aborted ? new LongFilter(limitMs) : thrown;
    }
  };
  return {
    ask: (accountId, work) =>
      turns.run(accountId, async () => {
        const steps = work();
        let next = steps.next();
        while (next.done !== true) next = steps.next(await answer(next.value));
        return next.value;
      }),
    async close() {
      isClosed = true;
      await pool?.destroy();
    },
  };
}
