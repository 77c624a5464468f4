import { readPieces } from "../blocks/merged.ts";
import { type OpenSeries, seriesMethods } from "../quality/series.ts";
import { openDatabase, statements, write } from "./database.ts";
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
    async *read(id, { fromMs, untilMs }) {
      const fetch = chunkFetch(tools, id, false, async () => {});
      const span = { lowMs: fromMs, highMs: untilMs - 1, order: "ASC" } as const;
      for await (const piece of readPieces(span, fetch, false)) yield piece.samples();
    },
    close: async () => file.close(),
  };
}
