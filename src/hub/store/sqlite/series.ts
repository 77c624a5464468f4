import type { OpenSeries, Samples, Span } from "../quality/series.ts";
import { seriesMethods } from "../quality/series.ts";
import { openDatabase, type Statements, statements, write } from "./database.ts";
import { sqliteDatabase } from "./driver.ts";

const CHUNK = 20_000;
/** A report has nothing else to do. */
const BLOCKING_MS = 5_000;

/** In another thread than the store, whose reads block it. */
export function openSqliteSeries(path: string): OpenSeries {
  const file = openDatabase({ path, migrations: null, timeoutMs: BLOCKING_MS, readOnly: true });
  const tools = statements(file);
  return {
    ...seriesMethods(sqliteDatabase(tools, (work) => write(file, work))),
    read: (variableId, span) => readChunks(tools, variableId, span),
    close: async () => file.close(),
  };
}

async function* readChunks(tools: Statements, id: number, { fromMs, untilMs }: Span): AsyncGenerator<Samples> {
  const sql = `SELECT at_ms, value FROM point WHERE variable_id = ? AND at_ms >= ? AND at_ms < ?
    ORDER BY at_ms LIMIT ${CHUNK}`;
  for (let low = fromMs; ; ) {
    const found = tools.arrays(sql, id, low, untilMs);
    const atMs = new Float64Array(found.length);
    const values = new Float64Array(found.length);
    for (let index = 0; index < found.length; index += 1) {
      atMs[index] = Number(found[index]?.[0]);
      values[index] = Number(found[index]?.[1]);
    }
    if (found.length > 0) yield { atMs, values };
    if (found.length < CHUNK) return;
    low = (atMs.at(-1) ?? low) + 1;
  }
}
