/**
 * The shape of the readings of a file, read from its batches: holes in its series, and the level of their values. By
 * it a person learns of a lost week or of another unit, which every row of the file and the service accept.
 */

import { bodiesOf, parseBody, type SegmentRead, targetOf } from "#mapping/segment/payloads.ts";
import type { BatchSlice } from "../../model.ts";

export interface SeriesShape {
  /** Null when no reading is missing inside of the file, or its readings are not regular. */
  readonly holes: Holes | null;
  /** In the order of time. */
  readonly levels: readonly Level[];
}

/** Stretches without a reading that are longer than the step of the series. */
export interface Holes {
  readonly count: number;
  readonly missing: number;
  /** The longest: where readings are missing, in milliseconds since 1970 in UTC. */
  readonly fromMs: number;
  readonly toMs: number;
}

/** How large the values of a series are, in one month of one file; values of 0 are left out. */
export interface Level {
  readonly fromMs: number;
  readonly points: number;
  /** Mean of the decimal logarithms of the magnitudes. */
  readonly log: number;
}

/** By the JSON of the target. The memory needed depends on targets and months alone. */
export async function shapesOf(
  read: SegmentRead,
  slices: readonly BatchSlice[],
): Promise<ReadonlyMap<string, SeriesShape>> {
  const builders = new Map<string, ShapeBuilder>();
  for await (const { body } of bodiesOf(read, slices))
    for (const element of parseBody(body)) {
      const builder = builders.getOrInsertComputed(targetOf(element), () => new ShapeBuilder());
      for (const { date, value } of element.data) builder.add(Date.parse(date), value);
    }
  return new Map([...builders].map(([target, builder]) => [target, builder.shape()]));
}

/** A series with more different steps than this one is not regular. */
const STEPS_MAX = 64;
/** Share of the usual step among all steps of a regular series. */
const REGULAR = 0.8;
/** A step that is longer than this many usual ones is a hole. */
export const HOLE_STEPS = 1.5;

class ShapeBuilder {
  #lastMs = Number.NaN;
  #isOrdered = true;
  #longest = { ms: 0, fromMs: 0 };
  readonly #steps = new Map<number, number>();
  readonly #levels: { fromMs: number; points: number; sum: number }[] = [];
  #monthMs = Number.NaN;
  #nextMonthMs = Number.NaN;

