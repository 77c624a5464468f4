/**
 * Rows of /data, variable by variable in order of id, streamed: memory holds one chunk. Paging counts within each
 * variable (rule 5).
 */
import { type DataDisplayLevel, type DataRow, type Granularity, isOfParts } from "#wire/index.ts";
import type { HeadAsk, HeadPage } from "../store/point-selection.ts";
import type { PointRange, PointRow, VariableFacts } from "../store/records.ts";
import type { Rollup } from "../store/rollups/rollups.ts";
import type { PointStore } from "../store/store.ts";
import { isoOfUs, ZoneWriter } from "../time.ts";
import { Buckets } from "./buckets.ts";
import { conversionOf } from "./conversion.ts";
import { type CollectedPeriod, collectPeriods, type PeriodSource } from "./periods.ts";
import { type DataRequest, type Zones, zonedRanges } from "./query.ts";
import { isRolledZone, pointsOnly, RULES, rolledSource } from "./rollups/source.ts";

/** Limit on the points that one query reads for several variables, and for one. */
const POINTS_PER_QUERY = 5_000;
const SHORT = 50;
const WHOLE = { offset: 0, limit: null };

export async function* readRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<readonly DataRow[]> {
  if (request.granularity === "Raw") yield* rawRows(points, request, variables);
  else yield* aggregatedRows(points, request, variables);
}

/**
 * Counts the items of all pages: the points, each once however many of its versions are shown, or the periods of an
 * aggregate.
 */
export async function countRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): Promise<number> {
  let total = 0;
  const rangeOf = zonedRanges(request, WHOLE);
  for (const variable of variables) {
    if (request.granularity === "Raw") {
      total += await points.count(variable, rangeOf(variable).range);
      continue;
    }
    for await (const chunk of readRows(points, { ...request, page: WHOLE }, [variable])) total += chunk.length;
  }
  return total;
}

async function* rawRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<readonly DataRow[]> {
  const versions = request.view.kind !== "latest";
  for await (const chunks of readRaw(points, request, variables, true))
    for (const { variable, zones, points: chunk } of chunks) {
      const writer = new ZoneWriter(zones.dates);
      const { unitId, convert } = conversionOf(variable, request.targetUnits);
      yield chunk.map((point) => ({
        ...rawColumn(convert === null ? point.value : convert(point.value)),
        ...discriminants(request.level, variable, unitId, () => writer.write(point.atMs)),
        ...(versions ? versionColumns(point) : {}),
      }));
    }
}

/** Variables whose rollups are read by one query: those of a year take a megabyte. */
const ROLLED_AT_ONCE = 50;

async function* aggregatedRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<readonly DataRow[]> {
  const { granularity } = request;
  if (granularity === "Raw") return;
  const tools = new ZoneTools(granularity);
  const rangeOf = zonedRanges(request, WHOLE);
  for (let first = 0; first < variables.length; first += ROLLED_AT_ONCE) {
    const asks = variables.slice(first, first + ROLLED_AT_ONCE).map((variable): PeriodsAsk => {
      const { zones, range } = rangeOf(variable);
      return { variable, zones, range: { ...range, labels: false } };
    });
    const sources = await sourcesOf(points, request, asks);
    for (const [index, ask] of asks.entries())
      yield* periodRows(request, ask, sources[index] ?? pointsOnly(points, ask.variable), tools);
  }
}

interface PeriodsAsk {
  readonly variable: VariableFacts;
  readonly zones: Zones;
  readonly range: PointRange;
}

/** Of all variables of a request, which mostly share their zone. */
class ZoneTools {
  readonly #granularity: Exclude<Granularity, "Raw">;
  readonly #buckets = new Map<string, Buckets>();
  readonly #writers = new Map<string, ZoneWriter>();

  constructor(granularity: Exclude<Granularity, "Raw">) {
    this.#granularity = granularity;
  }

  buckets(zone: string): Buckets {
    return this.#buckets.getOrInsertComputed(zone, () => new Buckets(this.#granularity, zone));
  }

  writer(zone: string): ZoneWriter {
    return this.#writers.getOrInsertComputed(zone, () => new ZoneWriter(zone));
  }
}

