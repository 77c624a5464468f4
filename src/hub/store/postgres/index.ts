/** The store for several nodes: everything in one schema of one PostgreSQL database. */

import type { Logger } from "../../../support/log.ts";
import { once } from "../../../support/once.ts";
import type { HubStore } from "../store.ts";
import { openPool, type PostgresOptions } from "./database.ts";
import { createIdentityStore } from "./identity.ts";
import { createOperationStore } from "./operations.ts";
import { createPointStore } from "./points.ts";
import { createStructureStore } from "./structure.ts";
import { createUsageStore } from "./usage.ts";
import { createViewStore } from "./views.ts";

/** Throws `ConfigError` when the database cannot be had, or was written by a newer version. */
export async function openPostgresStore(options: PostgresOptions, log: Logger): Promise<HubStore> {
  const pool = await openPool(options, log);
  const operations = createOperationStore(pool);
  return {
    identity: createIdentityStore(pool),
    structure: createStructureStore(pool),
    views: createViewStore(pool),
    points: createPointStore(pool),
    operations,
    usage: createUsageStore(pool),
    close: once(async () => {
      try {
        await operations.release();
      } finally {
        await pool.end();
      }
    }),
  };
}
