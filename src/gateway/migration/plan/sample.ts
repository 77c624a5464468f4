/**
 * Chooses the files of a history that a plan reads: all of a small history, and of a large one a sample spread over
 * names and sizes, so that its findings hold for the other files about as well.
 */
import { parseSize } from "#core/quantities.ts";

export interface SampleLimits {
  readonly files: number;
  readonly bytes: number;
  /** A history up to this multiple of the limits is read completely: little of it would remain. */
  readonly slack?: number;
}

/** Read in about a minute, whatever the size of the history. */
export const SAMPLE_DEFAULT: SampleLimits = { files: 300, bytes: 200_000_000, slack: 1.5 };

/** `all`, a number of files, or a size such as `1GB`; undefined for any other text. */
export function parseSample(text: string): SampleLimits | undefined {
  const words = text.trim();
  const [files, bytes] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  if (words === "all") return { files, bytes };
  if (/^[1-9]\d*$/.test(words)) return { files: Number(words), bytes };
  const size = parseSize(words);
  return size === undefined || size === 0 ? undefined : { files, bytes: size };
}

export interface Sampled {
  readonly size: number;
  /** Files of one group are alike: at least one of each group is read. */
  readonly group: string;
}

/**
 * Ascending indexes into `files`, which are in the order of their names; all of them when they are within the limits,
 * or little beyond them. One file of each group is read even beyond the limits, its smallest then.
 */
export function chooseSample(files: readonly Sampled[], limits: SampleLimits): readonly number[] {
  const bytes = sumOf(files.map(({ size }) => size));
  const { slack = 1 } = limits;
  if (files.length <= slack * limits.files && bytes <= slack * limits.bytes) return [...files.keys()];
  const groups = Map.groupBy(files.keys(), (index) => files[index]?.group ?? "");
  const chosen = [...groups.values()].flatMap((members) => {
    const share = members.length / files.length;
    const shareOfBytes = sumOf(members.map((index) => files[index]?.size ?? 0)) / Math.max(1, bytes);
    return chooseOf(members, (index) => files[index]?.size ?? 0, {
      files: Math.max(1, Math.round(limits.files * share)),
      bytes: limits.bytes * shareOfBytes,
    });
  });
  return chosen.sort((one, other) => one - other);
}

function chooseOf(
  members: readonly number[],
  sizeOf: (index: number) => number,
  limits: SampleLimits,
): readonly number[] {
  const bySize = members.toSorted((one, other) => sizeOf(one) - sizeOf(other));
  const chosen = new Set<number>();
  let bytes = 0;
  const take = (index: number | undefined) => {
    if (index === undefined || chosen.has(index) || chosen.size >= limits.files) return;
    if (bytes + sizeOf(index) > limits.bytes) return;
    chosen.add(index);
    bytes += sizeOf(index);
  };
  // The order spreads the sample, wherever it stops. Neighbours stay together, since a seam shows only between two of
  // them.
  for (const at of spread(members.length)) {
    take(members[at]);
    take(members[at + 1]);
    take(bySize[at]);
    if (chosen.size >= limits.files) break;
  }
  return chosen.size === 0 ? bySize.slice(0, 1) : [...chosen];
}

/** Every number below `count` once: first and last, the middle, the quarters, the eighths … */
function* spread(count: number): Generator<number> {
  const given = new Set<number>();
  for (let parts = 1; given.size < count; parts *= 2)
    for (let part = 0; part <= parts; part += 1) {
      const at = Math.round(((count - 1) * part) / parts);
      if (given.has(at)) continue;
      given.add(at);
      yield at;
    }
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, one) => sum + one, 0);
}
