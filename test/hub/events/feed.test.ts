/** `GET /events`: one who follows `next` gets every event once, or is told what is lost. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addEvents, type NewEvent } from "#hub/store/events/events.ts";
import type { HubStore } from "#hub/store/store.ts";
import { startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
let store: HubStore;
beforeEach(async () => {
  hub = await startTestHub();
  store = hub.inside().store as HubStore;
});
afterEach(() => hub.close());

/** Far in the future: the hub purges old events when it starts, beside the tests. */
const YOUNG_MS = 4_000_000_000_000;
const OF_9 = { variableId: 9, sourceId: 8, subject: { kind: "alarm", id: 1, name: "c" } } as const;
const PLAIN = { as: "plain" };
const event = (name: string, more: Partial<NewEvent> = {}): NewEvent => ({
  ...{ accountId: 1, type: "file.state", subject: { kind: "file", id: 7, name }, atMs: YOUNG_MS + 1_000, ...more },
});
const add = (...events: NewEvent[]) => store.people.change(() => addEvents(events));
const names = ({ events }: { events: { subject: { name: string } }[] }) => events.map(({ subject }) => subject.name);

describe("the feed", () => {
  test("is read page by page by every user of the account", async () => {
    await add(event("a"), event("b"), event("of another", { accountId: 2 }), event("c"));
    const first = await hub.get("/events", { limit: 2 }, PLAIN);
    expect(first).toMatchObject({ next: 2, last: 3 });
    const second = await hub.get("/events", { after: first.next, limit: 2 }, PLAIN);
    expect([...names(first), ...names(second)]).toEqual(["a", "b", "c"]);
    expect(await hub.get("/events", { after: second.next }, PLAIN)).toEqual({ events: [], next: 3, last: 3 });
    expect(names(await hub.get("/events", {}, { account: 2 }))).toEqual(["of another"]);
  });

  test("has the events that fit every filter", async () => {
    await add(
      event("a", { siteId: 3, state: "stored" }),
      event("b", { siteId: 4, isFailure: true, state: "discarded" }),
    );
    await add(event("c", { type: "alarm.changed", severity: "Warning", state: "Present", ...OF_9 }));
    const found = async (query: Record<string, string | number | boolean | string[]>) =>
      names(await hub.get("/events", query));
    expect(await found({ types: ["file.state", "push.outcome"] })).toEqual(["a", "b"]);
    expect(await found({ Types: "ALARM.changed" })).toEqual(["c"]);
    expect(await found({ siteIds: 3 })).toEqual(["a"]);
    expect(await found({ states: ["discarded"], siteIds: 3 })).toEqual([]);
    expect(await found({ onlyFailures: true })).toEqual(["b"]);
    expect(await found({ severities: "warning", sourceIds: 8, variableIds: 9, subjects: "alarm" })).toEqual(["c"]);
    expect(await found({ states: "PRESENT" })).toEqual(["c"]);
    for (const query of [{ states: "gone" }, { types: "file.state", variableIds: 9 }])
      expect((await hub.call("GET", "/events", { query })).status).toBe(400);
  });

  test("takes types and filter of a subscription instead", async () => {
    await add(event("a"), event("b", { isFailure: true }), event("c", { type: "alarm.changed", isFailure: true }));
    const body = { name: "F", types: ["file.state"], filter: { onlyFailures: true }, channel: "feed" };
    const { id } = await hub.post("/events/subscriptions", body);
    expect(names(await hub.get("/events", { subscriptionId: id }, PLAIN))).toEqual(["b"]);
    for (const query of [{ subscriptionId: 99 }, { subscriptionId: id, types: "file.state" }])
      expect((await hub.call("GET", "/events", { query })).status).toBe(400);
  });

  test("waits for an event where there is none", async () => {
    await add(event("a"));
    const waiting = hub.get("/events", { after: 1, types: "alarm.changed", waitSec: 60 });
    await add(event("passed over"));
    await add(event("b", { type: "alarm.changed" }));
    const found = await waiting;
    expect(names(found)).toEqual(["b"]);
    expect(found).toMatchObject({ next: 3, last: 3 });
    expect(await hub.get("/events", { after: 3, waitSec: 1 })).toEqual({ events: [], next: 3, last: 3 });
  });

  test("says what is lost where events are no longer kept", async () => {
    await add(
      event("old", { atMs: YOUNG_MS + 1_000 }),
      event("old too", { atMs: YOUNG_MS + 2_000 }),
      event("young", { atMs: YOUNG_MS + 5_000 }),
    );
    await store.events.purge({ beforeMs: YOUNG_MS + 3_000, undeliveredBeforeMs: YOUNG_MS + 3_000 });
    expect(await hub.call("GET", "/events", { query: { after: 1 } })).toMatchObject({
      status: 410,
      body: { code: "gone", errors: [{ path: "after", message: "the oldest event is 3" }] },
    });
    for (const query of [{}, { after: 2 }]) expect(names(await hub.get("/events", query))).toEqual(["young"]);
    await store.events.purge({ beforeMs: YOUNG_MS + 9_000, undeliveredBeforeMs: YOUNG_MS + 9_000 });
    expect(await hub.get("/events")).toEqual({ events: [], next: 3, last: 3 });
    await add(event("next"));
    expect(await hub.get("/events", { after: 3 })).toMatchObject({ next: 4 });
  });

  test.each([
    { after: 5 },
    { after: -1 },
    { limit: 0 },
    { limit: 1_001 },
    { waitSec: 61 },
    { types: "x" },
    { tipes: "x" },
  ])("refuses %j", async (query) => {
    expect(await hub.call("GET", "/events", { query })).toMatchObject({ status: 400 });
  });
});

test("events stay that a webhook has still to get, up to a time", async () => {
  const hooked = { name: "W", types: ["file.state"], url: "http://127.0.0.1:1/x" };
  await hub.post("/events/subscriptions", hooked);
  await add(
    event("a", { atMs: YOUNG_MS + 1_000 }),
    event("b", { atMs: YOUNG_MS + 5_000 }),
    event("c", { atMs: YOUNG_MS + 9_000 }),
  );
  await store.events.purge({ beforeMs: YOUNG_MS + 9_000, undeliveredBeforeMs: YOUNG_MS + 500 });
  expect(names(await hub.get("/events"))).toEqual(["a", "b", "c"]);
  await store.events.purge({ beforeMs: YOUNG_MS + 9_000, undeliveredBeforeMs: YOUNG_MS + 5_000 });
  expect(names(await hub.get("/events"))).toEqual(["b", "c"]);
  // What is lost to it is recorded, and the rest is sent.
  await expect.poll(async () => (await hub.get("/events/subscriptions/1")).lostTo).toBe(1);
});
