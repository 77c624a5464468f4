/**
 * Rows of whole days: the interval of each column by the labels of the header, and its instant, also on days of 23 and
 * 25 hours.
 */
import { FileError, RowError, type TimeTools } from "headgate/mapper";

const DAY_MS = 86_400_000;

export interface DayRules {
  readonly zone: string;
  readonly intervalMs: number;
  readonly changeDays: "reject" | "order" | "clock";
  /** Policy for a repeated hour that has only one set of columns. */
  readonly dst: "reject" | "earlier" | "later";
  /** Whether rows may have fewer columns than their day has intervals. */
  readonly partialDays: "reject" | "allow";
}

export interface DayPlan {
  /** Start of the interval of each column in epoch milliseconds; NaN for a column without an interval on that day. */
  readonly starts: readonly number[];
  /** Columns of repeated intervals whose pass is not known. */
  readonly unclear: ReadonlySet<number>;
  /** Columns by which a row of this day may be longer or shorter than one of an ordinary day, by its `changeDays`. */
  readonly extra: number;
}

/**
 * Instants of the columns of a day. `day` is the local date `yyyy-MM-dd`; `filled` is the number of columns up to the
 * last filled one, which shows whether further columns hold a second pass. Throws a `RowError` for a day that the rules
 * refuse.
 */
export function createDayPlanner(
  time: TimeTools,
  rules: DayRules,
): (day: string, columns: number, filled: number) => DayPlan {
  const { zone, intervalMs } = rules;
  const perDay = Math.round(DAY_MS / intervalMs);
  let latestKey = "";
  let latest: DayPlan | undefined;

  function plan(day: string, columns: number, hasExtra: boolean): DayPlan {
    const start = time.dayStart(day, "yyyy-MM-dd", zone).epochMilliseconds;
    const minutes = time.dayLength(day, "yyyy-MM-dd", zone);
    const count = (minutes * 60_000) / intervalMs;
    const inOrder = count === perDay || rules.changeDays === "order";
    if (!inOrder && rules.changeDays === "reject")
      throw new RowError(`the day ${day} has ${minutes / 60} hours in ${zone}`, {
        text: day,
        hint:
          "Set `changeDays` to the way in which the file writes such days: `order` when columns follow " +
          "each other without a gap, `clock` when they are times of the clock.",
      });
    if (inOrder && count > perDay && !hasExtra)
      throw new RowError(
        `the day ${day} has ${count} intervals in ${zone}, but only ${Math.min(columns, perDay)} columns hold values`,
        {
          text: day,
          hint:
            "Columns that follow each other without a gap fill further ones on such a day. If they are " +
            "times of the clock instead, set `changeDays: clock`; if the file never changes its clock, " +
            "set a `timeZone` that does not either.",
        },
      );
    const due = inOrder ? count : perDay;
    if (columns < due && rules.partialDays === "reject") throw tooFew(day, columns, due, zone);
    if (inOrder) {
      const starts = Array.from({ length: columns }, (_, at) => (at < count ? start + at * intervalMs : Number.NaN));
      return { starts, unclear: new Set(), extra: count - perDay };
    }
    return byClock(day, columns, count > perDay, hasExtra);
  }

  /** Columns of a day with a change of the clock, read as clock times. */
  function byClock(day: string, columns: number, isLong: boolean, hasExtra: boolean): DayPlan {
    const midnight = Date.parse(`${day}T00:00:00Z`);
    const starts: number[] = [];
    const again: number[] = [];
    const unclear = new Set<number>();
    for (let at = 0; at < Math.min(perDay, columns); at += 1) {
      const text = new Date(midnight + at * intervalMs).toISOString().slice(0, 19);
      const first = time.iso(text, zone, "earlier").epochMilliseconds;
      const second = time.iso(text, zone, "later").epochMilliseconds;
      if (first === second) starts.push(first);
      else if (!isLong) starts.push(Number.NaN);
      else {
        again.push(second);
        if (!hasExtra && rules.dst === "reject") unclear.add(at);
        starts.push(!hasExtra && rules.dst === "later" ? second : first);
      }
    }
    if (hasExtra && columns < perDay + again.length && rules.partialDays === "reject")
      throw tooFew(day, columns, perDay + again.length, zone);
    for (let at = perDay; at < columns; at += 1) starts.push(again[at - perDay] ?? Number.NaN);
    return { starts, unclear, extra: again.length };
  }

  return (day, columns, filled) => {
    const hasExtra = filled > perDay;
    const key = `${day} ${columns} ${hasExtra}`;
    if (key !== latestKey || latest === undefined) {
      latest = plan(day, columns, hasExtra);
      latestKey = key;
    }
    return latest;
  };
}

