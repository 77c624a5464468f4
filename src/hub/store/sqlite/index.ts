/** The embedded store: `<path>` holds structure, points and outcomes, `<path>.intake` the queue of operations. */
import type { HubStore } from "../store.ts";
import { lockStore, openDatabase } from "./database.ts";
import { createIdentityStore } from "./identity.ts";
import { createOperationStore, intakeId } from "./operations.ts";
import { createPointStore } from "./points.ts";
import { createStructureStore } from "./structure.ts";

/** Reads hardly ever wait in WAL; writes wait without blocking (`write`). */
const BLOCKING_MS = 20;

export function intakePath(path: string): string {
  return `${path}.intake`;
}

export async function openSqliteStore(path: string): Promise<HubStore> {
  const lock = lockStore(path);
  const main = openDatabase({ path, migrations: "migrations", timeoutMs: BLOCKING_MS });
  const intake = openDatabase({
    path: intakePath(path),
    migrations: "intake-migrations",
    timeoutMs: BLOCKING_MS,
  });
  const queueId = intakeId(intake);
  return {
    identity: createIdentityStore(main),
    structure: createStructureStore(main),
    points: createPointStore(main),
    operations: createOperationStore(intake, main, queueId),
    async close() {
      intake.close();
      main.close();
      lock.close();
    },
  };
}
