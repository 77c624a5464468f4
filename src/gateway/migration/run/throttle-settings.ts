import type { Rate } from "./rate.ts";
import type { Window } from "./window.ts";

/** The limits of a migration. */
export interface ThrottleSettings {
  readonly concurrency: number | undefined;
  readonly rate: Rate | null;
  readonly window: Window | null;
  /** From 0 to 1. */
  readonly errorsMax: number | null;
  /** Other work of the machine comes first. */
  readonly isBehind: boolean;
}
