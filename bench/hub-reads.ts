/** Reads from a store of many points, over HTTP. */
import { startBenchHub } from "./hub-client.ts";
import { dateOf, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

const REPEATS = 15;

/** The store holds a year of that many variables. */
export async function benchReads(store: object, variables: number): Promise<void> {
  print(`\nreads from a store of ${variables * STEPS_A_YEAR} points; milliseconds, median and 90 % of ${REPEATS}`);
  const hub = await startBenchHub(store);
  const year = { From: dateOf(0), To: dateOf(STEPS_A_YEAR) };
  const dated = { DisplayLevel: "ValueVariableDate" };
  const latest = {
    VariableIds: Array.from({ length: Math.min(1_000, variables) }, (_, index) => index + 1),
    DisplayLevel: "ValueVariableDateSource",
    Paging: { PageNumber: 0, ItemsPerPage: 1 },
    PagingOrder: "DESC",
  };
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
    ["latest points of 1,000 variables", 300, () => latest],
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
  print(`peak of the hub's memory: ${(await hub.stop()).toFixed(0)} MB`);
}
