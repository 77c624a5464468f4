/** Where the readings of one target are missing, or twice: between its files, and inside of them. */
import { compareNames } from "#core/natural-order.ts";
import type { Note } from "./findings.ts";
import { HOLE_STEPS, type Holes, type SeriesShape } from "./series.ts";

/** One file's share of one target. */
export interface Span {
  readonly path: string;
  /** SHA-256 of the file; null when it was not read. */
  readonly sha256: string | null;
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
  readonly shape: SeriesShape | null;
}

/** The files of which nothing is delivered, and what is missing because of them. */
export class Undelivered {
  readonly #paths: readonly string[];
  readonly #missing = new Map<string, { readings: number; readonly targets: Set<string>; fromMs: number }>();

  constructor(paths: readonly string[]) {
    this.#paths = paths;
  }

  /** Undelivered files that by their names belong between two others, which they resemble. */
  between(before: string, after: string): readonly string[] {
    const alike = new Set([patternOf(before), patternOf(after)]);
    return this.#paths.filter(
      (path) => alike.has(patternOf(path)) && compareNames(before, path) < 0 && compareNames(path, after) < 0,
    );
  }

  lose(path: string, target: string, readings: number, fromMs: number): void {
    const known = this.#missing.getOrInsertComputed(path, () => ({ readings: 0, targets: new Set(), fromMs }));
    known.readings += readings;
    known.targets.add(target);
    known.fromMs = Math.min(known.fromMs, fromMs);
  }

  /** `; 24 readings of 1 target are missing because of it, from …`; empty when nothing is. */
  lossWords(path: string): string {
    const missing = this.#missing.get(path);
    if (missing === undefined) return "";
    const { readings, targets, fromMs } = missing;
    const of = targets.size === 1 ? [...targets][0] : `${targets.size} targets`;
    return `; ${countWords(readings)} of ${of} ${areWords(readings)} missing because of it, from ${iso(fromMs)}`;
  }
}

/** Names of one series of files differ in their numbers. */
function patternOf(path: string): string {
  return path.replace(/\d+/g, "#");
}

interface Seam {
  readonly what: "gap" | "overlap";
  readonly before: Span;
  readonly after: Span;
  readonly step: number | null;
  /** Whole hours that a time zone explains; null when none does. */
  readonly hours: number | null;
}

/** `withGaps` false: only some of the files were read, and others may fill a gap. */
export function seamsOf(
  target: string,
  spans: readonly Span[],
  withGaps: boolean,
  undelivered: Undelivered,
): readonly Note[] {
  const seams = seamsBetween(spans).filter(({ what }) => withGaps || what === "overlap");
  const usual = spans.map(({ points }) => points).sort((one, other) => one - other)[Math.floor(spans.length / 2)] ?? 0;
  const notes: Note[] = [];
  for (let at = 0; at < seams.length; at += 1) {
    const [seam, next] = [seams[at], seams[at + 1]];
    if (seam === undefined) break;
    if (isShifted(seam, next)) {
      notes.push(shiftNote(target, seam));
      at += 1;
    } else if (seam.what === "gap") notes.push(...gapNotes(target, seam, usual, undelivered));
    else if (seam.before.sha256 === null || seam.before.sha256 !== seam.after.sha256)
      notes.push(overlapNote(target, seam));
  }
  return withGaps ? [...notes, ...holeNotes(target, spans)] : notes;
}

function seamsBetween(spans: readonly Span[]): readonly Seam[] {
  const ordered = spans.toSorted((one, other) => one.fromMs - other.fromMs || one.toMs - other.toMs);
  const found: Seam[] = [];
  let before: Span | undefined;
  for (const after of ordered) {
    if (before !== undefined) {
      const step = stepOf(before) ?? stepOf(after);
      const seam = { before, after, step };
      const [ms, least] = [after.fromMs - before.toMs, step ?? Number.POSITIVE_INFINITY];
      if (ms <= 0) {
        const twice = Math.min(before.toMs, after.toMs) - after.fromMs;
        found.push({ what: "overlap", ...seam, hours: hoursOf(step === HOUR_MS ? twice + step : twice, step) });
      } else if (ms > least * HOLE_STEPS) found.push({ what: "gap", ...seam, hours: hoursOf(ms - least, step) });
    }
    if (before === undefined || after.toMs > before.toMs) before = after;
  }
  return found;
}

/** Milliseconds between two readings of an even series; null for a single one. */
function stepOf({ fromMs, toMs, points, shape }: Span): number | null {
  const whole = points + (shape?.holes?.missing ?? 0);
  return whole < 2 ? null : (toMs - fromMs) / (whole - 1);
}

