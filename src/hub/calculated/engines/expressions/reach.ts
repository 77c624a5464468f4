/** The input that a term needs beside the points of the dates themselves. */
import type { Granularity } from "#wire/index.ts";

export type Calendar = Exclude<Granularity, "Raw" | "All">;

export const CALENDARS: readonly Calendar[] = ["Minute", "Hour", "Day", "Week", "Month", "Year"];

/** Of one input variable. */
export interface Reach {
  /**
   * Points before the window. So a changed point affects the outputs until as many later points of this input; where
   * there are fewer, all later outputs.
   */
  readonly points: number;
  /** Whole periods in the zone of the source. So a changed point affects the outputs of its whole period. */
  readonly granularities: readonly Calendar[];
}

export const NO_REACH: Reach = { points: 0, granularities: [] };

export function widest(one: Reach, other: Reach): Reach {
  const both = new Set([...one.granularities, ...other.granularities]);
  return {
    points: Math.max(one.points, other.points),
    granularities: CALENDARS.filter((granularity) => both.has(granularity)),
  };
}

export const onePointMore = ({ points, granularities }: Reach): Reach => ({ points: points + 1, granularities });
