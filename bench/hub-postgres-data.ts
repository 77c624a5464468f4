/**
 * A store on PostgreSQL filled in one go, as though the points had come by day, and the baseline: `COPY` of
 * points into its tables.
 */
import { pipeline } from "node:stream/promises";
import pg from "pg";
import { from } from "pg-copy-streams";
import { openStore } from "#hub/store/open.ts";
import { BEGIN_MS, type Order, pieces, type Rectangle, STEP_MS, STEPS_A_DAY, valueAt } from "./hub-data.ts";

export const SCHEMA = "headgate_hub";
const DAY_MS = STEPS_A_DAY * STEP_MS;

export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: `-c search_path=${SCHEMA}` });
  await client.connect();
  return client;
}

/** The URL of another database of the server. */
export function databaseOf(server: string, name: string): string {
  return server.replace(/\/postgres$/, `/${name}`);
}

/** Structure for `variables` variables, ids from 1, each with `steps` points from `BEGIN_MS`. */
export async function prefillPostgres(url: string, variables: number, steps: number): Promise<void> {
  await (await openStore({ kind: "postgres", url, schema: SCHEMA, pool: 2, connectTimeout: 10_000 })).close();
  const client = await connect(url);
  await client.query("INSERT INTO account (id, name) VALUES (1, 'Bench')");
  for (const table of ["lane", "structure_change"]) await client.query(`INSERT INTO ${table} (account_id) VALUES (1)`);
  await client.query(
    "INSERT INTO site (account_id, name, type_id, time_zone_id) VALUES (1, 'Site', 3, 'Europe/Paris')",
  );
  await client.query(
    `INSERT INTO source (account_id, site_id, name, serial_number, source_type_id, tags)
      SELECT 1, 1, 'Meter ' || i, 'METER-' || (100000 + i), 1, '[]' FROM generate_series(1, $1) AS i`,
    [variables],
  );
  await client.query(
    `INSERT INTO variable (account_id, source_id, name, variable_type_id, unit_id, mapping_config, tags)
      SELECT 1, id, 'Energy', 0, 8, 'kWh', '[]' FROM source ORDER BY id`,
  );
  const endMs = BEGIN_MS + steps * STEP_MS;
  for (let fromMs = BEGIN_MS; fromMs < endMs; fromMs = monthAfter(fromMs))
    await fillMonth(client, variables, fromMs, Math.min(monthAfter(fromMs), endMs));
  await client.query("VACUUM ANALYZE");
  await client.query("CHECKPOINT");
  await client.end();
}

function monthAfter(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

/** The partition has the name that the hub gives it. */
async function fillMonth(client: pg.Client, variables: number, fromMs: number, endMs: number): Promise<void> {
  const name = `point_${new Date(fromMs).toISOString().slice(0, 7).replace("-", "_")}`;
  const firstDay = (fromMs - BEGIN_MS) / DAY_MS;
  const step = `(${firstDay} + i / ${variables * STEPS_A_DAY}) * ${STEPS_A_DAY} + i % ${STEPS_A_DAY}`;
  await client.query(`CREATE TABLE ${name} (LIKE point INCLUDING DEFAULTS INCLUDING CONSTRAINTS)`);
  await client.query(
    `INSERT INTO ${name} (variable_id, at_ms, value)
      SELECT variable, ${BEGIN_MS} + step * ${STEP_MS}, (step % 400) * 0.25 + variable
      FROM (SELECT 1 + i / ${STEPS_A_DAY} % ${variables} AS variable, ${step} AS step
        FROM (SELECT generate_series(0, CAST($1 AS BIGINT) - 1) AS i) AS each) AS filled
      WHERE ${BEGIN_MS} + step * ${STEP_MS} < $2`,
    [Math.ceil((endMs - fromMs) / DAY_MS) * variables * STEPS_A_DAY, endMs],
  );
  await client.query(`ALTER TABLE ${name} ADD PRIMARY KEY (variable_id, at_ms)`);
  await client.query(
    `ALTER TABLE point ATTACH PARTITION ${name} FOR VALUES FROM (${fromMs}) TO (${monthAfter(fromMs)})`,
  );
}

/** Points a second, making the text not counted: a transaction a push. The partitions are there. */
export async function copyRate(client: pg.Client, order: Order, all: Rectangle, size: number): Promise<number> {
  const texts = [...pieces(order, all, size)].map(textOf);
  const began = performance.now();
  for (const text of texts)
    await pipeline([text], client.query(from("COPY point (variable_id, at_ms, value, origin_id) FROM STDIN")));
  return (all.variables * all.steps) / ((performance.now() - began) / 1_000);
}

function textOf({ firstVariable, variables, firstStep, steps }: Rectangle): Buffer {
  let text = "";
  for (let variable = firstVariable; variable < firstVariable + variables; variable += 1)
    for (let step = firstStep; step < firstStep + steps; step += 1)
      text += `${variable}\t${BEGIN_MS + step * STEP_MS}\t${valueAt(variable, step)}\t1\n`;
  return Buffer.from(text);
}

const UPSERT = `INSERT INTO point (variable_id, at_ms, value, origin_id)
  SELECT *, 1 FROM unnest(CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[]), CAST($3 AS DOUBLE PRECISION[]))
  ON CONFLICT (variable_id, at_ms) DO UPDATE SET value = excluded.value`;

/** The same by a statement a push that also takes points that are there, as scripts do. */
export async function upsertRate(client: pg.Client, order: Order, all: Rectangle, size: number): Promise<number> {
  const columns = [...pieces(order, all, size)].map(columnsOf);
  const began = performance.now();
  for (const arrays of columns) await client.query(UPSERT, arrays);
  return (all.variables * all.steps) / ((performance.now() - began) / 1_000);
}

function columnsOf({ firstVariable, variables, firstStep, steps }: Rectangle): [number[], number[], number[]] {
  const [ids, dates, values]: [number[], number[], number[]] = [[], [], []];
  for (let variable = firstVariable; variable < firstVariable + variables; variable += 1)
    for (let step = firstStep; step < firstStep + steps; step += 1) {
      ids.push(variable);
      dates.push(BEGIN_MS + step * STEP_MS);
      values.push(valueAt(variable, step));
    }
  return [ids, dates, values];
}

/** Of all points, with their indexes, after the room of rows that went was given back. */
export async function bytesOfPoints(client: pg.Client): Promise<number> {
  await client.query("VACUUM");
  const sql = `SELECT sum(pg_total_relation_size(relid)) + pg_total_relation_size('point_block') AS bytes
    FROM pg_partition_tree('point')`;
  return Number((await client.query<{ bytes: string }>(sql)).rows[0]?.bytes);
}

/** Empty partitions of the months of these points. */
export async function addMonths(client: pg.Client, { firstStep, steps }: Rectangle): Promise<void> {
  const endMs = BEGIN_MS + (firstStep + steps) * STEP_MS;
  const first = new Date(BEGIN_MS + firstStep * STEP_MS);
  let fromMs = Date.UTC(first.getUTCFullYear(), first.getUTCMonth());
  for (; fromMs < endMs; fromMs = monthAfter(fromMs)) {
    const name = `point_${new Date(fromMs).toISOString().slice(0, 7).replace("-", "_")}`;
    await client.query(
      `CREATE TABLE IF NOT EXISTS ${name} PARTITION OF point FOR VALUES FROM (${fromMs}) TO (${monthAfter(fromMs)})`,
    );
  }
}
