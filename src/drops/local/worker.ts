/** The thread of a local drop: `disk-work.ts` says what it does. */
import { serveDisk } from "../../support/disk-work.ts";
import { type LocalAnswer, type LocalOrder, performLocal } from "./disk-work.ts";

serveDisk<{ readonly root: string }, LocalOrder, LocalAnswer>(performLocal);
