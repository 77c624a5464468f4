/**
 * The embedded store: `<path>` contains structure, points and outcomes, `<path>.intake` the queue of
 * operations.
 */
import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { once } from "#core/promises.ts";
import { FILTER_MS } from "../filter.ts";
import { withLatestAtHand } from "../latest/at-hand.ts";
import { createMasterDataStore, type OpenMasterData } from "../master-data.ts";
import { type CalculationStore, commonStores, type ReadStore } from "../resources.ts";
import { createUsageStore, type HubStore } from "../store.ts";
import { createApart } from "./apart.ts";
import { cannotOpen, lockStore, openDatabase, statements, write } from "./database.ts";
import { sqliteDatabase, type Write } from "./driver.ts";
import { GroupedWrites } from "./grouped-writes.ts";
import { createOperationStore, intakeId, skipAppliedNumbers } from "./operations.ts";
import { createPointStore } from "./points.ts";

/**
 * The thread of ingestion checkpoints both logs, outside the event loop; this limit is for the case that it
 * falls behind.
 */
const CHECKPOINT_PAGES = { migrations: 65_536, "intake-migrations": 16_384 } as const;

/** Reads hardly ever wait in WAL; writes wait without blocking (`write`). */
const BLOCKING_MS = 20;
/** A command has nothing else to do. */
const COMMAND_BLOCKING_MS = 5_000;

export function intakePath(path: string): string {
  return `${path}.intake`;
}

export async function openSqliteStore(path: string, filterMs = FILTER_MS): Promise<HubStore> {
  const lock = lockStore(path);
  const apart = createApart(path, filterMs);
  const opened: DatabaseSync[] = [];
  const writes: GroupedWrites[] = [];
  const close = once(async () => {
    await apart.close();
    for (const grouped of writes) await grouped.close();
    for (const database of opened.toReversed()) database.close();
    lock.release();
  });
  try {
    const open = (file: string, migrations: "migrations" | "intake-migrations") => {
      const database = openDatabase({
        path: file,
        migrations,
        timeoutMs: BLOCKING_MS,
        checkpointPages: CHECKPOINT_PAGES[migrations],
      });
      opened.push(database);
      return database;
    };
    const main = open(path, "migrations");
    const intake = open(intakePath(path), "intake-migrations");
    const queueId = intakeId(intake);
    skipAppliedNumbers(statements(intake), statements(main), queueId);
    const partOf = (opened: DatabaseSync, file: string) => {
      const grouped = new GroupedWrites(opened, file);
      writes.push(grouped);
      const write: Write = (work) => grouped.write(work);
      return { tools: statements(opened), write };
    };
    const structure = partOf(main, path);
    const queue = partOf(intake, intakePath(path));
    const database = sqliteDatabase(structure.tools, structure.write, apart);
    return {
      ...commonStores(database),
      points: withLatestAtHand(createPointStore(structure.tools, database), database),
      usage: createUsageStore(sqliteDatabase(queue.tools, queue.write)),
      operations: createOperationStore(queue, structure, queueId),
      close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** In another thread than the store. */
export function openSqliteMasterData(path: string): OpenMasterData {
  const file = openDatabase({
    path,
    migrations: null,
    timeoutMs: BLOCKING_MS,
    checkpointPages: CHECKPOINT_PAGES.migrations,
  });
  const database = sqliteDatabase(statements(file), (work) => write(file, work));
  return { ...createMasterDataStore(database), close: async () => file.close() };
}

/** In another thread than the store. */
export async function openSqliteCalculations(path: string): Promise<CalculationStore> {
  const file = openDatabase({
    path,
    migrations: null,
    timeoutMs: BLOCKING_MS,
    checkpointPages: CHECKPOINT_PAGES.migrations,
  });
  const tools = statements(file);
  const database = sqliteDatabase(tools, (work) => write(file, work));
  return { ...commonStores(database), points: createPointStore(tools, database), close: async () => file.close() };
}

/** For a command, beside a hub or without one. */
export async function readSqliteStore<Found>(path: string, read: ReadStore<Found>): Promise<Found | null> {
  if (!existsSync(path)) return null;
  const file = openDatabase({ path, migrations: null, timeoutMs: COMMAND_BLOCKING_MS, readOnly: true });
  try {
    return await read(commonStores(sqliteDatabase(statements(file), (work) => write(file, work))));
  } catch (thrown) {
    throw cannotOpen(path, thrown);
  } finally {
    file.close();
  }
}