function tooFew(day: string, columns: number, due: number, zone: string): RowError {
  return new RowError(`the row has ${columns} columns of values, and ${due} are due for the day ${day} in ${zone}`, {
    text: day,
    hint: `Was a column lost, or the row cut off? ${ALLOW}`,
  });
}

const ALLOW = "If rows hold parts of days, set `partialDays: allow`.";
const HOUR_MS = 3_600_000;

export interface LabelRules extends Pick<DayRules, "intervalMs" | "changeDays" | "partialDays"> {
  /** The label of the first interval of a day, where it is not 0 or 1, or 00:00 or one interval later. */
  readonly firstLabel: string | undefined;
}

/** Labels of columns, as counts of intervals. */
interface Labels {
  readonly isClock: boolean;
  /** Undefined for a name that has no such label. */
  readonly of: (name: string) => number | undefined;
  /** The label of a count, written as that in `like`. */
  readonly write: (count: number, like: string) => string;
}

/**
 * The interval of the day, from 0, that each column holds. Numbered and timed labels have to follow each other, since a
 * column that was lost would shift all that follow; names without a known label only have to be enough. Throws a
 * `FileError`.
 */
export function intervalsOf(names: readonly string[], rules: LabelRules): readonly number[] {
  const labels = labelsOf(names, rules.intervalMs);
  const first = rules.firstLabel === undefined ? undefined : labels?.of(rules.firstLabel);
  if (rules.firstLabel !== undefined && first === undefined)
    throw new FileError(`the columns of the day have no labels of the kind of \`firstLabel\`, ${rules.firstLabel}`, {
      column: names[0] ?? "",
      text: names.join(", "),
    });
  if (labels !== undefined) checkStep(names, labels, rules.intervalMs);
  if (rules.partialDays === "allow")
    return labels === undefined ? [...names.keys()] : byLabel(names, labels, first, rules);
  const perDay = DAY_MS / rules.intervalMs;
  const found = names.map((name) => labels?.of(name));
  if (labels !== undefined) checkOrder(names, labels, first, perDay);
  // A column without a label after those that have one, such as a sum, is none of the day.
  const count = labels === undefined ? names.length : found.findLastIndex((one) => one !== undefined) + 1;
  // Rows show whether a header of 23 hours is that of a short day.
  const isShort = rules.changeDays === "order" && count === perDay - HOUR_MS / rules.intervalMs;
  if (count >= perDay || isShort) return [...names.keys()];
  const last = names[count - 1] ?? "";
  const next =
    labels === undefined ? "" : `${labels.write((labels.of(last) ?? 0) + 1, last)} is missing after ${last}: `;
  throw new FileError(
    `${next}a day has ${perDay} columns of ${shownLength(rules.intervalMs)}, and ${count} are there`,
    {
      column: last,
      hint: `Was a column lost, or is \`interval\` another one? ${ALLOW}`,
    },
  );
}

/** The interval that the labels show is the one of the settings. Throws a `FileError`. */
function checkStep(names: readonly string[], { isClock, of }: Labels, intervalMs: number): void {
  const counts = names.map(of);
  const steps = counts.flatMap((count, at) => (at === 0 ? [] : [(count ?? Number.NaN) - (counts[at - 1] ?? 0)]));
  const [step = 1] = steps;
  if (!isClock || step <= 0 || step === 1 || steps.filter((one) => one === step).length * 2 <= steps.length) return;
  const shown = `${shownLength(step * intervalMs)} apart (${names[0]}, ${names[1]})`;
  throw new FileError(`the labels of the columns are ${shown}, and \`interval\` is ${shownLength(intervalMs)}`, {
    column: names[1] ?? "",
    hint: "Set `interval` to the time that one column stands for.",
  });
}

