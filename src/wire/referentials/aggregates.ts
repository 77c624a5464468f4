/** Aggregates of readings by period. Browsers load this file, so that it imports nothing. */
export const AGGREGATES = { None: 0, SUM: 1, MIN: 2, MAX: 3, AVG: 4, COUNT: 5, VAR: 6, STDEV: 7 } as const;
export type Aggregate = keyof typeof AGGREGATES;

/** By `GET /quantityTypes`: values of an interval add up, the last of a meter index is its greatest. */
const AGGREGATE_OF_QUANTITY: Readonly<Record<number, Exclude<Aggregate, "None">>> = {
  1: "AVG",
  2: "SUM",
  3: "MAX",
  4: "MIN",
  5: "MAX",
  6: "AVG",
};

/** Said of a variable for which `usualAggregate` is null. */
export const WITHOUT_QUANTITY = "no quantityType, so that it is unknown whether its values add up (GET /quantityTypes)";

/** The aggregate of a variable where a reader names none: its own, or that of its quantity. Null: it says neither. */
export function usualAggregate(variable: {
  readonly aggregate?: number | null | undefined;
  readonly quantityType?: number | null | undefined;
}): Exclude<Aggregate, "None"> | null {
  const { aggregate, quantityType } = variable;
  const own = Object.entries(AGGREGATES).find(([, number]) => number === aggregate)?.[0] as Aggregate | undefined;
  if (own !== undefined && own !== "None") return own;
  return AGGREGATE_OF_QUANTITY[quantityType ?? 0] ?? null;
}
