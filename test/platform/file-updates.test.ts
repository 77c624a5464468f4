/** The records of the hub's files are kept as new as the ledger of the gateway inside. */
import { expect, test, vi } from "vitest";
import type { FileRecord } from "../../src/hub/store/store.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Arrival, Run } from "../../src/model.ts";
import { FileUpdates } from "../../src/platform/file-updates.ts";
import { entryOf } from "../../src/platform/hub-drop.ts";
import { progressOf } from "../../src/platform/progress.ts";
import { systemClock } from "../../src/support/clock.ts";
import { silentLog } from "../../src/support/log.ts";

test("the updates end when they are closed while records are read", async () => {
  const read = Promise.withResolvers<{ rows: []; total: number }>();
  const list = vi.fn(() => read.promise);
  const updates = new FileUpdates({
    files: { list, advance: async () => [] },
    accountOf: () => 1,
    drops: () => ["account-1"],
    ledger: {} as Ledger,
    clock: systemClock,
    log: silentLog,
  });
  updates.start();
  await expect.poll(() => list.mock.calls.length).toBe(1);
  const closed = updates.close();
  read.resolve({ rows: [], total: 0 });
  await closed;
  expect(list).toHaveBeenCalledTimes(1);
}, 20_000);

test("a file keeps its trigger while its container is opened, and that of its token always", async () => {
  const shown = async (via: FileRecord["via"], trigger: string, triggerId: number | null) => {
    const file = { id: 3, fileName: "all.zip", size: 9, createdMs: 1_000, offers: 1, via, triggerId } as FileRecord;
    const arrival = { id: 1, ...entryOf(file) } as Arrival;
    const points = { stored: 0, rejected: 0 };
    const run = { id: "r", state: "claimed", reason: null, points, binding: { trigger } } as unknown as Run;
    const ledger = { arrivalsAt: async () => [arrival], runOf: async () => run } as unknown as Ledger;
    return (await progressOf("account-1", file, ledger))?.triggerId;
  };
  expect(await shown("generic", "(container)", 7)).toBe(7);
  expect(await shown("generic", "account-1:8", 7)).toBe(7);
  expect(await shown("storage", "(container)", 7)).toBe(7);
  expect(await shown("storage", "account-1:8", null)).toBe(8);
});
