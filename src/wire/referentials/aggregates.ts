/**
 * Aggregates of readings by period: one table with each fact, for the hub, the explorer and the documentation
 * (`docs/aggregates.md`). Browsers load this file, so that it imports nothing.
 */
interface AggregateFacts {
  /** Key of `GET /aggregates`. */
  readonly id: number;
  /** Column of the rows of /data. */
  readonly column: `${string}Value`;
  /** Stands in heads of exported tables. */
  readonly words: string;
  /** In the documentation. */
  readonly meaning: string;
  /** Of the result: that of the values, its square, or none. */
  readonly unit: "same" | "squared" | "none";
  /**
   * Of a longer period: `parts` where it follows from count, sum, least and greatest value of smaller periods, which
   * are kept for days; `points` where each point of the period has to be read.
   */
  readonly from: "parts" | "points";
  /** Points of a period that it needs; with fewer there is no result. A period without points has no row. */
  readonly pointsMin: number;
  /** The explorer draws it with a band from the least to the greatest value of the period. */
  readonly hasBand: boolean;
}

/** A new aggregate has every fact, since the type of each use follows from here. */
export const AGGREGATE_FACTS = {
  SUM: {
    id: 1,
    column: "sumValue",
    words: "sum",
    meaning: "all values together",
    unit: "same",
    from: "parts",
    pointsMin: 1,
    hasBand: false,
  },
  MIN: {
    id: 2,
    column: "minValue",
    words: "minimum",
    meaning: "the least value",
    unit: "same",
    from: "parts",
    pointsMin: 1,
    hasBand: false,
  },
  MAX: {
    id: 3,
    column: "maxValue",
    words: "maximum",
    meaning: "the greatest value",
    unit: "same",
    from: "parts",
    pointsMin: 1,
    hasBand: false,
  },
  AVG: {
    id: 4,
    column: "avgValue",
    words: "average",
    meaning: "the sum by the count: each point counts alike, however long its value holds",
    unit: "same",
    from: "parts",
    pointsMin: 1,
    hasBand: true,
  },
  COUNT: {
    id: 5,
    column: "countValue",
    words: "count",
    meaning: "how many points",
    unit: "none",
    from: "parts",
    pointsMin: 1,
    hasBand: false,
  },
  VAR: {
    id: 6,
    column: "varianceValue",
    words: "variance",
    meaning: "the variance of a sample (by n - 1)",
    unit: "squared",
    from: "points",
    pointsMin: 2,
    hasBand: false,
  },
  STDEV: {
    id: 7,
    column: "stdevValue",
    words: "standard deviation",
    meaning: "the standard deviation of a sample: the root of VAR",
    unit: "same",
    from: "points",
    pointsMin: 2,
    hasBand: false,
  },
} as const satisfies Readonly<Record<string, AggregateFacts>>;

/** An aggregate that is computed. */
export type Aggregated = keyof typeof AGGREGATE_FACTS;
export type Aggregate = "None" | Aggregated;
export const AGGREGATED = Object.keys(AGGREGATE_FACTS) as readonly Aggregated[];

type Ids = { readonly None: 0 } & { readonly [Name in Aggregated]: (typeof AGGREGATE_FACTS)[Name]["id"] };
/** Name to id. */
export const AGGREGATES = {
  None: 0,
  ...Object.fromEntries(Object.entries(AGGREGATE_FACTS).map(([name, { id }]) => [name, id])),
} as Ids;

/** Whether it follows from count, sum, least and greatest value of parts of its period. */
export function isOfParts(name: Aggregated): boolean {
  return AGGREGATE_FACTS[name].from === "parts";
}

/** The unit of a result, by the symbol of that of the values; null: values as stored. */
export function aggregateUnit(name: Aggregated | null, symbol: string): string {
  const unit = name === null ? "same" : AGGREGATE_FACTS[name].unit;
  if (unit === "same" || symbol === "") return symbol;
  return unit === "none" ? "" : `(${symbol})²`;
}

/** By `GET /quantityTypes`: values of an interval add up, the last of a meter index is its greatest. */
const AGGREGATE_OF_QUANTITY: Readonly<Record<number, Aggregated>> = {
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
}): Aggregated | null {
  const { aggregate, quantityType } = variable;
  const own = Object.entries(AGGREGATES).find(([, number]) => number === aggregate)?.[0] as Aggregate | undefined;
  if (own !== undefined && own !== "None") return own;
  return AGGREGATE_OF_QUANTITY[quantityType ?? 0] ?? null;
}
