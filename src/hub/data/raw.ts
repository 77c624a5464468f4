/**
 * Raw points of variables, in order. Short pages of many variables are read in one query, others one by one; memory
 * holds one chunk.
 */
import type { HeadAsk, HeadPage } from "../store/point-selection.ts";
import type { PointRow, PointStore, VariableFacts } from "../store/store.ts";
import { type DataRequest, type Zones, zonedRanges } from "./query.ts";

/** Limit on the points that one query reads for several variables, and for one. */
const POINTS_PER_QUERY = 5_000;
const SHORT = 50;

export interface RawChunk {
  readonly variable: VariableFacts;
  readonly zones: Zones;
  /** Never empty. */
  readonly points: readonly PointRow[];
}

/** The chunks of one query at a time. Without `labels`, only dates and values are read. */
export async function* readRaw(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
  labels: boolean,
): AsyncGenerator<readonly RawChunk[]> {
  const short = variables.length > 1 ? headPageOf(request) : null;
  const rangeOf = zonedRanges(request, request.page);
  if (short === null) {
    for (const variable of variables) {
      const { zones, range } = rangeOf(variable);
      for await (const chunk of points.read(variable, { ...range, labels }))
        if (chunk.length > 0) yield [{ variable, zones, points: chunk }];
    }
    return;
  }
  const size = Math.floor(POINTS_PER_QUERY / Math.max(1, short.page.offset + short.page.limit));
  for (let first = 0; first < variables.length; first += size) {
    const asks = variables.slice(first, first + size).map((variable): HeadAsk => {
      const { fromMs, lastMs } = rangeOf(variable).range;
      return { variable, fromMs, lastMs };
    });
    const heads = await points.heads(asks, { ...short, labels });
    const chunks: RawChunk[] = [];
    for (const [index, { variable }] of asks.entries()) {
      const head = heads[index] ?? [];
      if (head.length > 0) chunks.push({ variable, zones: rangeOf(variable).zones, points: head });
    }
    yield chunks;
  }
}

/** Null: the page is not short. */
function headPageOf({ order, page: { offset, limit }, view }: DataRequest): HeadPage | null {
  if (limit === null || offset + limit > SHORT || view.kind === "all") return null;
  return { order, page: { offset, limit }, view };
}
