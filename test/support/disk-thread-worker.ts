/** Does what its orders say, for `disk-thread.test.ts`. */
import { openSync } from "node:fs";
import { threadId } from "node:worker_threads";
import { diskTasks } from "../../src/support/disk-work.ts";

export type Order =
  | { readonly do: "tell"; readonly words: string }
  /** Makes `begun`, opens a pipe that nobody reads, as a share hangs, and makes `after` when it is wanted still. */
  | { readonly do: "hang"; readonly begun: string; readonly pipe: string; readonly after: string }
  | { readonly do: "fail" }
  | { readonly do: "die" };

export interface Answer {
  readonly thread: number;
  readonly words: string;
}

export const perform = diskTasks<{ readonly greeting: string }, Order, Answer>(
  (order, { data, isWanted, isAwaited: isHeard }) => {
    if (order.do === "fail") throw new Error("failed");
    if (order.do === "die") process.exit(1);
    if (order.do === "tell") return { thread: threadId, words: `${data.greeting} ${order.words}` };
    openSync(order.begun, "w");
    openSync(order.pipe, "w");
    if (isWanted()) openSync(order.after, "w");
    return { thread: threadId, words: isHeard() ? "heard" : "left" };
  },
);
