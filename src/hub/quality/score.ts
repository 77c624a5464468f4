/** One number for the quality of a variable, with the reasons (docs/data-quality.md has the table). */
import type { QualityRow } from "#wire/index.ts";

type Reason = QualityRow["reasons"][number];
type Judged = Omit<QualityRow, "score" | "reasons">;

interface Weight {
  readonly check: string;
  /** Share of the points, or of the steps, that the check found. */
  readonly share: (row: Judged) => number;
  /** Penalty for each percent, and the largest. */
  readonly each: number;
  readonly most: number;
  /** For the first finding. */
  readonly least: number;
  readonly words: (row: Judged) => string;
}

const percent = (share: number) => `${Math.round(share * 10_000) / 100} %`;
const ofPoints = (count: number, { points }: Judged) => (points === 0 ? 0 : count / points);

const WEIGHTS: readonly Weight[] = [
  {
    check: "gaps",
    share: ({ gaps }) => gaps.missingShare ?? 0,
    each: 1,
    most: 60,
    least: 0,
    words: ({ gaps }) => `${gaps.missing} of ${gaps.expected} points are missing (${percent(gaps.missingShare ?? 0)})`,
  },
  {
    check: "freshness",
    // Ten steps late are as bad as it gets; three may still be on their way.
    share: ({ freshness: { stepsLate } }) => (stepsLate === null || stepsLate <= 3 ? 0 : Math.min(10, stepsLate) / 10),
    each: 0.2,
    most: 20,
    least: 0,
    words: ({ freshness }) => `the newest point (${freshness.newest}) is ${freshness.stepsLate} steps old`,
  },
  {
    check: "negative",
    share: (row) => ofPoints(row.negative?.count ?? 0, row),
    each: 5,
    most: 20,
    least: 5,
    words: ({ negative }) => `${negative?.count} negative values or steps back of the counter`,
  },
  {
    check: "flatLines",
    share: (row) => ofPoints(row.flatLines.points, row),
    each: 0.5,
    most: 20,
    least: 2,
    words: ({ flatLines }) => `${flatLines.count} flat lines of ${flatLines.points} points`,
  },
  {
    check: "outliers",
    share: (row) => ofPoints(row.outliers.count, row),
    each: 10,
    most: 20,
    least: 1,
    words: ({ outliers }) => `${outliers.count} values are far from the usual ones`,
  },
  {
    check: "offGrid",
    share: (row) => ofPoints(row.offGrid?.count ?? 0, row),
    each: 0.1,
    most: 10,
    least: 0,
    words: ({ offGrid }) => `${offGrid?.count} points are beside the expected dates`,
  },
  {
    check: "duplicates",
    share: (row) => ofPoints(row.duplicates.crowded, row),
    each: 0.5,
    most: 10,
    least: 0,
    words: ({ duplicates }) => `${duplicates.crowded} points beyond the first of a step`,
  },
];

export function scored(row: Judged): Pick<QualityRow, "score" | "reasons"> {
  if (row.points === 0 && row.gaps.expected !== 0)
    return { score: 0, reasons: [{ check: "gaps", penalty: 100, words: "there is no point in the period" }] };
  // Nothing was expected yet, and nothing came: nothing is known.
  if (row.points === 0) return { score: null, reasons: [] };
  const reasons: Reason[] = [];
  for (const { check, share, each, most, least, words } of WEIGHTS) {
    const found = share(row);
    if (found <= 0) continue;
    const penalty = Math.round(Math.min(most, Math.max(least, found * 100 * each)) * 100) / 100;
    reasons.push({ check, penalty, words: words(row) });
  }
  reasons.sort((one, other) => other.penalty - one.penalty);
  const total = reasons.reduce((sum, { penalty }) => sum + penalty, 0);
  // A single finding never looks like none.
  const score = reasons.length === 0 ? 100 : Math.min(99, Math.max(0, Math.round(100 - total)));
  return { score: row.gaps.expected === null ? null : score, reasons };
}
