/** Does what its orders say, for `disk-thread.test.ts`. */
import { openSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { diskTasks } from "#core/threads/disk-work.ts";

export type Order =
  | { readonly do: "tell"; readonly words: string }
  /** Makes `begun`, opens a pipe that nobody reads, as a share hangs, and makes `after` when it is wanted still. */
  | { readonly do: "hang"; readonly begun: string; readonly pipe: string; readonly after: string }
  | { readonly do: "fail" }
  | { readonly do: "die" };

export interface Answer {
  readonly thread: number;
  readonly words: string;
  /** Of the tasks that the thread has performed with success, from 0. */
  readonly nth: number;
}

let performed = 0;

export const perform = diskTasks<{ readonly greeting: string }, Order, Answer>(
  (order, { data, isWanted, isAwaited: isHeard }) => {
    if (order.do === "fail") throw new Error("failed");
    if (order.do === "die") process.exit(1);
    if (order.do === "tell") return told(`${data.greeting} ${order.words}`);
    openSync(order.begun, "w");
    openSync(order.pipe, "w");
    if (isWanted()) openSync(order.after, "w");
    return told(isHeard() ? "heard" : "left");
  },
);

function told(words: string): Answer {
  performed += 1;
  return { thread: threadId, words, nth: performed - 1 };
}
