/**
 * Rows of /data as JSON. Rows of raw values, of which a year has 35,000 a variable, are assembled from their few
 * fields.
 */

import type { VariableFacts } from "../store/records.ts";
import type { PointStore } from "../store/store.ts";
import { ZoneWriter } from "../time.ts";
import { conversionOf } from "./conversion.ts";
import type { DataRequest } from "./query.ts";
import { type RawChunk, readRaw, readRows } from "./rows.ts";

/** Short pieces of many variables are sent in one write. */
const PIECE_CHARACTERS = 262_144;

/** The array in pieces; memory holds one chunk of points. */
export async function* arrayTexts(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<string> {
  let pieces: string[] = [];
  let characters = 0;
  let start = "[";
  for await (const rows of rowTexts(points, request, variables)) {
    pieces.push(start, rows);
    start = ",";
    characters += rows.length;
    if (characters < PIECE_CHARACTERS) continue;
    yield pieces.join("");
    pieces = [];
    characters = 0;
  }
  pieces.push(start === "[" ? "[]" : "]");
  yield pieces.join("");
}

/** Rows with commas between them, never none. */
async function* rowTexts(
  points: PointStore,
  request: DataRequest,
  variables: readonly VariableFacts[],
): AsyncGenerator<string> {
  if (request.granularity !== "Raw" || request.view.kind !== "latest") {
    for await (const rows of readRows(points, request, variables))
      if (rows.length > 0) yield rows.map((row) => JSON.stringify(row)).join(",");
    return;
  }
  const units = request.targetUnits.map(({ id }) => id).join(" ");
  const zones = new Map<string, DateForm>();
  const dateForm = (zone: string): DateForm =>
    zones.getOrInsertComputed(zone, () => ({
      dates: new ZoneWriter(zone),
      form: `${request.level} ${zone} ${units}`,
    }));
  for await (const chunks of readRaw(points, request, variables, false)) {
    if (chunks.length > 0)
      yield chunks.map((chunk) => chunkText(request, chunk, dateForm(chunk.zones.dates))).join(",");
  }
}

interface DateForm {
  readonly dates: ZoneWriter;
  /** Of rows that are the same text for the same point of a variable. */
  readonly form: string;
}

function chunkText(request: DataRequest, chunk: RawChunk, { dates, form }: DateForm): string {
  const [point] = chunk.points;
  if (point === undefined || chunk.points.length > 1) return rawText(request, chunk, dates);
  // Copied into one piece, which is joined with others at a fraction of the cost.
  if (point.shown?.form !== form)
    point.shown = { form, text: Buffer.from(rawText(request, chunk, dates)).toString("latin1") };
  return point.shown.text;
}

/** The fields of `discriminants` in rows.ts, as text. */
function rawText(request: DataRequest, { variable, points }: RawChunk, dates: ZoneWriter): string {
  const { unitId, convert } = conversionOf(variable, request.targetUnits);
  const { level } = request;
  const unit = `"unitId":${unitId}`;
  const named = level === "Value" ? unit : `${unit},"variableId":${variable.id}`;
  const isDated = level === "ValueVariableDate" || level === "ValueVariableDateSource";
  const end = level === "ValueVariableDateSource" ? `","sourceId":${variable.sourceId}}` : '"}';
  let text = "";
  for (const { atMs, value } of points) {
    const shown = convert === null ? value : convert(value);
    const raw = Number.isFinite(shown) ? `"rawValue":${shown},` : "";
    const start = `${text === "" ? "" : ","}{${raw}${named}`;
    text += isDated ? `${start},"date":"${dates.write(atMs)}${end}` : `${start}}`;
  }
  return text;
}
