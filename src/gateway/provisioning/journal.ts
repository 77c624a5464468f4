/**
 * The journal of creations, for components that report or undo them: each creation is recorded before the service is
 * called, and its id when the service responded. A creation without an id may exist all the same, after a crash or a
 * lost response: it is searched for at the service.
 */
import type { Creation } from "./wanted.ts";

/** A creation that was begun. */
export interface Begun {
  /** From 1, in the order in which the creations were begun. */
  readonly nth: number;
  readonly creation: Creation;
}

export interface CreationJournal {
  /** Durable when it resolves; returns the number of the creation. */
  begin(creation: Creation): Promise<number>;
  /** The thing exists, with this id. `found`: it was searched for, since the response was lost. */
  created(nth: number, id: number, found: boolean): Promise<void>;
  /** It was searched for, and does not exist. */
  absent(nth: number): Promise<void>;
  /** Creations that were begun and whose end is unknown, in the order in which they were begun. */
  open(): readonly Begun[];
  /** Known ids of this kind of thing. */
  ids(entity: Creation["entity"]): ReadonlySet<number>;
}
