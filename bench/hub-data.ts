/**
 * Stores of many points made in one go, in the store's own format, and the bodies that are pushed to them in
 * three orders.
 */
import { DatabaseSync } from "node:sqlite";
import { systemClock } from "#core/clock.ts";
import type { HubOptions } from "#hub/options.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";

export const STEP_MS = 900_000;
export const STEPS_A_DAY = 96;
export const STEPS_A_YEAR = 35_040;
export const BEGIN_MS = Date.UTC(2025, 0, 1);

export type Order = "variable" | "day" | "time" | "year";

/** Structure for `variables` variables, ids from 1, each with `steps` points from `BEGIN_MS`. */
export async function prefill(path: string, variables: number, steps: number): Promise<void> {
  const store = await openStore({ kind: "sqlite", path });
  await store.close();
  const database = new DatabaseSync(path);
  database.exec(
    "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -64000",
  );
  database.exec("BEGIN; INSERT INTO account (id, name) VALUES (1, 'Bench')");
  database.exec("INSERT INTO site (account_id, name, type_id, time_zone_id) VALUES (1, 'Site', 3, 'Europe/Paris')");
  database
    .prepare(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
      INSERT INTO source (account_id, site_id, name, serial_number, source_type_id, tags)
      SELECT 1, 1, 'Meter ' || i, 'METER-' || (100000 + i), 1, '[]' FROM n`,
    )
    .run(variables);
  database.exec(
    "INSERT INTO variable (account_id, source_id, name, variable_type_id, unit_id, " +
      "mapping_config, tags) SELECT 1, id, 'Energy', 0, 8, 'kWh', '[]' FROM source; COMMIT",
  );
  database.exec("CREATE TEMP TABLE step (i INTEGER PRIMARY KEY)");
  database
    .prepare(
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ? - 1) INSERT " +
        "INTO temp.step SELECT i FROM n",
    )
    .run(steps);
  const insert = database.prepare(
    `INSERT INTO point (variable_id, at_ms, value, origin_id) SELECT ?1, ${BEGIN_MS} + i * ${STEP_MS}, ` +
      "(i % 400) * 0.25 + ?1, 1 FROM temp.step ORDER BY i",
  );
  const AT_ONCE = 100;
  for (let id = 1; id <= variables && steps > 0; id += 1) {
    if (id % AT_ONCE === 1) database.exec("BEGIN");
    insert.run(id);
    if (id % AT_ONCE === 0 || id === variables) database.exec("COMMIT");
  }
  database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  database.close();
}

/** As a hub does in the background. */
export async function packPoints(store: HubOptions["store"]): Promise<void> {
  const opened = await openStore(store);
  const ingest = await openIngestStore(store, { byDefault: 1, byAccount: new Map() }, systemClock);
  while (await ingest.pack());
  await ingest.close();
  await opened.close();
}

/** Without pages that are free for other rows. */
export function bytesUsed(path: string): number {
  const database = new DatabaseSync(path, { readOnly: true });
  const pragma = (name: string) => Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  const bytes = (pragma("page_count") - pragma("freelist_count")) * pragma("page_size");
  database.close();
  return bytes;
}

/** A rectangle of variables and steps. */
export interface Rectangle {
  readonly firstVariable: number;
  readonly variables: number;
  readonly firstStep: number;
  readonly steps: number;
}

/**
 * Cut into pieces of about `size` points in an order of arrival: each variable after the other, the variables
 * day by day, or all variables each quarter-hour. By year a piece is a whole year of one variable.
 */
export function* pieces(order: Order, all: Rectangle, size: number): Generator<Rectangle> {
  const { variables, firstVariable, steps, firstStep } = all;
  const span = spanOf(order, size, steps);
  const width = Math.max(1, Math.floor(size / span));
  const cut = (step: number, variable: number): Rectangle => ({
    firstVariable: firstVariable + variable,
    variables: Math.min(width, variables - variable),
    firstStep: firstStep + step,
    steps: Math.min(span, steps - step),
  });
  if (order === "variable" || order === "year")
    for (let variable = 0; variable < variables; variable += width)
      for (let step = 0; step < steps; step += span) yield cut(step, variable);
  else
    for (let step = 0; step < steps; step += span)
      for (let variable = 0; variable < variables; variable += width) yield cut(step, variable);
}

function spanOf(order: Order, size: number, steps: number): number {
  if (order === "year") return STEPS_A_YEAR;
  if (order === "variable") return Math.min(size, steps);
  return order === "day" ? STEPS_A_DAY : 1;
}

/** As hard to guess as what meters send, so that bodies do not pack better than theirs. */
export function valueAt(variable: number, step: number): number {
  const mixed = Math.imul(step ^ Math.imul(variable, 0x9e3779b1), 0x85ebca6b);
  return (((mixed ^ (mixed >>> 15)) >>> 0) % 1_000_000) / 1_000;
}

/** The body of a push, as the gateway writes it. */
export function bodyOf({ firstVariable, variables, firstStep, steps }: Rectangle): Buffer {
  const dates = Array.from({ length: steps }, (_, index) => dateOf(firstStep + index));
  const elements: string[] = [];
  for (let variable = firstVariable; variable < firstVariable + variables; variable += 1) {
    const data = dates.map((date, index) => `{"date":"${date}","value":${valueAt(variable, firstStep + index)}}`);
    elements.push(
      `{"sourceSerialNumber":"METER-${100_000 + variable}","mappingConfig":"kWh","data":[${data.join(",")}]}`,
    );
  }
  return Buffer.from(`[${elements.join(",")}]`);
}

export function dateOf(step: number): string {
  return new Date(BEGIN_MS + step * STEP_MS).toISOString().replace(".000", "");
}
