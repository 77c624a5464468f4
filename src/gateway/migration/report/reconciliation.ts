/** Compares accepted readings with stored ones, by target and month, and names the likely reason of a difference. */
import type { DataQuery, DataRow } from "#wire/data.ts";
import { resolveVariables, type TargetReader } from "../resolved-variables.ts";
import type { Expectation, PeriodSum } from "./expectation.ts";

/** Queries to the service; errors are those of its client. */
export interface StoreReader extends TargetReader {
  postData(query: DataQuery, signal: AbortSignal): Promise<readonly DataRow[]>;
}

interface Tally {
  readonly count: number;
  readonly sum: number;
}

export interface Difference {
  readonly target: string;
  readonly variableId: number | null;
  /** First instant of the month, and of the one after. */
  readonly from: string;
  readonly to: string;
  readonly expected: Tally;
  readonly stored: Tally;
  /** In words. */
  readonly reason: string;
}

export interface Reconciliation {
  readonly targets: number;
  /** Dates with a reading. */
  readonly points: number;
  /** Readings that a later one of the migration replaced. */
  readonly superseded: number;
  readonly months: number;
  /** Points of the targets that the service stores in these months. */
  readonly stored: number;
  readonly differences: readonly Difference[];
  /** Runs whose batches are no longer kept, so that they cannot be compared. */
  readonly unknown: readonly string[];
}

const VARIABLES_PER_CALL = 20;
const ROWS_PER_PAGE = 10_000;
/** Sums of the same numbers in another order differ by less than this share of their magnitudes. */
const TOLERANCE = 1e-9;
/** Readings that are compared one by one to find the reason. */
const SAMPLE = 200;

export async function reconcile(
  expectation: Expectation,
  reader: StoreReader,
  signal: AbortSignal,
): Promise<Omit<Reconciliation, "unknown">> {
  const targetCount = expectation.targets().length;
  const differences: Difference[] = [];
  let [months, inService] = [0, 0];
  const byVariable = await resolveVariables(expectation, reader, signal, ({ id, target }) => {
    const all = expectation.sums(id, "month");
    months += all.length;
    differences.push(...all.map((sum) => missingVariable(target, sum)));
  });
  const { points, superseded } = expectation.totals();
  const variables = [...byVariable];
  for (let at = 0; at < variables.length; at += VARIABLES_PER_CALL) {
    const some = variables.slice(at, at + VARIABLES_PER_CALL);
    const stored = await monthsOf(
      some.map(([id]) => id),
      reader,
      signal,
    );
    for (const [variableId, { id, target }] of some) {
      const sums = expectation.sums(id, "month");
      months += sums.length;
      for (const expected of sums) {
        const found = stored.get(`${variableId} ${expected.fromMs}`) ?? { count: 0, sum: 0 };
        inService += found.count;
        if (isSame(expected, found)) continue;
        const reason = await whyDifferent(expectation, { id, variableId }, expected, found, reader, signal);
        differences.push(differenceOf(target, variableId, expected, found, reason));
      }
    }
  }
  return { targets: targetCount, points, superseded, months, stored: inService, differences };
}

function isSame(expected: PeriodSum, found: Tally): boolean {
  return expected.count === found.count && Math.abs(expected.sum - found.sum) <= TOLERANCE * Math.max(1, expected.size);
}

function missingVariable(target: string, expected: PeriodSum): Difference {
  const reason = "the account has no such variable: the service accepted the readings and stored none";
  return differenceOf(target, null, expected, { count: 0, sum: 0 }, reason);
}

function differenceOf(
  target: string,
  variableId: number | null,
  { fromMs, count, sum }: PeriodSum,
  stored: Tally,
  reason: string,
): Difference {
  return {
    ...{ target, variableId, stored, reason, expected: { count, sum } },
    from: new Date(fromMs).toISOString(),
    to: new Date(monthAfter(fromMs)).toISOString(),
  };
}

