/** The thread's side of `disk-thread.ts`. It is loaded with each thread, so it imports next to nothing. */
import { closeSync, constants, fsyncSync, openSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { armFault } from "./faults.ts";

/** Places in the memory that both sides see. */
export const BEGUN = 0;
export const GIVEN_UP = 1;
/** In place of the number of the party that was begun: nobody hears this thread any more. */
export const LEFT_BEHIND = -1;

export interface DiskThreadData {
  /** The number of the party that was begun, and up to which parties were given up. */
  readonly words: Int32Array;
  /** What the first of them is to begin with. */
  readonly begun: number;
  readonly fault: string | undefined;
  readonly data: unknown;
}

export interface PartyMessage<Order> {
  readonly number: number;
  readonly order: Order;
}

export interface DiskAnswer<Answer> {
  readonly number: number;
  readonly answer: Answer | null;
}

export interface PartyFacts<Data> {
  readonly data: Data;
  /** Asked before each step that must not be done behind the back of who has given up. */
  isWanted(): boolean;
  /** The same before the rest of a step that was begun: whether anybody hears how it ended. */
  isHeard(): boolean;
}

/** Performs parties in the order in which they come, until the thread is ended. */
export function serveDisk<Data, Order, Answer>(
  perform: (order: Order, facts: PartyFacts<Data>) => Answer,
): void {
  const port = parentPort;
  if (port === null) throw new Error("a disk worker runs as a worker thread only");
  const { words, begun, fault, data } = workerData as DiskThreadData & { readonly data: Data };
  if (fault !== undefined) armFault(fault);
  let last = begun;
  const isHeard = () => Atomics.load(words, BEGUN) !== LEFT_BEHIND;
  port.on("message", ({ number, order }: PartyMessage<Order>) => {
    // Whoever leaves this thread behind puts that in the place of the party that it hangs in: so no other is ever begun and told as not done.
    if (Atomics.compareExchange(words, BEGUN, last, number) !== last) return;
    last = number;
    const isWanted = () => isHeard() && Atomics.load(words, GIVEN_UP) < number;
    const answer = triedOnce(() => perform(order, { data, isWanted, isHeard }));
    const message: DiskAnswer<Answer> = { number, answer };
    port.postMessage(message);
  });
}

/** Null when the work failed: the ordinary way, which follows, says in words what is wrong. */
export function triedOnce<Value>(work: () => Value): Value | null {
  try {
    return work();
  } catch {
    return null; // What failed here fails again there, or has passed.
  }
}

/** The same of what gives nothing: whether it was done. */
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
