import { readMerged } from "../blocks/merged.ts";
import type { OpenSeries, Samples, Span } from "../quality/series.ts";
import { samplesOf, seriesMethods, WHOLE } from "../quality/series.ts";
import { openDatabase, type Statements, statements, write } from "./database.ts";
import { sqliteDatabase } from "./driver.ts";
import { chunkFetch } from "./points.ts";

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
  const span = { lowMs: fromMs, highMs: untilMs - 1, order: "ASC", page: WHOLE } as const;
  for await (const points of readMerged(
    span,
    chunkFetch(tools, id, false, async () => {}),
    false,
  ))
    yield samplesOf(points);
}