/** Columns follow each other from the first label of a day on. Throws a `FileError`. */
function checkOrder(names: readonly string[], labels: Labels, given: number | undefined, perDay: number): void {
  // Further columns of the clock hold a second pass.
  const counted = names.slice(0, labels.isClock ? perDay : names.length).map(labels.of);
  const from = counted.findIndex((count) => count !== undefined);
  const first = (counted[from] ?? 0) - from;
  const firsts = given === undefined ? [0, 1] : [given];
  const isLate = !firsts.some((one) => isSame(one, first, labels, perDay));
  const wrong = isLate
    ? from
    : counted.findIndex((count, at) => count !== undefined && !isSame(count, first + at, labels, perDay));
  if (wrong === -1) return;
  const name = names[wrong] ?? "";
  const dueCount = isLate ? (given ?? (counted[from] ?? 0) - 1) : first + wrong;
  const due = labels.write(dueCount, name);
  const isThere = counted.some((count) => count !== undefined && isSame(count, dueCount, labels, perDay));
  const labelled = counted.filter((count) => count !== undefined).length;
  const place = isLate ? `the day begins with ${name}` : `after ${names[wrong - 1] ?? ""} comes ${name}`;
  throw new FileError(
    isThere
      ? `the columns of the day do not follow each other: ${place}, where ${due} is due`
      : `the columns of the day lack ${due}: ${place} (${perDay} are due, ${labelled} are there)`,
    {
      column: name,
      hint: isThere
        ? "The columns of a day stand in its order; `partialDays: allow` takes them by their labels."
        : isLate
          ? `Was a column lost? If days begin with this label, set \`firstLabel: ${JSON.stringify(name)}\`. ${ALLOW}`
          : `Was a column lost, or is \`interval\` another one? ${ALLOW}`,
    },
  );
}

function isSame(one: number, other: number, { isClock }: Labels, perDay: number): boolean {
  return isClock ? (one - other) % perDay === 0 : one === other;
}

