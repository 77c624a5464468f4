/** The thread of a local drop: `local-party.ts` says what it does. */
import { serveDisk } from "../support/disk-work.ts";
import { type LocalAnswer, type LocalOrder, performLocal } from "./local-party.ts";

serveDisk<{ readonly root: string }, LocalOrder, LocalAnswer>(performLocal);
