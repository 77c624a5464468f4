/** The thread of the spool: `spool-party.ts` says what it does. */
import { serveDisk } from "../support/disk-work.ts";
import { performSpool, type SpoolAnswer, type SpoolOrder } from "./spool-party.ts";

serveDisk<{ readonly root: string }, SpoolOrder, SpoolAnswer>(performSpool);
