/**
 * Raw points of variables, in order. Short pages of many variables are read in one query, others one by one; memory
 * holds one chunk.
 */
import type { HeadPage } from "../store/point-selection.ts";
import type { PointRow, PointStore, VariableFacts } from "../store/store.ts";
import { type DataRequest, rangeOf, type Zones, zonesOf } from "./query.ts";

/** Limit on the points that one query reads for several variables, and for one. */
const POINTS_PER_QUERY = 5_000;
const SHORT = 50;

export interface RawChunk {
  readonly variable: VariableFacts;
  readonly zones: Zones;
  /** Never empty. */
  readonly points: readonly PointRow[];
}

/** Without `labels`, only dates and values are read. */
export async function* readRaw(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
  labels: boolean,
): AsyncGenerator<RawChunk> {
  const short = variables.length > 1 ? headPageOf(request) : null;
  const askOf = (variable: VariableFacts) => {
    const zones = zonesOf(request, variable);
    return { variable, zones, range: { ...rangeOf(request, zones.period, request.page), labels } };
  };
  if (short === null) {
    for (const variable of variables) {
      const { zones, range } = askOf(variable);
      for await (const chunk of points.read(variable, range))
        if (chunk.length > 0) yield { variable, zones, points: chunk };
    }
    return;
  }
  const size = Math.floor(POINTS_PER_QUERY / Math.max(1, short.page.offset + short.page.limit));
  for (let first = 0; first < variables.length; first += size) {
    const asks = variables.slice(first, first + size).map(askOf);
    const periods = asks.map(({ variable, range: { fromMs, lastMs } }) => ({ variable, fromMs, lastMs }));
    const heads = await points.heads(periods, { ...short, labels });
    for (const [index, { variable, zones }] of asks.entries()) {
      const head = heads[index] ?? [];
      if (head.length > 0) yield { variable, zones, points: head };
    }
  }
}

/** Null: the page is not short. */
function headPageOf({ order, page: { offset, limit }, view }: DataRequest): HeadPage | null {
  if (limit === null || offset + limit > SHORT || view.kind === "all") return null;
  return { order, page: { offset, limit }, view };
}
