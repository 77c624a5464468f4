/**
 * The effect of a migration, found without sending anything: every file is mapped, and the targets of the files are
 * compared.
 */
import type { TargetFacts } from "../../model.ts";
import { targetWords } from "../../wire/target.ts";
import type { HistoryFile } from "./history-files.ts";

export interface PlannedFile {
  readonly file: HistoryFile;
  /** Null: no trigger claims it. */
  readonly mapper: string | null;
  readonly points: number;
  /** Refused rows of a lenient mapping. */
  readonly rejected: number;
  /** Why nothing of the file can be delivered; null when it can. */
  readonly fault: string | null;
  readonly targets: readonly TargetFacts[];
  /** SHA-256 of the content, lower-case hexadecimal; null when it was not read. */
  readonly sha256: string | null;
}

/** A finding about the files, in words that name them. */
export interface PlanFinding {
  readonly kind: "duplicate" | "overlap" | "gap" | "fault" | "unclaimed" | "empty" | "unit" | "pattern";
  readonly files: readonly string[];
  readonly target: string | null;
  readonly words: string;
}

/** One file's share of one target. */
interface Span {
  readonly path: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly points: number;
}

/** Files are added one by one, in their order; memory holds their targets, and no readings. */
export class Plan {
  readonly #spans = new Map<string, { readonly unit: Set<string>; readonly spans: Span[] }>();
  readonly #digests = new Map<string, string>();
  readonly #findings: PlanFinding[] = [];
  readonly #samples = new Map<string, TargetFacts>();
  #points = 0;
  #rejected = 0;

