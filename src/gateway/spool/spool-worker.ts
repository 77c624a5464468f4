/** The thread of the spool: `spool-disk-work.ts` says what it does. */
import { diskTasks } from "#core/threads/disk-work.ts";
import { performSpool, type SpoolAnswer, type SpoolOrder } from "./spool-disk-work.ts";

export const perform = diskTasks<{ readonly root: string }, SpoolOrder, SpoolAnswer>(performSpool);