/** The intervals that the labels themselves say, whatever columns are missing between. Throws a `FileError`. */
function byLabel(
  names: readonly string[],
  labels: Labels,
  given: number | undefined,
  { intervalMs }: LabelRules,
): readonly number[] {
  const perDay = DAY_MS / intervalMs;
  const counts = names.map(labels.of);
  const known = counts.filter((count) => count !== undefined);
  const isFromZero = known.slice(0, -1).includes(0);
  const isFromOne = known.includes(perDay) || (labels.isClock && known.at(-1) === 0);
  if (given === undefined && isFromZero === isFromOne)
    throw new FileError("the columns are parts of a day, and their labels leave open with which one a day begins", {
      column: names[0] ?? "",
      hint: `Set \`firstLabel\` to the label that the first interval of a day has, such as ${
        labels.isClock ? '`"00:00"` or the end of that interval' : `\`${labels.write(1, names[0] ?? "")}\``
      }.`,
    });
  const first = given ?? (isFromZero ? 0 : 1);
  const seen = new Set<number>();
  return counts.map((count, at) => {
    if (count === undefined) throw unlabelled(names[at] ?? "", "has no label as the others have");
    const found = labels.isClock ? (count - first + perDay) % perDay : count - first;
    if (found < 0 || !Number.isInteger(found) || seen.has(found))
      throw unlabelled(names[at] ?? "", "is a second one, or none of the intervals from the first label on");
    seen.add(found);
    return found;
  });
}

function unlabelled(column: string, why: string): FileError {
  return new FileError(`the column ${column} ${why}, so its interval of the day is not known`, {
    column,
    hint: "Name the columns of the day by `match`, or by `from` and `to`.",
  });
}

const TIME = /(?<![\d:.])(\d{1,2})[:h](\d\d)(?::(\d\d))?(?!\d)\s*(?:([ap])\.?m\b)?/i;
const DOTTED = /(?<![\d:.])(\d{1,2})\.(\d\d)(?!\d)/;
/** A number, and as part of a range, such as 0-1, a second one. */
const NUMBER = /^(\D*)(\d{1,4})(?:(\s*(?:-|–|to|à|tot|bis)\s*)\d+)?(\D*)$/;
const LAST_NUMBER = /^(.*?)(\d{1,4})()(\D*)$/;

/** The kind of label that the names have; undefined where they have none that follows. */
function labelsOf(names: readonly string[], intervalMs: number): Labels | undefined {
  const clock = clockLabels(timeIn, intervalMs);
  if (names.filter((name) => clock.of(name) !== undefined).length * 2 > names.length) return clock;
  const kinds = [NUMBER, LAST_NUMBER].flatMap((expression) => {
    const number = numberIn(names, expression);
    const ofDigits = (name: string) =>
      /^\d{2,4}$/.test(number(name) ?? "") ? hoursMinutes(number(name) ?? "") : undefined;
    const ofHours = (name: string) => (number(name) === undefined ? undefined : Number(number(name)) * HOUR_MS);
    return [numberLabels(number), clockLabels(ofDigits, intervalMs), clockLabels(ofHours, intervalMs)];
  });
  const all = [...kinds, clockLabels((name) => timeOf(DOTTED.exec(name)), intervalMs)];
  const best = all.map((labels) => ({ labels, steps: stepsOf(names, labels) }));
  const found = best.reduce((one, other) => (other.steps > one.steps ? other : one));
  return found.steps * 2 >= names.length - 1 && names.length > 1 ? found.labels : undefined;
}

/** How many names follow the one before them, forwards or backwards. */
function stepsOf(names: readonly string[], { of }: Labels): number {
  return names.filter((name, at) => at > 0 && Math.abs((of(name) ?? Number.NaN) - (of(names[at - 1] ?? "") ?? 0)) === 1)
    .length;
}

/** The digits of the names that differ in nothing else; most names have to. */
function numberIn(names: readonly string[], expression: RegExp): (name: string) => string | undefined {
  const keyOf = (name: string) => {
    const [, before = "", , range = "", after = ""] = expression.exec(name) ?? [];
    return `${before.toLowerCase()}|${range}|${after.toLowerCase()}`;
  };
  const groups = Map.groupBy(
    names.filter((name) => expression.test(name)),
    keyOf,
  );
  const [usual] = [...groups].sort(([, one], [, other]) => other.length - one.length);
  return (name) => (usual !== undefined && keyOf(name) === usual[0] ? expression.exec(name)?.[2] : undefined);
}

function numberLabels(number: (name: string) => string | undefined): Labels {
  return {
    isClock: false,
    of: (name) => (number(name) === undefined ? undefined : Number(number(name))),
    write: (count, like) => {
      const digits = number(like) ?? "";
      const at = like.indexOf(digits);
      return `${like.slice(0, at)}${String(count).padStart(digits.length, "0")}${like.slice(at + digits.length)}`;
    },
  };
}

function clockLabels(ms: (name: string) => number | undefined, intervalMs: number): Labels {
  return {
    isClock: true,
    of(name) {
      const found = ms(name);
      return found === undefined ? undefined : found / intervalMs;
    },
    write: (count) => new Date((((count * intervalMs) % DAY_MS) + DAY_MS) % DAY_MS).toISOString().slice(11, 16),
  };
}

function timeIn(name: string): number | undefined {
  return timeOf(TIME.exec(name));
}

function timeOf(match: RegExpExecArray | null): number | undefined {
  if (match === null) return undefined;
  const [, hours = "", minutes = "", seconds = "0", half] = match;
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (half.toLowerCase() === "p" ? 12 : 0);
  return ((hour * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
}

/** Digits such as 0030 or 2400. */
function hoursMinutes(digits: string): number | undefined {
  const minutes = Number(digits.slice(-2));
  return minutes > 59 ? undefined : (Number(digits.slice(0, -2)) * 60 + minutes) * 60_000;
}

function shownLength(ms: number): string {
  return ms % HOUR_MS === 0 ? `${ms / HOUR_MS}h` : ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`;
}
