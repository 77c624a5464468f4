/** The address of the page, which says all that is shown: it can be kept, and sent to others. */
import { AGGREGATED, type Aggregated } from "#wire/referentials/aggregates.ts";
import {
  type Comparison,
  comparisonText,
  type PointName,
  pointText,
  readComparison,
  readPoint,
  readState,
  type State,
  stateText,
} from "./state.ts";

export const GRANULARITIES = ["Raw", "Minute", "Hour", "Day", "Week", "Month", "Year"] as const;
export type Granularity = (typeof GRANULARITIES)[number];

export const VIEWS = ["time", "heat", "duration"] as const;
export type View = (typeof VIEWS)[number];

export interface Shown {
  readonly variables: readonly number[];
  /** Local times of the zone; null: the period of the newest data. */
  readonly from: string | null;
  /** Excluded. */
  readonly to: string | null;
  /** Null: of the site. */
  readonly zone: string | null;
  /** Null: by the length of the period. */
  readonly granularity: Granularity | null;
  /** Null: by the quantity. */
  readonly aggregate: Aggregated | null;
  /** One of a family at most; others stay as stored. */
  readonly units: readonly number[];
  readonly state: State;
  readonly comparison: Comparison;
  readonly view: View;
  /** The variable of the heat map; null: the first. */
  readonly of: number | null;
  /** The one whose versions and origin are shown. */
  readonly point: PointName | null;
}

const LOCAL = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$/;
export const VARIABLES_MAX = 20;

export function readAddress(search: string): Shown {
  const given = new URLSearchParams(search);
  const ids = (name: string) =>
    (given.get(name) ?? "").split(",").flatMap((text) => (/^\d{1,15}$/.test(text) ? [Number(text)] : []));
  const local = (name: string) => {
    const text = given.get(name) ?? "";
    return LOCAL.test(text) && !Number.isNaN(Date.parse(text)) ? text : null;
  };
  const [from, to] = [local("from"), local("to")];
  const isPeriod = from !== null && to !== null && from < to;
  return {
    variables: [...new Set(ids("variables"))].slice(0, VARIABLES_MAX),
    from: isPeriod ? from : null,
    to: isPeriod ? to : null,
    zone: given.get("zone"),
    granularity: GRANULARITIES.find((one) => one === given.get("granularity")) ?? null,
    aggregate: AGGREGATED.find((one) => one === given.get("aggregate")) ?? null,
    units: ids("units"),
    state: readState(given.get("state")),
    comparison: readComparison(given.get("compare")),
    view: VIEWS.find((one) => one === given.get("view")) ?? "time",
    of: ids("of")[0] ?? null,
    point: readPoint(given.get("point")),
  };
}

export function addressOf({ variables, units, state, comparison, view, of, point, ...more }: Shown): string {
  const parameters = new URLSearchParams();
  if (variables.length > 0) parameters.set("variables", variables.join(","));
  const texts = { state: stateText(state), compare: comparisonText(comparison), point: pointText(point) };
  if (view !== "time") parameters.set("view", view);
  if (view === "heat" && of !== null) parameters.set("of", `${of}`);
  for (const [name, value] of Object.entries({ ...more, ...texts })) if (value !== null) parameters.set(name, value);
  if (units.length > 0) parameters.set("units", units.join(","));
  const text = `${parameters}`.replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
  return text === "" ? location.pathname : `?${text}`;
}
