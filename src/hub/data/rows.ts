/**
 * Rows of /data, variable by variable in order of id, streamed: memory holds one chunk. Paging counts within each
 * variable (rule 5).
 */
import type { DataDisplayLevel, DataRow } from "../../wire/index.ts";
import type { PointRow, PointStore, VariableFacts } from "../store/store.ts";
import { isoOfUs, ZoneWriter } from "../time.ts";
import { conversionOf } from "./conversion.ts";
import { type CollectedPeriod, collectPeriods } from "./periods.ts";
import { type DataRequest, rangeOf, zonesOf } from "./query.ts";
import { readRaw } from "./raw.ts";

const WHOLE = { offset: 0, limit: null };

export async function* readRows(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<readonly DataRow[]> {
  if (request.granularity === "Raw") yield* rawRows(points, request, variables);
  else for (const variable of variables) yield* aggregatedRows(points, request, variable);
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
  for (const variable of variables) {
    if (request.granularity === "Raw") {
      const zones = zonesOf(request, variable);
      total += await points.count(variable, rangeOf(request, zones.period, WHOLE));
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
  for await (const { variable, zones, points: chunk } of readRaw(points, request, variables, true)) {
    const writer = new ZoneWriter(zones.dates);
    const { unitId, convert } = conversionOf(variable, request.targetUnits);
    yield chunk.map((point) => ({
      ...rawColumn(convert === null ? point.value : convert(point.value)),
      ...discriminants(request.level, variable, unitId, () => writer.write(point.atMs)),
      ...(versions ? versionColumns(point) : {}),
    }));
  }
}

async function* aggregatedRows(
  points: PointStore,
  request: DataRequest,
  variable: VariableFacts,
): AsyncGenerator<readonly DataRow[]> {
  const { granularity, aggregates, page } = request;
  if (granularity === "Raw") return;
  const zones = zonesOf(request, variable);
  const writer = new ZoneWriter(zones.dates);
  const range = { ...rangeOf(request, zones.period, WHOLE), labels: false };
  const { unitId, convert } = conversionOf(variable, request.targetUnits);
  const last = page.limit === null ? Number.POSITIVE_INFINITY : page.offset + page.limit;
  let index = 0;
  const rowOf = ({ bucket, sums }: CollectedPeriod): DataRow => {
    const startMs = bucket.startMs ?? range.fromMs ?? sums.earliestMs;
    const columns = sums.columns(aggregates);
    return { ...columns, ...discriminants(request.level, variable, unitId, () => writer.write(startMs)) };
  };
  const parts = { granularity, zone: zones.period, convert };
  for await (const periods of collectPeriods(points.read(variable, range), parts)) {
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