  add(atMs: number, value: number): void {
    const step = atMs - this.#lastMs;
    this.#lastMs = atMs;
    if (step > this.#longest.ms) this.#longest = { ms: step, fromMs: atMs - step };
    if (step < 0) this.#isOrdered = false;
    if (step > 0 && (this.#steps.size < STEPS_MAX || this.#steps.has(step)))
      this.#steps.set(step, (this.#steps.get(step) ?? 0) + 1);
    if (value !== 0) this.#addLevel(atMs, Math.log10(Math.abs(value)));
  }

  #addLevel(atMs: number, log: number): void {
    if (!(atMs >= this.#monthMs && atMs < this.#nextMonthMs)) {
      const date = new Date(atMs);
      this.#monthMs = Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
      this.#nextMonthMs = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
      this.#levels.push({ fromMs: atMs, points: 0, sum: 0 });
    }
    const level = this.#levels.at(-1);
    if (level === undefined) return;
    level.points += 1;
    level.sum += log;
  }

  shape(): SeriesShape {
    const levels = this.#levels.map(({ fromMs, points, sum }) => ({ fromMs, points, log: sum / points }));
    return { holes: this.#holes(), levels };
  }

  #holes(): Holes | null {
    const steps = [...this.#steps].toSorted(([, one], [, other]) => other - one);
    const [usual, often] = steps[0] ?? [0, 0];
    const all = steps.reduce((sum, [, count]) => sum + count, 0);
    // Versions of a reading side by side repeat their dates.
    if (!this.#isOrdered || all < 3 || steps.length === STEPS_MAX || often / all < REGULAR) return null;
    const holes = steps.filter(([step]) => step > usual * HOLE_STEPS);
    const { ms, fromMs } = this.#longest;
    if (holes.length === 0) return null;
    return {
      count: holes.reduce((sum, [, count]) => sum + count, 0),
      missing: holes.reduce((sum, [step, count]) => sum + count * Math.max(1, Math.round(step / usual) - 1), 0),
      fromMs: fromMs + usual,
      toMs: fromMs + ms - usual,
    };
  }
}

/** Where the values of a series become larger or smaller, and stay so. */
export interface LevelShift {
  readonly fromMs: number;
  readonly before: string;
  readonly after: string;
  /** Of the later values to the earlier ones, as a decimal logarithm. */
  readonly log: number;
}

/** A level, with the file that has it. */
export type FileLevel = Level & { readonly path: string };

/** Levels of each side that are compared: levels farther away may differ by the season. */
const COMPARED = 12;
/** A gap as wide as this between all levels before and after is a shift, whatever the factor. */
const CERTAIN = 2;
/** A power of ten (a unit, a divider, a lost comma) needs less, but several levels on each side. */
const POWER_GAP = 0.7;
const POWER_LEVELS = 3;
const POWER_NEAR = 0.1;
/** The gap is as wide as so many times what the levels of one side differ by. */
const CLEAR = 3;

export function levelShifts(levels: readonly FileLevel[]): readonly LevelShift[] {
  const ordered = levels.toSorted((one, other) => one.fromMs - other.fromMs);
  const found: LevelShift[] = [];
  for (let at = 1, from = 0; at < ordered.length; at += 1) {
    const level = ordered[at];
    const before = ordered.slice(Math.max(from, at - COMPARED), at);
    const behind = (next: number) => shiftBetween(before, ordered.slice(next, next + COMPARED));
    const isBetween = Math.abs((level?.log ?? 0) - edgesOf(before).middle) > POWER_NEAR;
    // A shift in the middle of a month leaves a level in between.
    const log = behind(at) ?? (isBetween ? behind(at + 1) : null);
    if (log === null || level === undefined) continue;
    found.push({ fromMs: level.fromMs, before: before.at(-1)?.path ?? level.path, after: level.path, log });
    from = at;
  }
  return found;
}

/** The factor between the levels of both sides, as a decimal logarithm; null when there is no shift. */
function shiftBetween(before: readonly FileLevel[], after: readonly FileLevel[]): number | null {
  if (before.length === 0 || after.length === 0) return null;
  const [one, other] = [edgesOf(before), edgesOf(after)];
  const gap = Math.max(other.low - one.high, one.low - other.high);
  const log = other.middle - one.middle;
  const power = Math.round(log);
  const isPower = power !== 0 && Math.abs(log - power) <= POWER_NEAR;
  const spread = Math.max(one.high - one.low, other.high - other.low);
  const isLong = Math.min(before.length, after.length) >= POWER_LEVELS;
  if (gap < (isPower && isLong ? POWER_GAP : CERTAIN) || gap < CLEAR * spread) return null;
  return log;
}

function edgesOf(levels: readonly Level[]) {
  const logs = levels.map(({ log }) => log).sort((one, other) => one - other);
  const middle = logs[Math.floor(logs.length / 2)] ?? 0;
  return { low: logs[0] ?? 0, high: logs.at(-1) ?? 0, middle };
}

/** `1/1000`, `10 times`, `about 37 times` */
export function factorWords(log: number): string {
  const power = Math.round(log);
  const factor = 10 ** Math.abs(log);
  const number = Math.abs(log - power) <= POWER_NEAR ? String(10 ** Math.abs(power)) : factor.toPrecision(2);
  const words = `${Number(number)}`;
  const about = Math.abs(log - power) <= POWER_NEAR ? "" : "about ";
  return log < 0 ? `${about}1/${words} of` : `${about}${words} times`;
}
