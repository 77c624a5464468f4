import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock as clock } from "#core/clock.ts";
import { silentLog as log } from "#core/log.ts";
import { AlarmDispatch } from "#hub/alarms/dispatch.ts";
import { addDispatch, type NewDispatch } from "#hub/store/alarms/dispatches.ts";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startReceiver, startTestHub, type TestHub, until } from "../fixture.ts";

let hub: TestHub;
beforeEach(async () => {
  hub = await startTestHub({ webhook: { concurrency: 8, timeout: "10m", hosts: ["127.0.0.1"] } });
});
afterEach(() => hub.close());

/** Takes requests, and answers none of them. */
async function startSilent() {
  const waiting: string[] = [];
  const server = createServer((request) => waiting.push(request.url ?? ""));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    waiting,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const webhook = (accountId: number, target: string): NewDispatch => ({
  ...{ accountId, kind: "webhook", target, host: new URL(target).host, body: "{}", nextMs: 1 },
});

test("a receiver that does not answer holds up no other receiver, no other account, and no variable", async () => {
  const silent = await Promise.all([1, 2, 3, 4, 5].map(startSilent));
  const [own, others] = [await startReceiver(), await startReceiver()];
  const store = hub.inside().store as HubStore;
  const { variableIds } = await createChain(hub);
  const add = (...dispatches: readonly NewDispatch[]) =>
    store.people.change(function* () {
      for (const one of dispatches) yield* addDispatch(one);
    });
  const state = JSON.stringify([{ variableId: variableIds[0], data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }]);
  // Ten for one host, which are due before anything else.
  await add(...Array.from({ length: 10 }, () => webhook(1, silent[0]?.url ?? "")), webhook(1, own.url));
  const parts = { store, options: hub.options.webhook, log, clock, onPushed() {} };
  const dispatch = new AlarmDispatch(parts);
  try {
    await until(async () => (own.received.length === 1 ? true : undefined));
    expect(silent[0]?.waiting).toHaveLength(2);
    // One for each of its other hosts: the account has used its share.
    await add(...silent.slice(1).map(({ url }) => webhook(1, url)));
    await add(webhook(1, own.url), webhook(2, others.url));
    await add({ ...webhook(1, own.url), kind: "variable", target: "alarm-1-1-1", host: "", body: state });
    dispatch.wake();
    await until(async () => (others.received.length === 1 ? true : undefined));
    expect(
      await until(async () => (await hub.call("GET", "/operations/alarm-1-1-1")).status === 200 || undefined),
    ).toBe(true);
    expect(own.received).toHaveLength(1);
    // What waits for a slot makes the hub try again when there is one.
    const nextMs = () => store.alarms.dispatches.nextMs({ isFull: false, hosts: [], accounts: [1] });
    await expect.poll(nextMs, { message: "the end of the other account's webhook is recorded" }).toBeNull();
    expect(await store.alarms.dispatches.nextMs({ isFull: false, hosts: [], accounts: [] })).toBe(1);
  } finally {
    await dispatch.close();
    for (const { close } of silent) close();
    await own.close();
    await others.close();
  }
});

test("of an account with a thousand dispatches that are due first, another account waits for one", async () => {
  const store = hub.inside().store as HubStore;
  const { variableIds } = await createChain(hub, { more: { as: "second", account: 2 } });
  const body = JSON.stringify([{ variableId: variableIds[0], data: [{ date: "2026-03-01T00:00:00Z", value: 1 }] }]);
  const push = (accountId: number, target: string, nextMs: number): NewDispatch => ({
    ...{ accountId, kind: "variable", target, host: "", body, nextMs },
  });
  await store.people.change(function* () {
    for (let nth = 0; nth < 1_000; nth += 1) yield* addDispatch(push(1, `many-${nth}`, 1));
    for (const target of ["one", "two"]) yield* addDispatch(push(2, target, 2));
  });
  const taken: string[] = [];
  const ended = Promise.withResolvers<void>();
  const operations = {
    accept: async ({ operationId }: { readonly operationId: string }) => {
      taken.push(operationId);
      if (taken.length === 5) ended.resolve();
    },
  };
  const parts = { store: { ...store, operations } as unknown as HubStore, options: hub.options.webhook, log, clock };
  const dispatch = new AlarmDispatch({ ...parts, onPushed() {} });
  await ended.promise;
  await dispatch.close();
  expect(taken.slice(0, 5)).toEqual(["many-0", "one", "many-1", "two", "many-2"]);
});
