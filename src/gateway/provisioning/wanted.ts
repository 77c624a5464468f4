/** Wanted structure: a variable, with the source and the site that it needs, from a template or from a table. */
import type { PushTarget } from "#wire/push.ts";
import type { SiteBody, SourceBody, VariableBody } from "#wire/structure.ts";
import type { ListedUnit } from "#wire/units.ts";

/** Without a type, the type of pushed data. */
export type SourceWanted = Omit<SourceBody, "siteId" | "sourceTypeId"> & {
  readonly sourceTypeId?: number | undefined;
};

/**
 * The functions are called when something is missing; each throws `RejectedError` with the reason when its body
 * cannot be made.
 */
export interface Wanted {
  /** The target that the variable and its source are searched by. */
  readonly target: PushTarget;
  /** The target for people, with the row of a table. */
  readonly words: string;
  /** Further targets that name the same variable, in words: sources have several identifiers. */
  readonly meant: readonly string[];
  site(): SiteBody;
  source(): SourceWanted;
  variable(units: readonly ListedUnit[]): Omit<VariableBody, "sourceId">;
  /**
   * Stated fields, whose differences are reported; null for a template, whose texts may differ from the existing
   * structure.
   */
  readonly stated: Stated | null;
}

/** Undefined: not stated. */
export interface Stated {
  readonly site: Readonly<Partial<SiteBody>>;
  readonly source: Readonly<Partial<SourceBody>>;
  readonly variable: Readonly<Partial<VariableBody>>;
  /** As it was written. */
  readonly unit: string;
}

/** Something that was created, or that a real run would create. */
export interface Creation {
  readonly entity: Entity;
  readonly name: string;
  /** Null with a dry run. */
  readonly id: number | null;
  /** The target that needs it, in words. */
  readonly target: string;
  /** The body that is sent; ids that a dry run cannot know are 0. */
  readonly body: Readonly<Record<string, unknown>>;
}

export type Entity = "site" | "source" | "variable";

/** Existing structure that differs from the stated one; it is left unchanged. */
export interface Difference {
  readonly entity: Entity;
  readonly id: number;
  readonly name: string;
  /** Such as `unit`. */
  readonly field: string;
  readonly there: string;
  readonly stated: string;
  /** The target that needs it, in words. */
  readonly target: string;
  /** The difference changes the meaning of values: unit, time zone, versions. Other differences are for information. */
  readonly isWeighty: boolean;
}

// The journal of creations, for components that report or undo them: each creation is recorded before the service is
// called, and its id when the service responded. A creation without an id may exist all the same, after a crash or a
// lost response: it is searched for at the service.

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