  add(planned: Omit<PlannedFile, "file"> & { readonly file: Pick<HistoryFile, "path"> }): void {
    const { file, mapper, points, rejected, fault, targets, sha256 } = planned;
    const { path } = file;
    this.#points += points;
    this.#rejected += rejected;
    const twin = sha256 === null ? undefined : this.#digests.get(sha256);
    if (sha256 !== null && twin === undefined) this.#digests.set(sha256, path);
    if (twin !== undefined) this.#find("duplicate", [twin, path], null, `${path} has the same content as ${twin}`);
    if (mapper === null) this.#find("unclaimed", [path], null, `no trigger claims ${path}`);
    else if (fault !== null) this.#find("fault", [path], null, fault);
    else if (points === 0) this.#find("empty", [path], null, `${path} holds no readings`);
    for (const facts of targets) {
      const words = targetWords(facts.target);
      const known = this.#spans.get(words) ?? { unit: new Set(), spans: [] };
      this.#spans.set(words, known);
      if (facts.unit !== undefined) {
        const [other] = known.unit;
        if (other !== undefined && !known.unit.has(facts.unit))
          this.#find("unit", [path], words, `${path} declares ${words} in ${facts.unit}, files before it in ${other}`);
        known.unit.add(facts.unit);
      }
      known.spans.push({ path, fromMs: facts.fromMs, toMs: facts.toMs, points: facts.points });
      const sample = `${words} ${facts.unit ?? ""}`;
      if (!this.#samples.has(sample)) this.#samples.set(sample, facts);
    }
  }

  get totals(): { readonly points: number; readonly rejected: number; readonly targets: number } {
    return { points: this.#points, rejected: this.#rejected, targets: this.#spans.size };
  }

  /** Earliest and latest reading, in milliseconds since 1970 in UTC; null without readings. */
  get period(): { readonly fromMs: number; readonly toMs: number } | null {
    const all = [...this.#spans.values()].flatMap(({ spans }) => spans);
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

  /** The origin of a target (in words): its files, in their order, and its period in milliseconds since 1970 in UTC. */
  shareOf(
    target: string,
  ): { readonly files: readonly string[]; readonly fromMs: number; readonly toMs: number } | null {
    const spans = this.#spans.get(target)?.spans;
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
  findings(isWhole = true, wanted: (found: PlanFinding) => boolean = () => true): readonly PlanFinding[] {
    return [
      ...this.#findings.filter(wanted),
      ...[...this.#spans].flatMap(([words, { spans }]) =>
        shortened(words, seams(words, spans, isWhole).filter(wanted)),
      ),
    ];
  }

  #find(kind: PlanFinding["kind"], files: readonly string[], target: string | null, words: string): void {
    this.#findings.push({ kind, files, target, words });
  }
}

/** Seams of one target that are listed; the others are counted. */
const SEAMS_SHOWN = 5;
/** A file that ends this many of its own steps before the next one begins leaves a gap. */
const GAP_STEPS = 1.5;

/** Where the files of one target overlap, or leave a gap between them. */
function seams(target: string, spans: readonly Span[], withGaps: boolean): readonly PlanFinding[] {
  const ordered = spans.toSorted((one, other) => one.fromMs - other.fromMs || one.toMs - other.toMs);
  const found: PlanFinding[] = [];
  let before: Span | undefined;
  for (const span of ordered) {
    if (before !== undefined) {
      const step = stepOf(before) ?? stepOf(span);
      if (span.fromMs <= before.toMs) found.push(overlap(target, before, span, step));
      else if (withGaps && step !== null && span.fromMs - before.toMs > step * GAP_STEPS)
        found.push(gap(target, before, span, step));
    }
    if (before === undefined || span.toMs > before.toMs) before = span;
  }
  return found;
}

function shortened(target: string, found: readonly PlanFinding[]): readonly PlanFinding[] {
  if (found.length <= SEAMS_SHOWN) return found;
  const files = found.slice(SEAMS_SHOWN).flatMap((one) => one.files);
  const words = `${found.length - SEAMS_SHOWN} more overlaps or gaps of ${target}`;
  return [...found.slice(0, SEAMS_SHOWN), { kind: "overlap", files, target, words }];
}

/** Milliseconds between two readings of an even series; null for a single one. */
function stepOf({ fromMs, toMs, points }: Span): number | null {
  return points < 2 ? null : (toMs - fromMs) / (points - 1);
}

function overlap(target: string, before: Span, span: Span, step: number | null): PlanFinding {
  const ms = Math.min(before.toMs, span.toMs) - span.fromMs;
  const count = step === null || step === 0 ? 1 : Math.round(ms / step) + 1;
  return {
    kind: "overlap",
    files: [before.path, span.path],
    target,
    words:
      `${before.path} and ${span.path} overlap by ${count} ${count === 1 ? "reading" : "readings"} of ${target} ` +
      `from ${iso(span.fromMs)}: the later file wins${shiftWords(step === HOUR_MS ? ms + step : ms, step)}`,
  };
}

function gap(target: string, before: Span, span: Span, step: number): PlanFinding {
  const count = Math.max(1, Math.round((span.fromMs - before.toMs) / step) - 1);
  return {
    kind: "gap",
    files: [before.path, span.path],
    target,
    words:
      `between ${before.path} and ${span.path} ${count} ${count === 1 ? "reading" : "readings"} of ${target} ` +
      `are missing, from ${iso(before.toMs + step)}: a file is missing or cut ` +
      `off${shiftWords(span.fromMs - before.toMs - step, step)}`,
  };
}

const HOUR_MS = 3_600_000;
const OTHER_ZONE = "one of the two is in another time zone";

/** Whether stored readings may be wrong because of the finding: a gap alone is no fault of the stored readings. */
export function mayBeWrong({ kind, words }: PlanFinding): boolean {
  return kind === "gap" ? words.includes(OTHER_ZONE) : kind === "duplicate" || kind === "overlap" || kind === "unit";
}

/**
 * A file in another time zone leaves whole hours at a seam; `ms` is the distance from one reading to the other, or to
 * the end of its step.
 */
function shiftWords(ms: number, step: number | null): string {
  if (step === null || step > HOUR_MS) return "";
  const hours = (ms > 0 && ms % HOUR_MS === 0 ? ms : ms + step) / HOUR_MS;
  return Number.isInteger(hours) && hours >= 1 && hours <= 14 ? `, or ${OTHER_ZONE} (${hours} h)` : "";
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
