/** What is to be there: a variable, with the source and the site that it needs, whoever says so. */
import type { ListedUnit, PushTarget, SiteBody, SourceBody, VariableBody } from "../wire/index.ts";

/** Without the type, the one of pushed data. */
export type SourceWanted = Omit<SourceBody, "siteId" | "sourceTypeId"> & {
  readonly sourceTypeId?: number | undefined;
};

/** Bodies are asked for when something is missing; each throws `RejectedError` when it cannot be made, with the reason. */
export interface Wanted {
  /** By which the variable is looked for, and its source. */
  readonly target: PushTarget;
  /** Who needs it, for people: the target, with the row of a table. */
  readonly words: string;
  /** Targets that would mean it, in words: sources have several identifiers. */
  readonly meant: readonly string[];
  site(): SiteBody;
  source(): SourceWanted;
  variable(units: readonly ListedUnit[]): Omit<VariableBody, "sourceId">;
  /** Fields that were stated, and that differences are told of; of a template, whose texts may differ from what is there, none. */
  readonly stated: Stated | null;
}

/** Undefined: nothing was said. */
export interface Stated {
  readonly site: Readonly<Partial<SiteBody>>;
  readonly source: Readonly<Partial<SourceBody>>;
  readonly variable: Readonly<Partial<VariableBody>>;
  /** As it was written. */
  readonly unit: string;
}

/** Something that was created, or with a dry run would be. */
export interface Creation {
  readonly entity: Entity;
  readonly name: string;
  /** Null with a dry run. */
  readonly id: number | null;
  /** The target that needs it, in words. */
  readonly target: string;
  /** What is sent; ids that a dry run cannot know are 0. */
  readonly body: Readonly<Record<string, unknown>>;
}

export type Entity = "site" | "source" | "variable";

/** What is there, and not as it was stated; it is left as it is. */
export interface Difference {
  readonly entity: Entity;
  readonly id: number;
  readonly name: string;
  /** Such as `unit`. */
  readonly field: string;
  readonly there: string;
  readonly stated: string;
  /** Who needs it, in words. */
  readonly target: string;
  /** Values would mean something else: unit, time zone, versions. Others are for people. */
  readonly isWeighty: boolean;
}