/** A file in another time zone leaves a gap on one side, and overlaps on the other. */
function isShifted(seam: Seam, next: Seam | undefined): boolean {
  return (
    seam.hours !== null && next?.hours === seam.hours && seam.what !== next.what && seam.after.path === next.before.path
  );
}

function shiftNote(target: string, { what, after, hours }: Seam): Note {
  const direction = what === "gap" ? "later" : "earlier";
  return {
    ...{ kind: "zone", key: `${hours} ${direction}`, files: [after.path], target },
    words:
      `the readings of ${target} in ${after.path} are ${hours} h ${direction} than the files before and after it ` +
      `let expect, from ${iso(after.fromMs)}: it is in another time zone`,
  };
}

function overlapNote(target: string, { before, after, step, hours }: Seam): Note {
  const ms = Math.min(before.toMs, after.toMs) - after.fromMs;
  const count = step === null || step === 0 ? 1 : Math.round(ms / step) + 1;
  return {
    ...{ kind: "overlap", key: `${count} ${hours}`, files: [before.path, after.path], target },
    words:
      `${before.path} and ${after.path} overlap by ${countWords(count)} of ${target} ` +
      `from ${iso(after.fromMs)}: the later file wins${zoneWords(hours)}`,
  };
}

/** A hole that a refused file leaves is reported with the refusal, and has no finding of its own. */
function gapNotes(target: string, { before, after, step, hours }: Seam, usual: number, undelivered: Undelivered) {
  const least = step ?? 0;
  const fromMs = before.toMs + least;
  const count = Math.max(1, Math.round((after.fromMs - before.toMs) / least) - 1);
  const refused = undelivered.between(before.path, after.path);
  for (const path of refused) undelivered.lose(path, target, Math.round(count / refused.length), fromMs);
  if (refused.length > 0 && count <= refused.length * usual * HOLE_STEPS) return [];
  const note: Note = {
    ...{ kind: "gap", key: `${fromMs} ${after.fromMs - least}`, files: [before.path, after.path], target },
    words:
      `between ${before.path} and ${after.path} ${countWords(count)} of ${target} ${areWords(count)} missing, from ` +
      `${iso(fromMs)}: ${gapCause(before, after, usual, refused)}${zoneWords(hours)}`,
  };
  return [note];
}

/** Of a file that holds less than this share of the usual readings, some are missing. */
const SHORT = 0.75;

function gapCause(before: Span, after: Span, usual: number, refused: readonly string[]): string {
  if (refused.length > 0) return `a file is missing beside ${refused[0]}, of which nothing is delivered`;
  if (before.points < usual * SHORT) return `${before.path} ends early`;
  return after.points < usual * SHORT ? `${after.path} begins late` : "a file is missing";
}

function holeNotes(target: string, spans: readonly Span[]): readonly Note[] {
  const isFilled = (path: string, holes: Holes) =>
    spans.some((other) => other.path !== path && other.fromMs <= holes.fromMs && other.toMs >= holes.toMs);
  return spans.flatMap(({ path, shape }) => {
    const holes = shape?.holes ?? null;
    if (holes === null || isFilled(path, holes)) return [];
    const { count, missing, fromMs, toMs } = holes;
    const where = count === 1 ? "" : `in ${count} places, the longest `;
    return [
      {
        ...{ kind: "gap" as const, key: count === 1 ? `${fromMs} ${toMs}` : "inside", files: [path], target },
        words:
          `inside of ${path} ${countWords(missing)} of ${target} ${areWords(missing)} missing, ` +
          `${where}from ${iso(fromMs)} to ${iso(toMs)}`,
      },
    ];
  });
}

function countWords(readings: number): string {
  return `${readings} ${readings === 1 ? "reading" : "readings"}`;
}

function areWords(readings: number): string {
  return readings === 1 ? "is" : "are";
}

const HOUR_MS = 3_600_000;
const HOURS_MAX = 14;

/** `ms`: the distance from one reading to the other, or to the end of its step. */
function hoursOf(ms: number, step: number | null): number | null {
  if (step === null || step > HOUR_MS) return null;
  const hours = (ms > 0 && ms % HOUR_MS === 0 ? ms : ms + step) / HOUR_MS;
  return Number.isInteger(hours) && hours >= 1 && hours <= HOURS_MAX ? hours : null;
}

function zoneWords(hours: number | null): string {
  return hours === null ? "" : `, or one of the two is in another time zone (${hours} h)`;
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
