import { readMerged } from "../blocks/merged.ts";
import type { OpenSeries, Samples, Span } from "../quality/series.ts";
import { samplesOf, seriesMethods, WHOLE } from "../quality/series.ts";
import { createPool, type PostgresOptions, type Sql, sqlOn } from "./database.ts";
import { postgresDatabase } from "./driver.ts";
import { chunkFetch } from "./points.ts";

/** On a connection of its own. */
export function openPostgresSeries(options: PostgresOptions): OpenSeries {
  const pool = createPool(options, { max: 1, settings: { jit: "off" } });
  const sql = sqlOn(pool);
  return {
    ...seriesMethods(postgresDatabase(pool)),
    read: (variableId, span) => readChunks(sql, variableId, span),
    close: () => pool.end(),
  };
}

async function* readChunks(sql: Sql, id: number, { fromMs, untilMs }: Span): AsyncGenerator<Samples> {
  const span = { lowMs: fromMs, highMs: untilMs - 1, order: "ASC", page: WHOLE } as const;
  for await (const points of readMerged(span, chunkFetch(sql, id, false), true)) yield samplesOf(points);
}
