/** Reads from a store of many points, over HTTP. */
import { type BareReads, type BenchStore, openBareReads } from "./hub-bare-reads.ts";
import { type BenchHub, startBenchHub } from "./hub-client.ts";
import { dateOf, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

const REPEATS = 15;

/** The store holds a year of that many variables, and the bare one the same points as rows alone. */
export async function benchReads(store: BenchStore, bareStore: BenchStore, variables: number): Promise<void> {
  print(`\nreads from a store of ${variables * STEPS_A_YEAR} points; milliseconds, median and 90 % of ${REPEATS}`);
  const hub = await startBenchHub(store);
  const year = { From: dateOf(0), To: dateOf(STEPS_A_YEAR) };
  const dated = { DisplayLevel: "ValueVariableDate" };
  const daily = { ...year, ...dated, TimeZoneId: "Europe/Paris", Granularity: "Day", Aggregation: "SUM" };
  // Another variable each time, so that no answer comes from a cache of the one before.
  const next = (() => {
    let turn = 0;
    return () => {
      turn += 97;
      return 1 + (turn % variables);
    };
  })();
  const queries: readonly (readonly [string, number, () => object])[] = [
    ["a year of one variable, raw", 60, () => ({ ...year, VariableId: next() })],
    ["the same with dates", 60, () => ({ ...year, ...dated, VariableId: next() })],
    ["daily sums of that year in a zone", 40, () => ({ ...daily, VariableId: next() })],
  ];
  for (const [name, wanted, query] of queries) {
    // A hub runs for months: its code is warm.
    for (let repeat = 0; repeat < 3; repeat += 1) await hub.query(query());
    const times: number[] = [];
    for (let repeat = 0; repeat < REPEATS; repeat += 1) {
      const began = performance.now();
      await hub.query(query());
      times.push(performance.now() - began);
    }
    const cells = [quantile(times, 0.5), quantile(times, 0.9)].map((time) => time.toFixed(1));
    print(`${row(name, ...cells)}   at most ${wanted} is wanted`);
  }
  const bare = await openBareReads(bareStore);
  const own = await openBareReads(store);
  await benchBeside(hub, bare, own, variables);
  await bare.close();
  await own.close();
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB`);
}

/** Variables whose monthly sums one query asks for. */
const SUMMED = 100;
const LATEST = 1_000;

async function benchBeside(hub: BenchHub, bare: BareReads, own: BareReads, variables: number): Promise<void> {
  const idsFrom = (first: number, count: number) =>
    Array.from({ length: Math.min(count, variables) }, (_, index) => 1 + ((first + index) % variables));
  const latest = (ids: readonly number[]) =>
    hub.query({
      VariableIds: ids,
      DisplayLevel: "ValueVariableDateSource",
      Paging: { PageNumber: 0, ItemsPerPage: 1 },
      PagingOrder: "DESC",
    });
  const monthly = (ids: readonly number[]) =>
    hub.query({
      VariableIds: ids,
      From: dateOf(0),
      To: dateOf(STEPS_A_YEAR),
      TimeZoneId: "UTC",
      Granularity: "Month",
      Aggregation: "SUM",
      DisplayLevel: "ValueVariableDate",
    });
  print(`\n${row("beside SQL alone, by turns", "hub, ms", "SQL, ms", "SQL/hub")}`);
  const [summed, known] = [idsFrom(0, SUMMED), idsFrom(0, LATEST)];
  const first = Array.from({ length: Math.min(5, Math.ceil(variables / SUMMED)) }, (_, turn) =>
    idsFrom(turn * SUMMED, SUMMED),
  );
  await beside(`monthly sums of ${summed.length}, for the first time`, first, monthly, (ids) => bare.sums(ids));
  await rolledUp(own);
  const again = Array.from({ length: REPEATS }, () => summed);
  await beside("the same again", again, monthly, (ids) => bare.sums(ids));
  const heads = Array.from({ length: REPEATS }, () => known);
  await beside(`latest points of ${known.length} variables`, heads, latest, (ids) => bare.latest(ids));
}

async function beside<Ask>(
  name: string,
  asks: readonly Ask[],
  ours: (ask: Ask) => Promise<unknown>,
  bare: (ask: Ask) => Promise<unknown>,
): Promise<void> {
  const times: { readonly ours: number; readonly bare: number }[] = [];
  for (const ask of asks) {
    // Once before, so that the pages are in memory for both.
    await bare(ask);
    const one = await timeOf(() => ours(ask));
    times.push({ ours: one, bare: await timeOf(() => bare(ask)) });
  }
  const hub = quantile(
    times.map((one) => one.ours),
    0.5,
  );
  const sql = quantile(
    times.map((one) => one.bare),
    0.5,
  );
  print(row(name, hub.toFixed(1), sql.toFixed(1), (sql / hub).toFixed(2)));
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

/** Until the hub has rolled up what was read. */
async function rolledUp(own: BareReads): Promise<void> {
  for (let last = -1, total = await own.rollups(); total === 0 || total !== last; ) {
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    last = total;
    total = await own.rollups();
  }
}
