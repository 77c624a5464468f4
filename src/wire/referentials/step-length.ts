/** The spacing between points that a variable declares: `granularity` time periods of `granularityTimeBase`. */
import timePeriods from "./time-periods.json" with { type: "json" };

const TIME_PERIODS: Readonly<Record<string, string>> = timePeriods;

/** About a hundred years, by `GET /timePeriods`; seconds, minutes and hours have the bound of the field alone. */
const LONGEST: Readonly<Record<number, number>> = { 4: 36_525, 5: 5_218, 6: 1_200, 7: 100 };

/** Why it is too long, for the field `granularity`; null: it is not. */
export function spacingFault(granularity: number | undefined, base: number | undefined): string | null {
  const most = LONGEST[base ?? 0];
  if (granularity === undefined || most === undefined || granularity <= most) return null;
  const period = TIME_PERIODS[String(base)];
  return `must be at most ${most} where the time period is ${period} (100 years), and not ${granularity}`;
}

/** `15 minutes` or `1 Day`; null for other words. */
export function spacingOf(
  words: string,
): { readonly granularity: number; readonly granularityTimeBase: number } | null {
  const [, count, period = ""] = SPACING.exec(words) ?? [];
  const base = Object.entries(TIME_PERIODS).find(([, name]) => name.toLowerCase() === period.toLowerCase());
  return base === undefined ? null : { granularity: Number(count), granularityTimeBase: Number(base[0]) };
}

const SPACING = new RegExp(`^([1-9]\\d{0,5}) (${Object.values(TIME_PERIODS).join("|")})s?$`, "i");
