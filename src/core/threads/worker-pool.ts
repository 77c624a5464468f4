/** Threads for long work beside the main one, as a piscina pool whose threads end when they have none. */
import { fileURLToPath } from "node:url";
import { Piscina } from "piscina";

export interface WorkerPoolFacts {
  /** The module that exports `perform`. */
  readonly module: URL;
  readonly threads: number;
  /** Milliseconds without a task until a thread ends. */
  readonly idleMs: number;
  /** Size of the heap of each thread. */
  readonly megabytes: number;
  /** The `workerData` of each thread. */
  readonly data: unknown;
}

/** No thread starts before the first task. */
export function createWorkerPool<Task, Answer>({
  module,
  threads,
  idleMs,
  megabytes,
  data,
}: WorkerPoolFacts): Piscina<Task, Answer> {
  return new Piscina<Task, Answer>({
    filename: fileURLToPath(module),
    name: "perform",
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: idleMs,
    resourceLimits: { maxOldGenerationSizeMb: megabytes },
    workerData: data,
    recordTiming: false,
  });
}

/** A thread that Node ended at the limit of its heap. */
export function isOutOfMemory(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === "ERR_WORKER_OUT_OF_MEMORY";
}
