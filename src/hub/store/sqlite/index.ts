/**
 * The embedded store: `<path>` contains structure, points and outcomes, `<path>.intake` the queue of
 * operations.
 */
import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { once } from "../../../support/once.ts";
import { createIdentityStore } from "../identity.ts";
import { createMasterDataStore, type OpenMasterData } from "../master-data.ts";
import { commonStores } from "../resources.ts";
import type { HubStore } from "../store.ts";
import { createUsageStore } from "../usage.ts";
import { cannotOpen, lockStore, openDatabase, statements, write } from "./database.ts";
import { installFolding } from "./dialect.ts";
import { sqliteDatabase } from "./driver.ts";
import { GroupedWrites } from "./grouped-writes.ts";
import { createOperationStore, intakeId, type WrittenFile } from "./operations.ts";
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

export async function openSqliteStore(path: string): Promise<HubStore> {
  const lock = lockStore(path);
  const opened: DatabaseSync[] = [];
  const grouped: GroupedWrites[] = [];
  const close = once(async () => {
    for (const writes of grouped) await writes.close();
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
    installFolding(main);
    const queueId = intakeId(intake);
    const written = (database: DatabaseSync, file: string): WrittenFile => {
      const writes = new GroupedWrites(database, file);
      grouped.push(writes);
      return { tools: statements(database), write: (work) => writes.write(work) };
    };
    const [points, queue] = [written(main, path), written(intake, intakePath(path))];
    const database = sqliteDatabase(points.tools, points.write);
    return {
      ...commonStores(database),
      points: createPointStore(points.tools, database),
      usage: createUsageStore(sqliteDatabase(queue.tools, queue.write)),
      operations: createOperationStore(queue, points, queueId),
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

export async function sqliteAccountIds(path: string): Promise<readonly number[]> {
  if (!existsSync(path)) return [];
  const file = openDatabase({ path, migrations: null, timeoutMs: COMMAND_BLOCKING_MS, readOnly: true });
  try {
    return await createIdentityStore(sqliteDatabase(statements(file), (work) => write(file, work))).accountIds();
  } catch (thrown) {
    throw cannotOpen(path, thrown);
  } finally {
    file.close();
  }
}
