/**
 * The effect of a migration, found without sending anything: every file is mapped, and the targets of the files are
 * compared.
 */

import { compareNames } from "#core/text.ts";
import { findingWords } from "#mapping/contract.ts";
import type { PushTarget } from "#wire/push.ts";
import { targetWords } from "#wire/target.ts";
import type { MappingFinding, TargetFacts, TargetFinding } from "../../model.ts";
import { byCause, type Finding, type FindingKind, type Note } from "./findings.ts";
import type { HistoryFile } from "./history-files.ts";
import { factorWords, HOLE_STEPS, type Holes, levelShifts, type SeriesShape } from "./series.ts";

export interface PlannedFile {
  readonly file: HistoryFile;
  /** Null: no trigger claims it. */
  readonly mapper: string | null;
  readonly points: number;
  /** Refused rows of a lenient mapping. */
  readonly rejected: number;
  /** Why nothing of the file can be delivered; null when it can. */
  readonly fault: FileFault | null;
  readonly targets: readonly PlannedTarget[];
  /** SHA-256 of the content, lower-case hexadecimal; null when it was not read. */
  readonly sha256: string | null;
  /** Of its mapping. */
  readonly found: readonly MappingFinding[];
}

export interface FileFault {
  /** Equal for files with the same cause. */
  readonly cause: string;
  /** With the name of the file and the place in it. */
  readonly words: string;
}

/** `shape`: absent when the readings were not read. */
export type PlannedTarget = TargetFacts & { readonly shape?: SeriesShape | undefined };

/** A target that the service would not store as it is, with the files that hold it. */
export type Unfitting = Pick<TargetFinding, "what" | "target" | "words"> & { readonly files: readonly string[] };

interface Target {
  readonly target: PushTarget;
  readonly units: Set<string>;
  readonly spans: (Span & { readonly unit: string | undefined })[];
}

/** Of a file that holds less than this share of the usual readings, some are missing. */
const SHORT = 0.75;

const HOUR_MS = 3_600_000;
const HOURS_MAX = 14;
const DAY_MS = 86_400_000;
/** Readings between the end of one and the beginning of the other. */
const APART = 2;

/** Files are added one by one, in their order; memory holds their targets, and no readings. */
export class Plan {
  readonly #targets = new Map<string, Target>();
  readonly #digests = new Map<string, string>();
  readonly #notes: Note[] = [];
  readonly #samples = new Map<string, TargetFacts>();
  /** Targets that the service stores in another unit: their files are not reported a second time for that. */
  readonly #ofOtherUnit = new Set<string>();
  readonly #unfit = new Map<string, Unfitting>();
  readonly #undelivered: string[] = [];
  #points = 0;
  #rejected = 0;

  add(planned: Omit<PlannedFile, "file"> & { readonly file: Pick<HistoryFile, "path"> }): void {
    const { file, mapper, points, rejected, fault, targets, sha256, found } = planned;
    const { path } = file;
    this.#points += points;
    this.#rejected += rejected;
    const twin = sha256 === null ? undefined : this.#digests.get(sha256);
    if (sha256 !== null && twin === undefined) this.#digests.set(sha256, path);
    if (twin !== undefined) this.note("duplicate", "", [twin, path], null, `${path} has the same content as ${twin}`);
    if (mapper === null) this.note("unclaimed", "", [path], null, `no trigger claims ${path}`);
    else if (fault !== null) this.note("fault", fault.cause, [path], null, fault.words);
    else if (points === 0) this.note("empty", "", [path], null, `${path} holds no readings`);
    for (const one of found) this.#notes.push(mappingNote(path, one));
    if (points === 0) this.#undelivered.push(path);
    for (const facts of targets) this.#addTarget(path, sha256, facts);
  }

  #addTarget(path: string, sha256: string | null, facts: PlannedTarget): void {
    const { target, unit, fromMs, toMs, points, shape = null } = facts;
    const words = targetWords(target);
    const known = this.#targets.getOrInsertComputed(words, () => ({ target, units: new Set(), spans: [] }));
    if (unit !== undefined) {
      const [other] = known.units;
      if (other !== undefined && !known.units.has(unit))
        this.note(
          ...(["unit", `${unit} ${other}`, [path], words] as const),
          `${path} declares ${words} in ${unit}, files before it in ${other}`,
        );
      known.units.add(unit);
    }
    known.spans.push({ path, sha256, fromMs, toMs, points, shape, unit });
    const sample = `${words} ${unit ?? ""}`;
    if (!this.#samples.has(sample)) this.#samples.set(sample, facts);
  }

