/**
 * Rows of /data as JSON. Rows of raw values, of which a year has 35,000 a variable, are assembled from their few
 * fields.
 */
import type { PointRow, PointStore, VariableFacts } from "../store/store.ts";
import { ZoneWriter } from "../time.ts";
import { conversionOf } from "./conversion.ts";
import type { DataRequest } from "./query.ts";
import { readRaw } from "./raw.ts";
import { readRows } from "./rows.ts";

/** Short pieces of many variables are sent in one write. */
const PIECE_CHARACTERS = 65_536;

/** The array in pieces; memory holds one chunk of points. */
export async function* arrayTexts(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<string> {
  let piece = "[";
  let isFirst = true;
  for await (const rows of rowTexts(points, request, variables)) {
    piece += isFirst ? rows : `,${rows}`;
    isFirst = false;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  yield `${piece}]`;
}

/** Rows with commas between them, never none. */
async function* rowTexts(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<string> {
  const writers = new Map<string, ZoneWriter>();
  const writerOf = (zone: string): ZoneWriter => {
    const writer = writers.get(zone) ?? new ZoneWriter(zone);
    writers.set(zone, writer);
    return writer;
  };
  if (request.granularity !== "Raw" || request.view.kind !== "latest") {
    for await (const rows of readRows(points, request, variables))
      if (rows.length > 0) yield rows.map((row) => JSON.stringify(row)).join(",");
    return;
  }
  for await (const { variable, zones, points: chunk } of readRaw(points, request, variables, false))
    yield rawWriter(request, variable, writerOf(zones.dates))(chunk);
}

/** The fields of `discriminants` in rows.ts, as text. */
function rawWriter(
  request: DataRequest,
  variable: VariableFacts,
  dates: ZoneWriter,
): (chunk: readonly PointRow[]) => string {
  const { unitId, convert } = conversionOf(variable, request.targetUnits);
  const { level } = request;
  const unit = `"unitId":${unitId}`;
  const named = level === "Value" ? unit : `${unit},"variableId":${variable.id}`;
  const isDated = level === "ValueVariableDate" || level === "ValueVariableDateSource";
  const end = level === "ValueVariableDateSource" ? `","sourceId":${variable.sourceId}}` : '"}';
  return (chunk) => {
    let text = "";
    for (const { atMs, value } of chunk) {
      const shown = convert === null ? value : convert(value);
      const raw = Number.isFinite(shown) ? `"rawValue":${shown},` : "";
      const start = `${text === "" ? "" : ","}{${raw}${named}`;
      text += isDated ? `${start},"date":"${dates.write(atMs)}${end}` : `${start}}`;
    }
    return text;
  };
}
