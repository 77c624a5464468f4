/** Points pushed in three orders of arrival, and the table of their rates beside a baseline. */
import type { BenchHub } from "./hub-client.ts";
import { bodyOf, type Order, pieces, type Rectangle, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

export const VARIABLES = 10_000;
export const CONCURRENCY = 2;

export interface Work {
  readonly order: Order;
  readonly all: Rectangle;
}

/** Each order has dates of its own, so that one store takes all three. `stored`: steps that are there before. */
export function worksOf(pushed: number, stored: number): readonly Work[] {
  const variables = Math.min(VARIABLES, pushed / 96);
  const steps = Math.ceil(pushed / variables / 96) * 96;
  const years = Math.max(1, Math.floor(pushed / STEPS_A_YEAR));
  const histories = { firstVariable: 1, variables: years, steps: STEPS_A_YEAR };
  return [
    { order: "day", all: { firstVariable: 1, variables, firstStep: stored, steps } },
    { order: "time", all: { firstVariable: 1, variables, firstStep: stored + steps, steps } },
    { order: "variable", all: { ...histories, firstStep: stored + 2 * steps } },
    { order: "year", all: { ...histories, firstStep: stored + 2 * steps + STEPS_A_YEAR } },
  ];
}

export function pointsOf(works: readonly Work[]): number {
  return works.reduce((sum, { all }) => sum + all.variables * all.steps, 0);
}

/** A point that is written before: by it a server loads what it needs, and the time for that does not count. */
export function earlierPoint({ firstVariable, firstStep }: Rectangle): Rectangle {
  return { firstVariable, variables: 1, firstStep: firstStep - 1, steps: 1 };
}

export interface Baseline {
  readonly name: string;
  /** Points a second of each order. */
  readonly rates: readonly number[];
}

/** Pushes everything, and prints a line an order: the rates of the hub and of the baselines, and what they show. */
export async function pushOrders(
  hub: BenchHub,
  works: readonly Work[],
  size: number,
  baselines: readonly Baseline[],
): Promise<void> {
  for (const { all } of works.slice(0, 1)) await hub.push(bodyOf(earlierPoint(all)));
  await hub.drained();
  const names = baselines.flatMap(({ name }) => [name, "hub/it"]);
  print(row("points/s", "hub", "of by-day", "answer ms", "99 %", ...names));
  let byDay = Number.NaN;
  for (const [index, { order, all }] of works.entries()) {
    const { rate, latencies } = await pushAll(hub, order, all, size);
    if (order === "day") byDay = rate;
    const beside = baselines.flatMap(({ rates }) => {
      const base = rates[index] ?? Number.NaN;
      return [base.toFixed(0), (rate / base).toFixed(2)];
    });
    print(
      row(
        `by ${order}`,
        rate.toFixed(0),
        (rate / byDay).toFixed(2),
        quantile(latencies, 0.5).toFixed(1),
        quantile(latencies, 0.99).toFixed(1),
        ...beside,
      ),
    );
  }
  print("wanted: 1.2 times InfluxDB, 3 times upserts, by time half of the by-day rate, and a median of 20 ms");
}

/** The room that points take in a store, by its bytes before and after. */
export function printBytes(before: number, after: number, works: readonly Work[]): void {
  print(`bytes a point: ${((after - before) / pointsOf(works)).toFixed(1)}`);
}

/** Points a second from the first byte sent to the last outcome. */
async function pushAll(hub: BenchHub, order: Order, all: Rectangle, size: number) {
  // Made before, so that making them does not count.
  const bodies = [...pieces(order, all, size)].map(bodyOf);
  const latencies: number[] = [];
  const began = performance.now();
  const client = async (): Promise<void> => {
    for (let body = bodies.shift(); body !== undefined; body = bodies.shift()) latencies.push(await hub.push(body));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, client));
  await hub.drained();
  return { rate: (all.variables * all.steps) / ((performance.now() - began) / 1_000), latencies };
}
