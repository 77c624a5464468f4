/** One series that ends where another begins: a meter was exchanged, or its name was changed. */
import type { PushTarget } from "#wire/push.ts";
import type { Note } from "./findings.ts";
import type { Span } from "./seams.ts";

/** All that the files hold of one target. */
export interface Series {
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

const DAY_MS = 86_400_000;
/** Readings between the end of one and the beginning of the other. */
const APART = 2;

export function handovers(series: readonly Series[]): readonly Note[] {
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
