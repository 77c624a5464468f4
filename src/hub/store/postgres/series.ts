import { readPieces } from "../blocks/merged.ts";
import { type OpenSeries, seriesMethods } from "../quality/series.ts";
import { createPool, type PostgresOptions, sqlOn } from "./database.ts";
import { postgresDatabase } from "./driver.ts";
import { chunkFetch } from "./points.ts";

/** On a connection of its own. */
export function openPostgresSeries(options: PostgresOptions): OpenSeries {
  const pool = createPool(options, { max: 1, settings: { jit: "off" } });
  const sql = sqlOn(pool);
  return {
    ...seriesMethods(postgresDatabase(pool)),
    async *read(id, { fromMs, untilMs }) {
      const span = { lowMs: fromMs, highMs: untilMs - 1, order: "ASC" } as const;
      for await (const piece of readPieces(span, chunkFetch(sql, id, false), true)) yield piece.samples();
    },
    close: () => pool.end(),
  };
}
