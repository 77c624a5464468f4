/**
 * Whether a trigger claims a file name, and the reason in words when it does not (specification, *Stored file record
 * and file trigger*).
 */
import type { FileNamePattern, FileTrigger, FilterType, IngestionType } from "./trigger.ts";

type Test = (name: string, value: string) => boolean;

const TESTS: Readonly<Record<FilterType, Test>> = {
  Contains: (name, value) => name.includes(value),
  StartsWith: (name, value) => name.startsWith(value),
  EndsWith: (name, value) => name.endsWith(value),
  Equals: (name, value) => name === value,
  NotContains: (name, value) => !name.includes(value),
  NotStartsWith: (name, value) => !name.startsWith(value),
  NotEndsWith: (name, value) => !name.endsWith(value),
  NotEquals: (name, value) => name !== value,
};

interface PatternVerdict extends FileNamePattern {
  readonly holds: boolean;
}

export interface Verdict {
  readonly matches: boolean;
  readonly patterns: readonly PatternVerdict[];
  /** Such as `StartsWith "acme_": yes; EndsWith ".csv": no (all must hold)`. */
  readonly words: string;
}

/** The part of a trigger that matching reads. */
export type NameRule = Pick<
  FileTrigger,
  "fileNamePatternMatches" | "fileTriggerCombination" | "ingestionType" | "state"
>;

/** By the composed form of Unicode (NFC): a Mac writes the same name with its letters and accents apart. */
export function holds(pattern: FileNamePattern, fileName: string): boolean {
  return TESTS[pattern.filterType](fileName.normalize("NFC"), pattern.value.normalize("NFC"));
}

/**
 * Why the pattern is the same for every file; null when it is not. A trigger sees a name without its folders, at a
 * drop, at a hub, and in a container.
 */
export function constantWords({ filterType, value }: FileNamePattern): string | null {
  if (!value.includes("/")) return null;
  const always = filterType.startsWith("Not");
  return (
    `${filterType} ${JSON.stringify(value)} ${always ? "holds for every file" : "can never hold"}: patterns see the ` +
    "name of a file without its folders, and so without a slash"
  );
}

/** Updated is what a change at the service leaves behind. */
export function fires(trigger: Pick<FileTrigger, "state">): boolean {
  return trigger.state === "Active" || trigger.state === "Updated";
}

/** `fileName` is the base name. Matching is case-sensitive; an empty list of patterns matches nothing. */
export function matchTrigger(trigger: NameRule, fileName: string, ingestionType: IngestionType): Verdict {
  const patterns = trigger.fileNamePatternMatches.map((pattern) => ({
    ...pattern,
    holds: holds(pattern, fileName),
  }));
  const obstacle = obstacleOf(trigger, ingestionType);
  if (obstacle !== null) return { matches: false, patterns, words: obstacle };
  const all = trigger.fileTriggerCombination === "And";
  const matches = all ? patterns.every((one) => one.holds) : patterns.some((one) => one.holds);
  return {
    matches,
    patterns,
    // The text is built on demand, since a claimed file never needs it.
    get words() {
      return patternWords(patterns, all);
    },
  };
}

/** `POST /api/generic/{guid}`: the trigger's token decides, without regard to case; there is no file name to match. */
export function matchToken(
  trigger: Pick<FileTrigger, "ingestionType" | "state" | "token"> & { readonly origin?: unknown },
  token: string,
): { readonly matches: boolean; readonly words: string } {
  if (!fires(trigger)) return { matches: false, words: `its state is ${trigger.state}, so it does not fire` };
  if (trigger.ingestionType !== "SendViaHttp")
    return { matches: false, words: `it is for files that come by ${trigger.ingestionType}` };
  const matches = trigger.token?.toLowerCase() === token.toLowerCase();
  return { matches, words: matches ? "its token is the one sent" : "its token is another" };
}

function obstacleOf(trigger: NameRule, ingestionType: IngestionType): string | null {
  if (!fires(trigger)) return `its state is ${trigger.state}, so it does not fire`;
  if (trigger.ingestionType !== ingestionType)
    return `it is for files that come by ${trigger.ingestionType}, and this one comes by ${ingestionType}`;
  if (trigger.fileNamePatternMatches.length === 0) return "it has no file name patterns, and so matches nothing";
  return null;
}

function patternWords(patterns: readonly PatternVerdict[], all: boolean): string {
  const words = patterns.map((one) => `${one.filterType} ${JSON.stringify(one.value)}: ${one.holds ? "yes" : "no"}`);
  const rule = patterns.length < 2 ? "" : all ? " (all must hold)" : " (one must hold)";
  return `${words.join("; ")}${rule}`;
}
