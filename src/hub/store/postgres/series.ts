import { readSamples } from "../blocks/merged.ts";
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
    read: (id, { fromMs, untilMs }) =>
      readSamples({ lowMs: fromMs, highMs: untilMs - 1, order: "ASC" }, chunkFetch(sql, id, false), true),
    close: () => pool.end(),
  };
}