/** One for each variable; rollups where they give the answer. */
async function sourcesOf(
  points: PointStore,
  request: DataRequest,
  asks: readonly PeriodsAsk[],
): Promise<readonly PeriodSource[]> {
  const isRolled = ({ variable, zones }: PeriodsAsk) =>
    isOfDays(request) &&
    isRolledZone(variable, zones.period) &&
    conversionOf(variable, request.targetUnits).convert === null;
  const found = new Map<PeriodsAsk, readonly Rollup[]>();
  const alike = ({ zones, range }: PeriodsAsk) => `${zones.period} ${range.fromMs} ${range.lastMs}`;
  for (const some of Map.groupBy(asks.filter(isRolled), alike).values()) {
    const [one] = some;
    if (one === undefined) continue;
    const { fromMs, lastMs } = one.range;
    const variableIds = some.map(({ variable }) => variable.id);
    const rollups = await points.rollups.read({ variableIds, zone: one.zones.period, rules: RULES, fromMs, lastMs });
    for (const ask of some) found.set(ask, rollups.get(ask.variable.id) ?? []);
  }
  return asks.map((ask) => {
    const rollups = found.get(ask);
    if (rollups === undefined) return pointsOnly(points, ask.variable);
    return rolledSource(points, ask.variable, ask.zones.period, rollups);
  });
}

/** Whether the aggregates of a request follow from those of days. */
function isOfDays({ granularity, aggregates, view }: DataRequest): boolean {
  const isLong = granularity !== "Minute" && granularity !== "Hour";
  return isLong && view.kind === "latest" && aggregates.every(isOfParts);
}

async function* periodRows(
  { level, aggregates, page, targetUnits }: DataRequest,
  { variable, zones, range }: PeriodsAsk,
  source: PeriodSource,
  tools: ZoneTools,
): AsyncGenerator<readonly DataRow[]> {
  const writer = tools.writer(zones.dates);
  const { unitId, convert } = conversionOf(variable, targetUnits);
  const last = page.limit === null ? Number.POSITIVE_INFINITY : page.offset + page.limit;
  let index = 0;
  const rowOf = ({ bucket, sums }: CollectedPeriod): DataRow => {
    const startMs = bucket.startMs ?? range.fromMs ?? sums.earliestMs;
    return { ...sums.columns(aggregates), ...discriminants(level, variable, unitId, () => writer.write(startMs)) };
  };
  const parts = { buckets: tools.buckets(zones.period), convert, isOfParts: aggregates.every(isOfParts) };
  for await (const periods of collectPeriods(source, range, parts)) {
    const rows: DataRow[] = [];
    for (const period of periods) {
      index += 1;
      if (index > page.offset && index <= last) rows.push(rowOf(period));
    }
    if (rows.length > 0) yield rows;
    if (index >= last) return;
  }
}

/** Omitted where the value in the target unit exceeds the range of JSON numbers. */
function rawColumn(value: number): Partial<DataRow> {
  return Number.isFinite(value) ? { rawValue: value } : {};
}

/** "Each level adds variableId, then date, then sourceId"; unitId is always there. */
function discriminants(
  level: DataDisplayLevel,
  variable: VariableFacts,
  unitId: number,
  date: () => string,
): Partial<DataRow> {
  const { id: variableId, sourceId } = variable;
  if (level === "Value") return { unitId };
  if (level === "ValueVariable") return { unitId, variableId };
  if (level === "ValueVariableDate") return { unitId, variableId, date: date() };
  return { unitId, variableId, date: date(), sourceId };
}

/** Both levels of tags stay separate; `tags` shows both, the reading's own before the element's. */
function versionColumns({ version, versionUs, tags, batchTags }: PointRow): Partial<DataRow> {
  return {
    version,
    ...(versionUs === null ? {} : { versionTimestamp: isoOfUs(versionUs) }),
    tags: tags === null && batchTags === null ? null : { ...batchTags, ...tags },
    ...(batchTags === null ? {} : { batchTags }),
  };
}

// Raw points of variables, in order. Short pages of many variables are read in one query, others one by one; memory
// holds one chunk.

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
