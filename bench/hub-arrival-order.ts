/** Points pushed in three orders of arrival, and the table of their rates beside a baseline. */
import type { BenchHub } from "./hub-client.ts";
import { bodyOf, type Order, pieces, type Rectangle, STEPS_A_YEAR } from "./hub-data.ts";
import { print, quantile, row } from "./hub-print.ts";

export const VARIABLES = 10_000;
const CONCURRENCY = 2;

export interface Work {
  readonly order: Order;
  readonly all: Rectangle;
}

/** Each order has dates of its own, so that one store takes all three. `stored`: steps that are there before. */
export function worksOf(pushed: number, stored: number): readonly Work[] {
  const variables = Math.min(VARIABLES, pushed / 96);
  const steps = Math.ceil(pushed / variables / 96) * 96;
  const years = Math.max(1, Math.floor(pushed / STEPS_A_YEAR));
  return [
    { order: "day", all: { firstVariable: 1, variables, firstStep: stored, steps } },
    { order: "time", all: { firstVariable: 1, variables, firstStep: stored + steps, steps } },
    {
      order: "variable",
      all: { firstVariable: 1, variables: years, firstStep: stored + 2 * steps, steps: STEPS_A_YEAR },
    },
  ];
}

export interface Baseline {
  readonly name: string;
  /** Points a second of each order. */
  readonly rates: readonly number[];
}

/** Pushes everything, and prints a line an order. */
export async function pushOrders(
  hub: BenchHub,
  works: readonly Work[],
  size: number,
  baseline: Baseline,
): Promise<void> {
  print(row("points/s", baseline.name, "hub", "ratio", "of by-day", "answer ms", "99 %"));
  let byDay = Number.NaN;
  const best = Math.max(...baseline.rates);
  for (const [index, { order, all }] of works.entries()) {
    const { rate, latencies } = await pushAll(hub, order, all, size);
    if (order === "day") byDay = rate;
    const base = baseline.rates[index] ?? Number.NaN;
    print(
      row(
        `by ${order}`,
        base.toFixed(0),
        rate.toFixed(0),
        (rate / base).toFixed(2),
        (rate / byDay).toFixed(2),
        quantile(latencies, 0.5).toFixed(1),
        quantile(latencies, 0.99).toFixed(1),
      ),
    );
    if (order !== "time")
      print(`  beside the best of ${baseline.name}: ${(rate / best).toFixed(2)}; at least 0.30 is wanted`);
  }
  print("by time at least 0.50 of the by-day rate, and a median of 20 ms until the answer are wanted");
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
