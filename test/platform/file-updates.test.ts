/** The records of the hub's files are kept as new as the ledger of the gateway inside. */
import { expect, test, vi } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { FileUpdates } from "../../src/platform/file-updates.ts";
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
