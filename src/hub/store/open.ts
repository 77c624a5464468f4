/** Chooses the implementation of the store by its configured kind. */

import type { Clock } from "#core/clock.ts";
import { type Logger, silentLog } from "#core/log.ts";
import type { HubOptions } from "../options.ts";
import { FILTER_MS } from "./filter.ts";
import type { IngestStore } from "./ingest.ts";
import type { OpenMasterData } from "./master-data.ts";
import {
  openPostgresCalculations,
  openPostgresMasterData,
  openPostgresStore,
  readPostgresStore,
} from "./postgres/index.ts";
import { openPostgresIngest } from "./postgres/ingest.ts";
import { openPostgresSeries } from "./postgres/series.ts";
import type { OpenSeries } from "./quality/series.ts";
import type { Retention } from "./records.ts";
import type { CalculationStore, ReadStore } from "./resources.ts";
import { openSqliteCalculations, openSqliteMasterData, openSqliteStore, readSqliteStore } from "./sqlite/index.ts";
import { openSqliteIngest } from "./sqlite/ingest.ts";
import { openSqliteSeries } from "./sqlite/series.ts";
import type { HubStore } from "./store.ts";

export function openStore(
  options: HubOptions["store"],
  log: Logger = silentLog,
  filterMs = FILTER_MS,
): Promise<HubStore> {
  return options.kind === "sqlite"
    ? openSqliteStore(options.path, filterMs)
    : openPostgresStore(options, log, filterMs);
}

/** For a command, beside a hub or without one. Null where there is no store yet. Throws as `openStore` does. */
export function readStore<Found>(options: HubOptions["store"], read: ReadStore<Found>): Promise<Found | null> {
  return options.kind === "sqlite" ? readSqliteStore(options.path, read) : readPostgresStore(options, read);
}

/** For the thread that applies operations; after `openStore`. */
export async function openIngestStore(
  options: HubOptions["store"],
  retention: Retention,
  clock: Clock,
): Promise<IngestStore> {
  return options.kind === "sqlite"
    ? openSqliteIngest(options.path, retention, clock)
    : openPostgresIngest(options, retention, clock);
}

/** For the thread that applies master data; after `openStore`. */
export function openMasterData(options: HubOptions["store"]): OpenMasterData {
  return options.kind === "sqlite" ? openSqliteMasterData(options.path) : openPostgresMasterData(options);
}

/** For the threads that read whole series; after `openStore`. */
export function openSeries(options: HubOptions["store"]): OpenSeries {
  return options.kind === "sqlite" ? openSqliteSeries(options.path) : openPostgresSeries(options);
}

/** For the thread that calculates; after `openStore`. */
export function openCalculationStore(options: HubOptions["store"]): Promise<CalculationStore> {
  return options.kind === "sqlite" ? openSqliteCalculations(options.path) : openPostgresCalculations(options);
}
