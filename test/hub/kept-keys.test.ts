/** How long an Idempotency-Key is known: a sender that comes back after a long outage must not store anything twice. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import {
  breakStore,
  callsOf,
  createChain,
  type HubCalls,
  rawOptions,
  temporaryDirectory,
  until,
  waitingOperation,
} from "./fixture.ts";

const DAY_MS = 86_400_000;
const FAULTY = 666;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let running: RunningHub | null = null;
let variableId = 0;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await running?.close();
  running = null;
  await directory.remove();
});

/** The hub as it is so many days from now. */
async function startIn(days: number): Promise<HubCalls> {
  await running?.close();
  const clock: Clock = { ...systemClock, now: () => systemClock.now().add({ milliseconds: days * DAY_MS }) };
  const hub = await startHub(hubOptions.parse(rawOptions(directory.path)), {
    log: createLog("silent"),
    clock,
  });
  running = hub;
  return callsOf(() => hub.url);
}

const pushed = (hub: HubCalls, key: string, value = 100) =>
  hub.post("/push/api/data", [{ variableId, data: [{ date: `2026-03-01T00:00:00.${value}Z`, value }] }], {
    headers: { "idempotency-key": key },
  });

test("a key is remembered for 90 days, and longer for an operation that failed; then it is free again", async () => {
  const first = await startIn(0);
  [variableId = 0] = (await createChain(first)).variableIds;
  const { mended } = await breakStore(directory.path, FAULTY);
  const done = await pushed(first, "done");
  const failed = await pushed(first, "failed", FAULTY);
  await first.settled(done.operationId);
  await first.settled(failed.operationId);
  await mended();

  const soon = await startIn(89);
  expect(await pushed(soon, "done")).toEqual(done);
  expect(await pushed(soon, "failed", FAULTY)).toEqual(failed);

  const late = await startIn(91);
  await until(async () => {
    const { status } = await late.call("GET", `/operations/${done.operationId}`);
    return status === 404 ? status : undefined;
  });
  expect((await pushed(late, "done")).operationId).not.toBe(done.operationId);
  expect(await pushed(late, "failed", FAULTY)).toEqual(failed);
  expect(await late.get("/operations", { State: "failed" })).toMatchObject([
    { operationId: failed.operationId, status: "failed" },
  ]);
});

test("thousands of old operations are purged, and none that has not been delivered or applied yet", async () => {
  const store = await openStore(hubOptions.parse(rawOptions(directory.path)).store);
  try {
    await store.identity.putAccount({ id: 1, name: "First" });
    const accept = async (name: string, more: object = {}) => {
      await store.operations.accept({ ...waitingOperation(name, []), idempotencyKey: name, ...more });
    };
    for (let part = 0; part < 3_300; part += 110)
      await Promise.all(Array.from({ length: 110 }, (_, index) => accept(`old ${part + index}`)));
    await accept("new", { acceptedMs: 5_000 });
    // All of them wait to be applied: nothing may go, whatever its age.
    await store.operations.purge(1_000, 1_000);
    expect(await store.operations.counts()).toMatchObject({ waiting: 3_301, failed: 0 });
    await applyAll();
    await store.operations.purge(1_000, 1_000);
    const keyOf = (name: string) => store.operations.earlier({ accountId: 1, idempotencyKey: name, digest: "" });
    expect(await keyOf("old 0")).toBeNull();
    expect(await keyOf("old 3299")).toBeNull();
    expect(await store.operations.operation(1, "old 1500")).toBeNull();
    expect(await keyOf("new")).toEqual({ kind: "repeated", operationId: "new", received: 0 });
    expect(await store.operations.operation(1, "new")).toMatchObject({ state: "done" });
  } finally {
    await store.close();
  }

  async function applyAll(): Promise<void> {
    const { store: options } = hubOptions.parse(rawOptions(directory.path));
    const ingest = await openIngestStore(options, { byDefault: 7, byAccount: new Map() }, systemClock);
    const at = "2026-03-01T00:00:00.000Z";
    const outcome = { received: 0, stored: 0, replaced: 0, discarded: [], started: at, finished: at };
    for (let after = 0; ; ) {
      const group = await ingest.next(after, { readings: 1e6, bytes: 1e7 });
      if (group.length === 0) break;
      after = group.at(-1)?.seq ?? after;
      await ingest.apply(group, async (_transaction, operations) => operations.map(() => outcome));
      await store.operations.finish(group.map(({ seq }) => seq));
    }
    await ingest.close();
  }
});
