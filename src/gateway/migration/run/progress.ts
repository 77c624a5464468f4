/** The progress of a migration, and the view that shows it. */
import type { Run } from "../../model.ts";

export interface Amount {
  readonly files: number;
  readonly bytes: number;
}

/** The progress so far. */
export interface Reached extends Amount {
  readonly mapped: number;
  readonly accepted: number;
  /** Refused by the mapper or by the service. */
  readonly rejected: number;
  /** Push calls that were repeated. */
  readonly retries: number;
  /** Files that wait for structure, a unit or a person. */
  readonly held: number;
  /** Reasons why the migration waits, or is slower than it could be, in words. */
  readonly waits: readonly string[];
  /** Runs in progress, the first of them. */
  readonly runs: readonly ShownRun[];
}

interface ShownRun extends Pick<Run, "path" | "state" | "points"> {
  /** The reason why the run waits, in words. */
  readonly waits: string | null;
}

export interface ProgressView {
  show(reached: Reached): void;
  /** Prints a line once. */
  note(line: string): void;
  /** Null: the progress is unknown. */
  end(reached: Reached | null): void;
}

/** Single files that are shown. */
export const FILES_SHOWN = 4;
