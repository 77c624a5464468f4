/** The columns of a day of half hours, found by the names that exports use. */
import { FileError } from "headgate/mapper";
import type { DayColumn } from "../_declarative/day-rows.ts";
import { joined } from "../_formats/patterns.ts";

export interface Periods {
  readonly columns: readonly DayColumn[];
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

/** Throws a `FileError` when the header has no full day of half hours, or has them in an ambiguous order. */
export function findPeriods(names: readonly Name[]): Periods {
  const clock = names.flatMap(({ name, at }) => withLabel(at, minutesOf(name)));
  const numbered = names.flatMap(({ name, at }) => withLabel(at, numberOf(name)));
  if (clock.length >= PER_DAY) return { columns: flagged(byClock(clock, numbered), names, minutesOf), labels: "clock" };
  if (numbered.length >= PER_DAY - 2)
    return { columns: flagged(byNumber(numbered), names, numberOf), labels: "periods" };
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

function byNumber(found: readonly Labelled[]): readonly Labelled[] {
  const wrong = found.findIndex(({ label }, index) => label !== index + 1);
  if (wrong === -1) return found;
  throw new FileError(
    `the columns of half hours do not count from 1 upwards: there is ${found[wrong]?.label} in place of ${wrong + 1}`,
    {
      hint: "Columns in another order need the mapper `delimited` with its setting `day`.",
    },
  );
}

/** Columns named by their beginning or by their end; further ones hold the second pass of the repeated hour. */
function byClock(found: readonly Labelled[], numbered: readonly Labelled[]): readonly Labelled[] {
  const day = found.slice(0, PER_DAY);
  const [first] = day;
  const from = first?.label === 30 ? 30 : 0;
  const wrong = day.findIndex(({ label }, index) => label % 1440 !== (from + index * 30) % 1440);
  if (wrong !== -1)
    throw new FileError(
      `the columns of half hours are not in the order of the day: column ${(day[wrong]?.at ?? 0) + 1} is out of it`,
      { hint: "They have to go from 00:00 to 23:30, or from 00:30 to 24:00 or 00:00." },
    );
  const extra = [...found.slice(PER_DAY), ...numbered.filter(({ label }) => label > PER_DAY)];
  return [...day, ...extra.sort((one, other) => one.at - other.at)];
}

/** Finds the column with the status of each half hour: named after it, or the next column. */
function flagged(
  found: readonly Labelled[],
  names: readonly Name[],
  labelOf: (name: string) => number | undefined,
): readonly DayColumn[] {
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
