/** The thread's side of `disk-thread.ts`. It is loaded with each thread, so it imports next to nothing. */
import { closeSync, constants, fsyncSync, openSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { armFault } from "../faults.ts";

/** Bits of the state of a task, in the memory that both sides share. */
export const BEGUN = 1;
export const GIVEN_UP = 2;
/** No caller waits for this thread any longer. */
export const LEFT_BEHIND = 4;

export interface DiskThreadData {
  readonly fault: string | undefined;
  readonly data: unknown;
}

export interface DiskTask<Order> {
  readonly state: Int32Array;
  readonly order: Order;
}

export interface TaskFacts<Data> {
  readonly data: Data;
  /** Checked before each step that must not be done after the caller gave up. */
  isWanted(): boolean;
  /** Checked before the rest of a step that was begun: false when no caller learns how it ended. */
  isAwaited(): boolean;
}

/** Makes of the work the function that the pool calls in its thread. The function never throws. */
export function diskTasks<Data, Order, Answer>(
  perform: (order: Order, facts: TaskFacts<Data>) => Answer | Promise<Answer>,
): (task: DiskTask<Order>) => Promise<Answer | null> {
  const { fault, data } = workerData as DiskThreadData & { readonly data: Data };
  if (fault !== undefined) armFault(fault);
  return async ({ state, order }) => {
    if (Atomics.or(state, 0, BEGUN) !== 0) return null;
    const isAwaited = () => (Atomics.load(state, 0) & LEFT_BEHIND) === 0;
    const isWanted = () => Atomics.load(state, 0) === BEGUN;
    try {
      return await perform(order, { data, isWanted, isAwaited });
    } catch {
      return null; // The caller repeats the work, which reports the fault in words.
    }
  };
}

/** Null when the work failed: the caller repeats it asynchronously, which reports the error in words. */
export function triedOnce<Value>(work: () => Value): Value | null {
  try {
    return work();
  } catch {
    return null; // The asynchronous repetition reports the fault, unless it has passed.
  }
}

/** `triedOnce` for work without a result: whether it was done. */
export function isDone(work: () => void): boolean {
  return triedOnce(() => work() ?? true) === true;
}

/** Makes the names in a directory durable. */
export function syncNamesNow(directory: string): void {
  const file = openSync(directory, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0));
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
