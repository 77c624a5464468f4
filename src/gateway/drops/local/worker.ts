/** The thread of a local drop, which runs the tasks of `disk-work.ts`. */
import { diskTasks } from "#core/threads/disk-work.ts";
import { type LocalAnswer, type LocalOrder, performLocal } from "./disk-work.ts";

export const perform = diskTasks<{ readonly root: string }, LocalOrder, LocalAnswer>(performLocal);
