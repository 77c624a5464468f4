/** The thread's side of `disk-thread.ts`. It is loaded with each thread, so it imports next to nothing. */
import { closeSync, constants, fsyncSync, openSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { armFault } from "./faults.ts";

/** Indexes in the memory that both sides share. */
export const BEGUN = 0;
export const GIVEN_UP = 1;
/** In place of the number of the current task: no caller waits for this thread. */
export const LEFT_BEHIND = -1;

export interface DiskThreadData {
  /** The number of the current task, and the number up to which tasks were given up. */
  readonly words: Int32Array;
  /** The task number that the first task follows. */
  readonly begun: number;
  readonly fault: string | undefined;
  readonly data: unknown;
}

export interface TaskMessage<Order> {
  readonly number: number;
  readonly order: Order;
}

export interface DiskAnswer<Answer> {
  readonly number: number;
  readonly answer: Answer | null;
}

export interface TaskFacts<Data> {
  readonly data: Data;
  /** Checked before each step that must not be done after the caller gave up. */
  isWanted(): boolean;
  /** Checked before the rest of a step that was begun: false when no caller learns how it ended. */
  isHeard(): boolean;
}

/** Performs tasks in the order of their messages, until the thread is ended. */
export function serveDisk<Data, Order, Answer>(
  perform: (order: Order, facts: TaskFacts<Data>) => Answer,
): void {
  const port = parentPort;
  if (port === null) throw new Error("a disk worker runs as a worker thread only");
  const { words, begun, fault, data } = workerData as DiskThreadData & { readonly data: Data };
  if (fault !== undefined) armFault(fault);
  let last = begun;
  const isHeard = () => Atomics.load(words, BEGUN) !== LEFT_BEHIND;
  port.on("message", ({ number, order }: TaskMessage<Order>) => {
    // An abandoned thread finds LEFT_BEHIND in place of the number of its task: so it never begins a task that was
    // reported as not done.
    if (Atomics.compareExchange(words, BEGUN, last, number) !== last) return;
    last = number;
    const isWanted = () => isHeard() && Atomics.load(words, GIVEN_UP) < number;
    const answer = triedOnce(() => perform(order, { data, isWanted, isHeard }));
    const message: DiskAnswer<Answer> = { number, answer };
    port.postMessage(message);
  });
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
