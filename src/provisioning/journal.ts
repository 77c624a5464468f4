/**
 * Where creations are written down, by whoever has to tell of them or take them back later: each before the service is asked, and its id
 * when that answered. What was begun and has no id may be there all the same, after a crash or a lost answer: it is looked for.
 */
import type { Creation } from "./wanted.ts";

/** A creation that was begun. */
export interface Begun {
  /** From 1, in the order in which they were begun. */
  readonly nth: number;
  readonly creation: Creation;
}

export interface CreationJournal {
  /** Durable when it resolves; answers its number. */
  begin(creation: Creation): Promise<number>;
  /** It is there, by this id. `found`: looked for, since nobody knew. */
  created(nth: number, id: number, found: boolean): Promise<void>;
  /** It was looked for, and is not there. */
  absent(nth: number): Promise<void>;
  /** Begun, and not known how they ended, in the order in which they were begun. */
  open(): readonly Begun[];
  /** Ids that are known of this kind of thing. */
  ids(entity: Creation["entity"]): ReadonlySet<number>;
}
