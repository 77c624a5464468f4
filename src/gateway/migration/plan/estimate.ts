/**
 * Extrapolates from the files that a plan has read to all of them: the number of readings, and the duration of
 * mapping and sending.
 */
import { grouped } from "#core/text.ts";
import type { Rate } from "../run/rate.ts";

/** Measurements of one file that was read. */
export interface FileMeasure {
  readonly group: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly points: number;
  readonly rejected: number;
  /** Bytes of its batches. */
  readonly sent: number;
  /** From its fetching to the end of its mapping. */
  readonly seconds: number;
}

export interface Measured {
  readonly files: readonly FileMeasure[];
  /** Wall time of all of them, several at a time. */
  readonly seconds: number;
}

/** The rate of sending, as far as it was configured or measured. */
export interface Sending {
  /** `--rate`. */
  readonly rate: Rate | null;
  /** Readings a second, `push.drainRate`. */
  readonly drainRate: number | null;
  /** Readings a second, in an earlier migration; null when there is none. */
  readonly measured: { readonly pointsPerSecond: number; readonly migration: string } | null;
}

export interface Estimate {
  /** True when only durations are estimated. */
  readonly isCounted: boolean;
  readonly points: number;
  /** The true number is within this distance in 19 of 20 uniform histories; 0 when all files were counted. */
  readonly pointsMargin: number;
  readonly rejected: number;
  readonly mappingSeconds: number;
  /** Null: the rate at which the service takes readings is unknown. */
  readonly sendingSeconds: number | null;
  /** Mapping and sending overlap, as they do in a migration. */
  readonly seconds: number;
  /** The basis of the durations, in words. */
  readonly standsOn: readonly string[];
}

interface Listed {
  readonly size: number;
  readonly group: string;
}

/** `all` includes the files that were read, and excludes files that deliver nothing anyway. */
export function estimate(all: readonly Listed[], measured: Measured, sending: Sending): Estimate {
  const read = measured.files;
  const isCounted = read.length === all.length;
  const groups = Map.groupBy(read, ({ group }) => group);
  const ofAll = Map.groupBy(all, ({ group }) => group);
  const total = (amount: (file: FileMeasure) => number) =>
    isCounted
      ? sumOf(read, amount)
      : sumOf([...groups], ([group, files]) => extrapolate(files, ofAll.get(group) ?? [], amount));
  const points = Math.round(total(({ points }) => points));
  const variance = sumOf([...groups], ([group, files]) => varianceOf(files, ofAll.get(group) ?? []));
  const mappingSeconds = mappingTime(all, measured);
  const pace = paceOf(
    sending,
    sumOf(read, ({ sent }) => sent) /
      Math.max(
        1,
        sumOf(read, (one) => one.points),
      ),
  );
  const sendingSeconds = pace.pointsPerSecond === null ? null : points / pace.pointsPerSecond;
  const howMapped = `mapping: ${grouped(read.length)} files took ${measured.seconds.toPrecision(2)} s here`;
  return {
    isCounted,
    points,
    pointsMargin: isCounted ? 0 : Math.ceil(2 * Math.sqrt(variance)),
    rejected: Math.round(total(({ rejected }) => rejected)),
    mappingSeconds,
    sendingSeconds,
    seconds: Math.max(mappingSeconds, sendingSeconds ?? 0),
    standsOn: [howMapped, `sending: ${pace.words}`],
  };
}

/** By bytes, since larger files hold more readings; by number where all files are empty. */
function extrapolate(
  files: readonly FileMeasure[],
  all: readonly Listed[],
  amount: (file: FileMeasure) => number,
): number {
  const bytes = sumOf(files, ({ size }) => size);
  const times = bytes === 0 ? all.length / Math.max(1, files.length) : sumOf(all, ({ size }) => size) / bytes;
  return sumOf(files, amount) * times;
}

/** The variance of a ratio estimate (Cochran, Sampling Techniques, 6.4). */
function varianceOf(files: readonly FileMeasure[], all: readonly Listed[]): number {
  const n = files.length;
  if (n >= all.length) return 0;
  const ratio =
    sumOf(files, ({ points }) => points) /
    Math.max(
      1,
      sumOf(files, ({ size }) => size),
    );
  // A single file has no variance: the estimate may be wrong by all of it.
  const squares =
    n < 2
      ? sumOf(files, ({ points }) => points ** 2)
      : sumOf(files, (one) => (one.points - ratio * one.size) ** 2) / (n - 1);
  return (all.length ** 2 * (1 - n / all.length) * squares) / n;
}

/** A file has a fixed cost and a cost for each byte; several run at a time, in the plan as in the migration. */
function mappingTime(all: readonly Listed[], { files, seconds }: Measured): number {
  if (files.length === 0) return 0;
  const [meanSize, meanSeconds] = [meanOf(files, ({ size }) => size), meanOf(files, (one) => one.seconds)];
  const spreadOfSize = sumOf(files, ({ size }) => (size - meanSize) ** 2);
  const slope =
    spreadOfSize === 0 ? 0 : sumOf(files, (one) => (one.size - meanSize) * (one.seconds - meanSeconds)) / spreadOfSize;
  const perByte = Math.min(Math.max(0, slope), meanSize === 0 ? 0 : meanSeconds / meanSize);
  const perFile = meanSeconds - perByte * meanSize;
  const cost = (some: readonly { readonly size: number }[]) => sumOf(some, ({ size }) => perFile + perByte * size);
  const own = cost(files);
  return own === 0 ? 0 : (seconds * cost(all)) / own;
}

function paceOf(
  { rate, drainRate, measured }: Sending,
  bytesPerPoint: number,
): { readonly pointsPerSecond: number | null; readonly words: string } {
  const known: (readonly [number, string])[] = [];
  if (measured !== null)
    known.push([
      measured.pointsPerSecond,
      `migration ${measured.migration} sent ${grouped(Math.round(measured.pointsPerSecond))} readings/s`,
    ]);
  if (rate?.of === "readings") known.push([rate.perSecond, `--rate ${rate.text}`]);
  if (rate?.of === "bytes" && bytesPerPoint > 0)
    known.push([
      rate.perSecond / bytesPerPoint,
      `--rate ${rate.text}, at ${Math.round(bytesPerPoint)} bytes a reading`,
    ]);
  if (drainRate !== null) known.push([drainRate, `push.drainRate ${drainRate}`]);
  const [slowest] = known.toSorted(([one], [other]) => one - other);
  const unseen =
    measured === null ? "; how fast the service takes readings was not measured, since nothing was sent" : "";
  return slowest === undefined
    ? { pointsPerSecond: null, words: `unknown${unseen}` }
    : { pointsPerSecond: slowest[0], words: `${slowest[1]}${unseen}` };
}

function meanOf<Item>(items: readonly Item[], amount: (item: Item) => number): number {
  return sumOf(items, amount) / Math.max(1, items.length);
}

export function sumOf<Item>(items: readonly Item[], amount: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + amount(item), 0);
}