function monthAfter(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** Count and sum of each variable and month, by `variable firstInstant`. */
async function monthsOf(
  variables: readonly number[],
  reader: StoreReader,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Tally>> {
  const found = new Map<string, Tally>();
  const query: DataQuery = {
    VariableIds: [...variables],
    Granularity: "Month",
    Aggregations: ["COUNT", "SUM"],
    DisplayLevel: "ValueVariableDate",
    TimeZoneId: "UTC",
  };
  for await (const row of allRows(query, reader, signal)) {
    if (row.date === undefined || row.variableId === undefined) continue;
    found.set(`${row.variableId} ${Date.parse(row.date)}`, {
      count: row.countValue ?? 0,
      sum: row.sumValue ?? 0,
    });
  }
  return found;
}

async function* allRows(query: DataQuery, reader: StoreReader, signal: AbortSignal): AsyncGenerator<DataRow> {
  for (let page = 0; ; page += 1) {
    const paging = { "Paging.PageNumber": page, "Paging.ItemsPerPage": ROWS_PER_PAGE };
    const rows = await reader.postData({ ...query, ...paging }, signal);
    yield* rows;
    if (rows.length < ROWS_PER_PAGE) return;
  }
}

/** From a sample of the month, reading by reading. */
async function whyDifferent(
  expectation: Expectation,
  { id, variableId }: { readonly id: number; readonly variableId: number },
  expected: PeriodSum,
  found: Tally,
  reader: StoreReader,
  signal: AbortSignal,
): Promise<string> {
  if (found.count === 0) return "nothing of the month is stored: the service accepted the readings and discarded them";
  const own = expectation.some(id, expected.fromMs, monthAfter(expected.fromMs), SAMPLE);
  const last = own.at(-1)?.at ?? expected.fromMs;
  const rows = await reader.postData(
    {
      VariableIds: [variableId],
      From: new Date(expected.fromMs - DAY_MS).toISOString(),
      To: new Date(last + DAY_MS).toISOString(),
      DisplayLevel: "ValueVariableDate",
      TimeZoneId: "UTC",
      "Paging.PageNumber": 0,
      "Paging.ItemsPerPage": ROWS_PER_PAGE,
    },
    signal,
  );
  const stored = new Map(rows.map((row) => [Date.parse(row.date ?? ""), row.rawValue ?? Number.NaN]));
  const shift = SHIFTS_MS.find((ms) => shareOf(own, ({ at, value }) => stored.get(at + ms) === value) > ALIKE);
  if (shift !== undefined && shareOf(own, ({ at, value }) => stored.get(at) === value) < ALIKE)
    return `the stored readings are shifted by ${shift / HOUR_MS} h: a time zone was taken for another`;
  const ratios = own.flatMap(({ at, value }) => {
    const other = stored.get(at);
    return other === undefined || value === 0 ? [] : [other / value];
  });
  const [ratio] = ratios;
  if (ratio !== undefined && ratio !== 1 && ratios.every((one) => Math.abs(one / ratio - 1) < 1e-6))
    return (
      `every stored value is ${Number(ratio.toPrecision(6))} times ours: a unit was converted, or another ` +
      "sender uses another one"
    );
  if (found.count > expected.count)
    return (
      `the service holds ${found.count - expected.count} readings more: another sender, or an earlier delivery, ` +
      "wrote there"
    );
  if (found.count < expected.count) return `${expected.count - found.count} readings are missing`;
  return "other values are stored: another sender wrote there since, or a later version counts";
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALIKE = 0.9;
const SHIFTS_MS = Array.from({ length: 28 }, (_, at) => (at < 14 ? at - 14 : at - 13) * HOUR_MS).sort(
  (one, other) => Math.abs(one) - Math.abs(other),
);

function shareOf<Item>(items: readonly Item[], holds: (item: Item) => boolean): number {
  return items.length === 0 ? 0 : items.filter(holds).length / items.length;
}
