/** The records of the hub's files are kept as new as the ledger of the gateway inside. */
import { expect, test, vi } from "vitest";
import { FileUpdates, progressOf } from "#app/platform/file-updates.ts";
import { entryOf } from "#app/platform/hub-drop.ts";
import { storedVersions } from "#app/platform.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { type InnerGateway, storedLedger } from "#gateway/gateway.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import type { Arrival, Run } from "#gateway/model.ts";
import { countUnresolved } from "#gateway/operations/state-of-work.ts";
import type { FileRecord, FileStore } from "#hub/store/stored-files.ts";

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

test("a reason that is over goes, also when its run continues while the ledger is read", async () => {
  let file = { id: 3, fileName: "a.csv", size: 9, createdMs: 1_000, offers: 1, state: "received" } as FileRecord;
  const runOf = (state: Run["state"], message: string | null) => {
    const reason = message === null ? null : { code: "HG-RUN-001", message };
    const points = { stored: 0, rejected: 0 };
    return { id: "r", state, reason, points, binding: { trigger: "account-1:8" } } as unknown as Run;
  };
  const reads = [runOf("claimed", null), runOf("held", "waits"), runOf("delivering", null)];
  const held = Promise.withResolvers<void>();
  const readRun = vi.fn(async () => {
    const run = reads.length > 1 ? reads.shift() : reads[0];
    if (run?.state === "held") await held.promise;
    return run;
  });
  const ledger = {
    arrivalsAt: async () => [{ id: 1, ...entryOf(file) } as Arrival],
    runOf: readRun,
  } as unknown as Ledger;
  const reasons: (string | null | undefined)[] = [];
  const advance: FileStore["advance"] = async (_account, changes) => {
    for (const { reason, state, run, triggerId } of changes) {
      file = { ...file, reason: reason ?? null, state, run: run ?? null, triggerId: triggerId ?? null };
      reasons.push(reason);
    }
    return changes.map(() => true);
  };
  const updates = new FileUpdates({
    files: { list: async (_account, { ids }) => ({ rows: ids === undefined ? [] : [file], total: 1 }), advance },
    accountOf: () => 1,
    drops: () => ["account-1"],
    ledger,
    clock: systemClock,
    log: silentLog,
  });
  const note = (what: string) => updates.note({ what, drop: "account-1", path: "3/a.csv" });
  updates.start();
  note("run.claimed");
  await expect.poll(() => reasons).toEqual([null]);
  note("run.held");
  await expect.poll(() => readRun.mock.calls.length).toBe(2);
  note("run.delivering");
  held.resolve();
  await expect.poll(() => reasons).toEqual([null, "HG-RUN-001: waits", null]);
  await updates.close();
}, 20_000);

test("a container is stored once its last entry is finished, which follows the end of that entry's run", async () => {
  let file = { id: 3, fileName: "all.zip", size: 9, createdMs: 1_000, offers: 1, state: "received" } as FileRecord;
  const container = { id: "r", state: "opened", reason: null, points: {}, binding: { trigger: "" } } as unknown as Run;
  const entry = { id: "e", state: "empty", reason: null, path: "3/all.zip!/a.csv" } as Run;
  let inProgress: Run | null = entry;
  const ledger = {
    arrivalsAt: async () => [{ id: 1, ...entryOf(file) } as Arrival],
    runOf: async () => container,
    entries: async () => ({ unclaimed: [], inProgress, done: inProgress === null ? 1 : 0, staying: [] }),
    awaitedEntries: async () => 0,
  } as unknown as Ledger;
  const advance: FileStore["advance"] = async (_account, changes) => {
    for (const { state, reason, run } of changes) file = { ...file, state, reason: reason ?? null, run: run ?? null };
    return changes.map(() => true);
  };
  const updates = new FileUpdates({
    files: { list: async (_account, { ids }) => ({ rows: ids === undefined ? [] : [file], total: 1 }), advance },
    accountOf: () => 1,
    drops: () => ["account-1"],
    ledger,
    clock: systemClock,
    log: silentLog,
  });
  const note = (what: string) => updates.note({ what, drop: "account-1", path: entry.path });
  updates.start();
  note("run.empty");
  await expect.poll(() => file.state).toBe("processing");
  inProgress = null;
  note("source.left");
  await expect.poll(() => file.state).toBe("stored");
  await updates.close();
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

test("a file that was taken needs a person while it is stored, and was not offered again since", async () => {
  const records = [3, 4].map((id) => ({ id, fileName: "a.csv", size: 9, createdMs: 1_000, offers: 2 }) as FileRecord);
  const [taken = {} as FileRecord, again = {} as FileRecord] = records;
  const entries = [entryOf(taken), entryOf({ ...again, offers: 1 }), entryOf({ ...taken, id: 5 })];
  const inZip = { ...entryOf(taken), path: "3/a.zip!/a.csv" };
  // No listing has them any more.
  const resting = [...entries, inZip].map(({ path, mtime }) => ({
    run: { drop: "account-1", path, state: "quarantined", reason: null } as Run,
    arrival: { drop: "account-1", path, mtime, goneAt: "2026-03-01T00:00:00Z" } as Arrival,
  }));
  const ledger = { restingIn: async () => resting } as unknown as Ledger;
  const list: FileStore["list"] = async (_account, { ids }) => {
    const rows = records.filter(({ id }) => ids?.includes(id) === true);
    return { rows, total: rows.length };
  };
  const countOf = (accountOf: (drop: string) => number | undefined) => {
    const inner = { storedVersions: storedVersions({ list }, accountOf) } as InnerGateway;
    return countUnresolved(storedLedger(ledger, inner));
  };
  expect(await countOf(() => 1)).toBe(2);
  expect(await countOf(() => undefined)).toBe(0);
});
