/**
 * The effect of a migration, found without sending anything: every file is mapped, and the targets of the files are
 * compared.
 */
import { findingWords } from "#mapping/contract.ts";
import type { PushTarget } from "#wire/push.ts";
import { targetWords } from "#wire/target.ts";
import type { MappingFinding, TargetFacts, TargetFinding } from "../../model.ts";
import { byCause, type Finding, type FindingKind, type Note } from "./findings.ts";
import { handovers, type Series } from "./handovers.ts";
import type { HistoryFile } from "./history-files.ts";
import { type Span, seamsOf, Undelivered } from "./seams.ts";
import { factorWords, levelShifts, type SeriesShape } from "./series.ts";

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
