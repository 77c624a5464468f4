/** The thread of the stored bytes: `placement-work.ts` says what it does. */
import { diskTasks } from "../../support/disk-work.ts";
import { type Placed, placeAll } from "./placement-work.ts";

export const perform = diskTasks<null, readonly Placed[], readonly boolean[]>(placeAll);
