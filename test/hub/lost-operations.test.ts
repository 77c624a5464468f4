/** A power cut may take operations from the queue before their pushes were answered, and leave their outcomes. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test, vi } from "vitest";
import { systemClock } from "#core/clock.ts";
import { LogSync } from "#core/sql/sqlite/log-sync.ts";
import { isDatabaseTrouble } from "#core/sql/trouble.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import { temporaryDirectory, waitingOperation } from "./fixture.ts";

const NOW = "2026-03-01T00:00:00Z";
const OUTCOME = { received: 1, stored: 1, replaced: 0, discarded: [], started: NOW, finished: NOW };

test("an operation is applied after one with its number was lost", async () => {
  const { path, remove } = await temporaryDirectory();
  const file = join(path, "hub.sqlite");
  const options = { kind: "sqlite" as const, path: file };
  const applied: string[] = [];
  const applyNext = async (operationId: string) => {
    const store = await openStore(options);
    await store.identity.putAccount({ id: 1, name: "First" });
    const ingest = await openIngestStore(options, { byDefault: 2, byAccount: new Map() }, systemClock);
    await store.operations.accept(waitingOperation(operationId, []));
    await ingest.apply(await ingest.next(0, { readings: 10, bytes: 1_000 }), async (_transaction, operations) => {
      applied.push(...operations.map((one) => one.operationId));
      return operations.map(() => OUTCOME);
    });
    await ingest.close();
    await store.close();
  };
  await applyNext("lost");
  const queue = new DatabaseSync(`${file}.intake`);
  queue.exec("DELETE FROM body; DELETE FROM operation; DELETE FROM sqlite_sequence");
  queue.close();
  await applyNext("next");
  expect(applied).toEqual(["lost", "next"]);
  await remove();
});

test("an operation is applied only once the disk has it", async () => {
  const { path, remove } = await temporaryDirectory();
  const options = { kind: "sqlite" as const, path: join(path, "hub.sqlite") };
  const store = await openStore(options);
  const ingest = await openIngestStore(options, { byDefault: 2, byAccount: new Map() }, systemClock);
  await store.operations.accept(waitingOperation("new", []));
  const limits = { readings: 10, bytes: 1_000 };
  const sync = vi.spyOn(LogSync.prototype, "run").mockResolvedValueOnce(new Error("EIO: i/o error"));
  const refused = await ingest.next(0, limits).catch((thrown: unknown) => thrown);
  sync.mockRestore();
  expect(isDatabaseTrouble(refused)).toBe(true);
  expect((await ingest.next(0, limits)).map(({ operationId }) => operationId)).toEqual(["new"]);
  await ingest.close();
  await store.close();
  await remove();
});
