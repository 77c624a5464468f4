import type { OpenSeries, Samples, Span } from "../quality/series.ts";
import { seriesMethods } from "../quality/series.ts";
import { createPool, type PostgresOptions, type Sql, sqlOn } from "./database.ts";
import { postgresDatabase } from "./driver.ts";

const CHUNK = 20_000;
/** Bytes of a point: date and value as doubles, most significant byte first. */
const WIDTH = 16;

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

/** A chunk is one value of the answer: rows would cost the client more than the server needs to find them. */
async function* readChunks(sql: Sql, id: number, { fromMs, untilMs }: Span): AsyncGenerator<Samples> {
  const text = `SELECT string_agg(float8send(CAST(at_ms AS DOUBLE PRECISION)) || float8send(value), CAST('' AS BYTEA)
      ORDER BY at_ms) AS packed
    FROM (SELECT at_ms, value FROM point WHERE variable_id = ? AND at_ms >= ? AND at_ms < ?
      ORDER BY at_ms LIMIT ${CHUNK}) AS chunk`;
  for (let low = fromMs; ; ) {
    const packed = (await sql.get(text, id, low, untilMs))?.["packed"];
    if (!Buffer.isBuffer(packed)) return;
    const samples = unpacked(packed);
    yield samples;
    if (samples.atMs.length < CHUNK) return;
    low = (samples.atMs.at(-1) ?? low) + 1;
  }
}

function unpacked(packed: Buffer): Samples {
  const count = packed.length / WIDTH;
  const atMs = new Float64Array(count);
  const values = new Float64Array(count);
  for (let index = 0; index < count; index += 1) {
    atMs[index] = packed.readDoubleBE(index * WIDTH);
    values[index] = packed.readDoubleBE(index * WIDTH + WIDTH / 2);
  }
  return { atMs, values };
}
