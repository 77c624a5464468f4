/** The columns of a day of half hours, found by the names that exports use. */
import { FileError } from "headgate/mapper";
import type { DayColumn } from "../_declarative/day-rows.ts";
import { joined } from "../_formats/patterns.ts";

export interface Periods {
  /** In the order of the header, which is checked elsewhere. */
  readonly columns: readonly Omit<DayColumn, "nth">[];
  /** Whether the columns are settlement periods, which count, or clock times. */
  readonly labels: "periods" | "clock";
}

export interface Name {
  readonly name: string;
  readonly at: number;
}

const PER_DAY = 48;
/** Settlement periods of the longest day. */
const PERIODS_MAX = 50;

const NUMBERED = joined(
  /^(?:hh|sp|p|period|settlement ?period|half ?hour|kwh|value|reading|interval)?/i,
  /[ _.-]*0*([1-9]\d?)[ _.-]*/i,
  /(?:kwh|value|reading|consumption)?$/i,
);
const CLOCK = joined(
  /^(?:hh|t|kwh)?[ _]*(\d{1,2})(?::(\d\d)(?::00)?|(00|30))/i,
  /(?:\s*(?:-|–|to)\s*\d{1,2}:?\d\d(?::00)?)?[ _.-]*(?:kwh|value)?$/i,
);
const FLAG = /[ _.-]*\(?(?:a\/e|ae|flag|type|status|quality|estimated\??|indicator)\)?[ _.-]*/i;

/** `least`: how many columns make days of half hours. Throws a `FileError` when the header has fewer. */
export function findPeriods(names: readonly Name[], least = PER_DAY / 2): Periods {
  const clock = names.flatMap(({ name, at }) => withLabel(at, minutesOf(name)));
  const numbered = names.flatMap(({ name, at }) => withLabel(at, numberOf(name)));
  if (clock.length >= least) return { columns: flagged(withExtra(clock, numbered), names, minutesOf), labels: "clock" };
  if (numbered.length >= least) return { columns: flagged(numbered, names, numberOf), labels: "periods" };
  throw new FileError("the header has no 48 columns of half hours", {
    text: names.map(({ name }) => name).join(", "),
    hint:
      "Known are names such as HH01 to HH48, 1 to 48, 00:00 to 23:30 and 00:30 to 24:00. Is the " +
      "delimiter right? For other names use the mapper `delimited` with its setting `day`.",
  });
}

interface Labelled {
  readonly at: number;
  readonly label: number;
}

function withLabel(at: number, label: number | undefined): Labelled[] {
  return label === undefined ? [] : [{ at, label }];
}

function numberOf(name: string): number | undefined {
  const [, digits] = NUMBERED.exec(name.trim()) ?? [];
  return digits === undefined || Number(digits) > PERIODS_MAX ? undefined : Number(digits);
}

/** Minutes after midnight in a name. */
function minutesOf(name: string): number | undefined {
  const [, hours, minutes, bare] = CLOCK.exec(name.trim()) ?? [];
  if (hours === undefined || (bare !== undefined && hours.length < 2)) return undefined;
  const all = Number(hours) * 60 + Number(minutes ?? bare);
  return all % 30 === 0 && all <= 25 * 60 ? all : undefined;
}

/** Further columns, by the clock or with a number, hold the second pass of the repeated hour. */
function withExtra(found: readonly Labelled[], numbered: readonly Labelled[]): readonly Labelled[] {
  const extra = [...found.slice(PER_DAY), ...numbered.filter(({ label }) => label > PER_DAY)];
  return [...found.slice(0, PER_DAY), ...extra.sort((one, other) => one.at - other.at)];
}

/** Finds the column with the status of each half hour: named after it, or the next column. */
function flagged(
  found: readonly Labelled[],
  names: readonly Name[],
  labelOf: (name: string) => number | undefined,
): Periods["columns"] {
  const taken = new Set(found.map(({ at }) => at));
  const byLabel = new Map<number, number>();
  for (const { name, at } of names) {
    if (taken.has(at) || !FLAG.test(name)) continue;
    const label = labelOf(name.replace(FLAG, ""));
    if (label !== undefined) byLabel.set(label, at);
  }
  if (byLabel.size === 0) {
    const isFollowed = found.every(({ at }) => !taken.has(at + 1) && at + 1 < names.length);
    return found.map(({ at }) => (isFollowed ? { at, flag: at + 1 } : { at }));
  }
  return found.map(({ at, label }) => {
    const flag = byLabel.get(label);
    if (flag !== undefined) return { at, flag };
    throw new FileError(`the half hour ${names[at]?.name} has no column for its status, though others have one`);
  });
}
