/** Findings about the files of a migration, by their cause: one line for each, however many files share it. */
import { grouped, noun } from "#core/text.ts";

/**
 * In the order in which they are reported. `person`: files are not delivered, or not all of their readings, until a
 * person acts.
 */
const KINDS = {
  pattern: "person",
  fault: "person",
  guard: "person",
  unclaimed: "person",
  discarded: "person",
  mapper: "file",
  unit: "file",
  level: "file",
  zone: "file",
  gap: "file",
  handover: "file",
  overlap: "file",
  duplicate: "file",
  empty: "file",
} as const;
export type FindingKind = keyof typeof KINDS;
const FINDING_KINDS = Object.keys(KINDS) as FindingKind[];

/** One place where something was found. */
export interface Note {
  readonly kind: FindingKind;
  /** Equal for places with the same cause. */
  readonly key: string;
  readonly files: readonly string[];
  readonly target: string | null;
  /** The cause with the place. */
  readonly words: string;
  /** Only to be known: nothing is wrong. */
  readonly isInformation?: boolean;
}

/** All places with one cause. */
export interface Finding {
  readonly kind: FindingKind;
  readonly count: number;
  readonly needsPerson: boolean;
  readonly isInformation: boolean;
  readonly files: readonly string[];
  readonly targets: readonly string[];
  /** The first place, and how many more there are. */
  readonly words: string;
  /** The first places. */
  readonly places: readonly string[];
}

/** Whether files that are delivered may say what is wrong. */
export function isInDelivered({ needsPerson, isInformation }: Finding): boolean {
  return !needsPerson && !isInformation;
}

const PLACES_SHOWN = 20;
/** Causes of one kind that are kept apart; the others of the kind are one line. */
const CAUSES_MAX = 12;

export function byCause(notes: readonly Note[]): readonly Finding[] {
  const kinds = Map.groupBy(notes, ({ kind }) => kind);
  return FINDING_KINDS.flatMap((kind) => causesOf(kinds.get(kind) ?? [])).toSorted(
    (one, other) =>
      Number(other.needsPerson) - Number(one.needsPerson) || Number(one.isInformation) - Number(other.isInformation),
  );
}

/** The one of most places first. */
function causesOf(notes: readonly Note[]): readonly Finding[] {
  const causes = [...Map.groupBy(notes, ({ key }) => key).values()].toSorted((one, other) => other.length - one.length);
  if (causes.length <= CAUSES_MAX) return causes.map(findingOf);
  const rest = causes.slice(CAUSES_MAX - 1).flat();
  return [...causes.slice(0, CAUSES_MAX - 1).map(findingOf), findingOf(rest)];
}

function findingOf(notes: readonly Note[]): Finding {
  const { kind = "fault", words = "" } = notes[0] ?? {};
  const files = [...new Set(notes.flatMap((note) => note.files))];
  const targets = [...new Set(notes.flatMap(({ target }) => (target === null ? [] : [target])))];
  const of = [
    ...(files.length > 1 ? [`${grouped(files.length)} files`] : []),
    ...(targets.length > 1 ? [`${grouped(targets.length)} targets`] : []),
  ].join(", ");
  const others = notes.length - 1;
  const more = `; and ${grouped(others)} more ${noun(others, "place")} like it${of === "" ? "" : ` (${of} in all)`}`;
  return {
    ...{ kind, count: notes.length, needsPerson: KINDS[kind] === "person", files, targets },
    isInformation: notes.every(({ isInformation }) => isInformation === true),
    words: others === 0 ? words : `${words}${more}`,
    places: notes.slice(0, PLACES_SHOWN).map((note) => note.words),
  };
}
