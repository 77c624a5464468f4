/** Jobs of the hub serve accounts by turns: of those whose own tests do not show it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Outcomes } from "#app/platform/outcomes.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { RollupBuilder } from "#hub/data/rollups/builder.ts";
import { createShares } from "#hub/deliveries/shares.ts";
import { hubOptions } from "#hub/options.ts";
import { insert } from "#hub/store/database.ts";
import { openIngestStore, openStore } from "#hub/store/open.ts";
import type { ReadSpan } from "#hub/store/rollups/rollups.ts";
import type { HubStore, PointStore } from "#hub/store/store.ts";
import { calculate, calculationsOf, openScene, untilCalculated } from "./calculated/scene.ts";
import { rawOptions, startTestHub, temporaryDirectory, waitingOperation } from "./fixture.ts";
import { variableFacts } from "./variable-facts.ts";
import { filesOfJobs, JOBS, missingTests } from "./walls/jobs.ts";

const MANY = 1_000;
const MANY_DUE = 30;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory.remove());

test("each job of the hub has an entry in walls/jobs.ts, and each entry a job and a test", () => {
  expect(filesOfJobs()).toEqual(Object.keys(JOBS).sort());
  expect(missingTests()).toEqual([]);
});

test("pushes of an account with a thousand that wait hold one of another account for two groups at most", async () => {
  const options = hubOptions.parse(rawOptions(directory.path)).store;
  const store = await openStore(options);
  for (const id of [1, 2]) await store.identity.putAccount({ id, name: `Account ${id}` });
  const ingest = await openIngestStore(options, { byDefault: 1, byAccount: new Map() }, systemClock);
  try {
    for (let nth = 0; nth < MANY; nth += 1) await store.operations.accept(waitingOperation(`many ${nth}`, []));
    await store.operations.accept({ ...waitingOperation("one", []), accountId: 2 });
    const limits = { readings: 1_000, bytes: 100 };
    const groups: (readonly { readonly accountId: number; readonly seq: number }[])[] = [];
    for (let after = 0; ; ) {
      const group = await ingest.next(after, limits);
      if (group.length === 0) break;
      groups.push(group);
      after = group.at(-1)?.seq ?? after;
      const none = { received: 0, stored: 0, replaced: 0, discarded: [] };
      const times = { started: "2026-01-01T00:00:00Z", finished: "2026-01-01T00:00:00Z" };
      await ingest.apply(group, async (_, due) => due.map(() => ({ ...none, ...times })));
    }
    const served = groups.findIndex((group) => group.some(({ accountId }) => accountId === 2));
    expect([0, 1]).toContain(served);
    expect(groups.length).toBeGreaterThan(2);
    const many = groups.flat().filter(({ accountId }) => accountId === 1);
    expect(many).toHaveLength(MANY);
    expect(many.map(({ seq }) => seq)).toEqual(many.map(({ seq }) => seq).sort((one, other) => one - other));
  } finally {
    await ingest.close();
    await store.close();
  }
});

test("rollups of an account with a thousand variables hold those of another account for two at most", async () => {
  const built: number[] = [];
  let report: (span: ReadSpan) => void = () => undefined;
  const rollups = {
    listen: (listener: typeof report) => {
      report = listener;
    },
    begin: async (variableId: number) => {
      built.push(variableId);
      return null;
    },
  };
  const points = { rollups } as unknown as PointStore;
  const builder = new RollupBuilder({ points, clock: systemClock, log: silentLog });
  const span = { zone: "UTC", fromMs: 0, endMs: 86_400_000 };
  for (let id = 1; id <= MANY; id += 1) report({ ...span, variable: { ...variableFacts(id), accountId: 1 } });
  report({ ...span, variable: { ...variableFacts(MANY + 1), accountId: 2 } });
  await expect.poll(() => built.length).toBe(MANY + 1);
  await builder.close();
  expect(built.indexOf(MANY + 1)).toBeLessThan(2);
});

test("deliveries of an account with a thousand that wait leave a place for another account", async () => {
  const shares = createShares<{ readonly accountId: number; readonly host: string }>(8, () => undefined);
  const waiting = Array.from({ length: MANY }, (_, nth) => ({ accountId: 1, host: `host ${nth}` }));
  waiting.push({ accountId: 2, host: "another" });
  const begun: number[] = [];
  const ending = Promise.withResolvers<void>();
  for (;;) {
    // As the stores choose: the first that waits, but for hosts and accounts that have used their share.
    const { accounts, hosts } = shares.busy();
    const isFree = (one: (typeof waiting)[number]) =>
      !accounts.includes(one.accountId) && !hosts.some(({ host }) => host === one.host);
    const next = shares.left === 0 ? -1 : waiting.findIndex(isFree);
    const [item] = next < 0 ? [] : waiting.splice(next, 1);
    if (item === undefined) break;
    begun.push(item.accountId);
    shares.begin(item, () => ending.promise);
  }
  expect(begun).toEqual([1, 1, 1, 1, 1, 1, 2]);
  ending.resolve();
  await shares.ended();
});

test("outcomes of an account with a thousand that wait hold one of another account for no question more", async () => {
  const reported: string[] = [];
  let asked = 0;
  let before: number | null = null;
  const outcome = { received: 1, stored: 1, replaced: 0, discarded: [], notices: [], started: "", finished: "" };
  const operation = async (accountId: number) => {
    asked += 1;
    return { outcome: accountId === 2 ? outcome : null };
  };
  const outcomes = new Outcomes({
    operations: { operation } as never,
    accountOf: Number,
    ledger: { runsIn: async () => [], batches: async () => [] } as never,
    report: async ({ operationId }) => {
      reported.push(operationId);
      before ??= asked;
    },
    clock: systemClock,
    log: silentLog,
  });
  const accepted = (drop: string, operationId: string) =>
    outcomes.note({ what: "batch.accepted", drop, operationId, runId: null });
  for (let nth = 0; nth < MANY; nth += 1) accepted("1", `many ${nth}`);
  accepted("2", "one");
  outcomes.start();
  await expect.poll(() => reported).toEqual(["one"]);
  expect(before).toBeLessThanOrEqual(50);
  await outcomes.close();
});

test("calculations of an account with many that are due hold one of another account for four at most", async () => {
  const hub = await startTestHub();
  try {
    const other = { as: "second", account: 2 };
    const calls = { ...hub, post: (path: string, body: unknown) => hub.post(path, body, other) };
    const [scene, one] = [await openScene(hub), await openScene(calls)];
    const ofFirst: number[] = [];
    for (let nth = 0; nth < MANY_DUE; nth += 1)
      ofFirst.push(await calculate(hub, scene, "a + 1", { a: scene.inputs[0] ?? 0 }));
    const ofSecond = await calculate(calls, one, "a + 1", { a: one.inputs[0] ?? 0 });
    await untilCalculated(hub);
    const { people } = hub.inside().store as HubStore;
    const due = (account_id: number, variable_id: number, marked_ms: number) =>
      insert("calculation_due", { account_id, variable_id, from_ms: 0, to_ms: 1, marked_ms, cause: "force" });
    await people.change(function* () {
      for (const id of ofFirst) yield* due(1, id, 1);
      yield* due(2, ofSecond, 2);
    });
    await untilCalculated(hub);
    const idsOf = (found: readonly { readonly id: number }[]) => found.map(({ id }) => id);
    const [last = 0] = idsOf(await hub.get("/calculations", {}, other));
    // The first calculations of each variable are the older ones.
    const first = idsOf(await calculationsOf(hub, ...ofFirst)).sort((one, next) => one - next)[MANY_DUE] ?? 0;
    expect(last).toBeGreaterThan(0);
    expect(last - first).toBeLessThanOrEqual(4);
  } finally {
    await hub.close();
  }
});