  note(kind: FindingKind, key: string, files: readonly string[], target: string | null, words: string): void {
    this.#notes.push({ kind, key, files, target, words });
  }

  /** Found by the guard: of a plan for all files of a target, of a run for each file. */
  addUnfit(one: Unfitting): void {
    const key = `${one.target} ${one.what} ${one.words}`;
    const files = [...(this.#unfit.get(key)?.files ?? []), ...one.files];
    this.#unfit.set(key, { ...one, files });
    if (one.what === "unit") this.#ofOtherUnit.add(one.target);
  }

  get totals(): { readonly points: number; readonly rejected: number; readonly targets: number } {
    return { points: this.#points, rejected: this.#rejected, targets: this.#targets.size };
  }

  /** Earliest and latest reading, in milliseconds since 1970 in UTC; null without readings. */
  get period(): { readonly fromMs: number; readonly toMs: number } | null {
    const all = [...this.#targets.values()].flatMap(({ spans }) => spans);
    if (all.length === 0) return null;
    const edges = all.reduce(
      (edge, { fromMs, toMs }) => ({
        fromMs: Math.min(edge.fromMs, fromMs),
        toMs: Math.max(edge.toMs, toMs),
      }),
      { fromMs: Number.POSITIVE_INFINITY, toMs: Number.NEGATIVE_INFINITY },
    );
    return edges;
  }

  /**
   * The origin of what the guard found about a target: its files, in their order, and its period in milliseconds since
   * 1970 in UTC.
   */
  shareOf(
    target: string,
    { what, words }: Pick<TargetFinding, "what" | "words"> = { what: "missing", words: "" },
  ): { readonly files: readonly string[]; readonly fromMs: number; readonly toMs: number } | null {
    const isMeant = ({ unit }: { readonly unit: string | undefined }) =>
      what !== "unit" || words.startsWith(`declared in ${unit},`) || words.startsWith(`declared in ${unit};`);
    const spans = this.#targets.get(target)?.spans.filter(isMeant);
    if (spans === undefined) return null;
    const [fromMs, toMs] = spans.reduce<readonly [number, number]>(
      ([from, to], span) => [Math.min(from, span.fromMs), Math.max(to, span.toMs)],
      [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
    );
    return { files: [...new Set(spans.map(({ path }) => path))], fromMs, toMs };
  }

  /** One for each target and unit, from the first file with it. */
  samples(): readonly TargetFacts[] {
    return [...this.#samples.values()];
  }

  /**
   * `isWhole` false: only some of the files were added, so that an apparent gap between two of them may be filled by
   * another.
   */
  findings(isWhole = true): readonly Finding[] {
    const undelivered = new Undelivered(this.#undelivered);
    const ofSeries = [...this.#targets].flatMap(([words, { spans }]) => [
      ...seamsOf(words, spans, isWhole, undelivered),
      ...levelNotes(words, spans),
    ]);
    const others = this.#notes.filter(
      ({ kind, target }) => kind !== "unit" || target === null || !this.#ofOtherUnit.has(target),
    );
    return byCause([
      ...others.map((note) => withLoss(note, undelivered)),
      ...[...this.#unfit.values()].map(unfitNote),
      ...ofSeries,
      ...(isWhole ? handovers(this.#series()) : []),
    ]);
  }

  #series(): readonly Series[] {
    return [...this.#targets].map(([words, { target, units, spans }]) => ({ words, target, units, spans }));
  }
}

/** A file of which nothing is delivered is the cause of the gap that it leaves. */
function withLoss(note: Note, undelivered: Undelivered): Note {
  const [path, ...others] = note.files;
  return path === undefined || others.length > 0
    ? note
    : { ...note, words: `${note.words}${undelivered.lossWords(path)}` };
}

function unfitNote({ what, target, words, files }: Unfitting): Note {
  const [first = "no file", ...others] = new Set(files);
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  // Targets differ in their names; the cause is what is said of them.
  const values = [...target.matchAll(/=(\S+)/g)].map(([, value = ""]) => value);
  const cause = values.reduce((text, value) => text.replaceAll(value, "…"), words).replace(/\d+/g, "#");
  return {
    ...{ kind: "guard", key: `${what} ${cause}`, files: [...new Set(files)], target },
    words: `${target}: ${words}; in ${first}${more}`,
  };
}

/** Replaced rows are no fault of their own, but in a history the rows that count may be the wrong ones. */
const CHECKED_KINDS: readonly string[] = ["replaced"];

function mappingNote(path: string, finding: MappingFinding): Note {
  const { kind, message, attention } = finding;
  return {
    ...{ kind: "mapper", key: `${kind} ${message}`, files: [path], target: null },
    words: `${path}: ${findingWords(finding)}`,
    isInformation: attention !== true && !CHECKED_KINDS.includes(kind),
  };
}

function levelNotes(target: string, spans: readonly Span[]): readonly Note[] {
  const levels = spans.flatMap(({ path, shape }) => (shape?.levels ?? []).map((level) => ({ ...level, path })));
  return levelShifts(levels).map(({ fromMs, before, after, log }) => {
    const day = new Date(fromMs).toISOString().slice(0, 10);
    const where = before === after ? `inside of ${after}` : `in ${after} and later`;
    return {
      ...{ kind: "level" as const, key: `${Math.round(log)} ${day.slice(0, 7)}`, files: [after], target },
      words:
        `from ${day} (${where}) the values of ${target} are ${factorWords(log)} those before: another unit, divider ` +
        "or meter",
    };
  });
}

// One series that ends where another begins: a meter was exchanged, or its name was changed.

/** All that the files hold of one target. */
interface Series {
  /** The target in words. */
  readonly words: string;
  readonly target: PushTarget;
  readonly units: ReadonlySet<string>;
  readonly spans: readonly Span[];
}

interface Ends {
  readonly words: string;
  /** Only series of the same quantity follow each other. */
  readonly quantity: string;
  readonly first: Span;
  readonly last: Span;
  readonly step: number;
}

function handovers(series: readonly Series[]): readonly Note[] {
  const all = series.flatMap(endsOf);
  const fromMs = Math.min(...all.map(({ first }) => first.fromMs));
  const toMs = Math.max(...all.map(({ last }) => last.toMs));
  const ended = all.filter(({ last, step }) => toMs - last.toMs > Math.max(DAY_MS, APART * step));
  const begun = all.filter(({ first, step }) => first.fromMs - fromMs > Math.max(DAY_MS, APART * step));
  return ended.flatMap((one) => {
    const next = begun.filter((other) => follows(one, other));
    const [only] = next;
    // Where several could be meant, none is named as the other's successor.
    if (only === undefined || next.length > 1 || ended.filter((other) => follows(other, only)).length > 1) return [];
    return [noteOf(one, only)];
  });
}

function endsOf({ words, target, units, spans }: Series): readonly Ends[] {
  const [start] = spans;
  if (start === undefined) return [];
  const first = spans.reduce((one, other) => (other.fromMs < one.fromMs ? other : one), start);
  const last = spans.reduce((one, other) => (other.toMs > one.toMs ? other : one), start);
  const step = (first.toMs - first.fromMs) / Math.max(1, first.points - 1);
  const quantity = `${target.mappingConfig ?? ""} ${target.variableTypeId ?? ""} ${[...units].sort().join(" ")}`;
  return [{ words, quantity, first, last, step }];
}

function follows(one: Ends, other: Ends): boolean {
  const ms = other.first.fromMs - one.last.toMs;
  return (
    one.words !== other.words &&
    one.quantity === other.quantity &&
    ms > -one.step &&
    ms <= APART * Math.max(one.step, 1)
  );
}

function noteOf(one: Ends, other: Ends): Note {
  const at = new Date(other.first.fromMs).toISOString();
  return {
    ...{ kind: "handover", key: at, files: [one.last.path, other.first.path], target: other.words },
    words:
      `${one.words} ends in ${one.last.path} where ${other.words} begins in ${other.first.path}, at ${at}: a meter ` +
      "was exchanged, or its name was changed",
  };
}

// Where the readings of one target are missing, or twice: between its files, and inside of them.

/** One file's share of one target. */
interface Span {
  readonly path: string;
  /** SHA-256 of the file; null when it was not read. */
  readonly sha256: string | null;
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
  readonly shape: SeriesShape | null;
}

/** The files of which nothing is delivered, and what is missing because of them. */
class Undelivered {
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
function seamsOf(target: string, spans: readonly Span[], withGaps: boolean, undelivered: Undelivered): readonly Note[] {
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
