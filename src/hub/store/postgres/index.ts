/** The store for several nodes: everything in one schema of one PostgreSQL database. */

import type { Logger } from "#core/log.ts";
import { once } from "#core/promises.ts";
import { FILTER_MS } from "../filter.ts";
import { withLatestAtHand } from "../latest/at-hand.ts";
import { createMasterDataStore, type OpenMasterData } from "../master-data.ts";
import { type CalculationStore, commonStores, type ReadStore } from "../resources.ts";
import { createUsageStore, type HubStore } from "../store.ts";
import { createApart } from "./apart.ts";
import { cannotOpen, createPool, openPool, type PostgresOptions } from "./database.ts";
import { postgresDatabase } from "./driver.ts";
import { createOperationStore } from "./operations.ts";
import { createPointStore } from "./points.ts";

/** Calculations run side by side. */
const CALCULATION_CONNECTIONS = 3;

/** Throws `ConfigError` when the database cannot be opened, or was written by a newer version. */
export async function openPostgresStore(
  options: PostgresOptions,
  log: Logger,
  filterMs = FILTER_MS,
): Promise<HubStore> {
  const pool = await openPool(options, log);
  const apart = createApart(options, filterMs);
  const database = postgresDatabase(pool, apart.ask);
  const operations = createOperationStore(pool, database);
  return {
    ...commonStores(database),
    points: withLatestAtHand(createPointStore(pool, database), database),
    operations,
    usage: createUsageStore(database),
    close: once(async () => {
      try {
        await operations.release();
      } finally {
        await apart.close();
        await pool.end();
      }
    }),
  };
}

/** In another thread than the store. */
export function openPostgresMasterData(options: PostgresOptions): OpenMasterData {
  const pool = createPool(options, { max: 1, settings: { jit: "off" } });
  return { ...createMasterDataStore(postgresDatabase(pool)), close: () => pool.end() };
}

/** In another thread than the store. */
export async function openPostgresCalculations(options: PostgresOptions): Promise<CalculationStore> {
  const pool = createPool(options, { max: CALCULATION_CONNECTIONS, settings: { jit: "off" } });
  const database = postgresDatabase(pool);
  return { ...commonStores(database), points: createPointStore(pool, database), close: () => pool.end() };
}

/** For a command, beside a hub or without one. */
export async function readPostgresStore<Found>(
  options: PostgresOptions,
  read: ReadStore<Found>,
): Promise<Found | null> {
  const pool = createPool(options, { max: 1 });
  try {
    const { rows } = await pool.query("SELECT to_regclass('account') IS NOT NULL AS there");
    return rows[0]?.there === true ? await read(commonStores(postgresDatabase(pool))) : null;
  } catch (thrown) {
    throw cannotOpen(options, thrown);
  } finally {
    await pool.end();
  }
}
