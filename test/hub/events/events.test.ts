/** The events of an account: their order, and what a reader gets who follows it. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { addEvents, type EventFilter, type EventPage, type NewEvent } from "#hub/store/events/events.ts";
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
const YOUNG_MS = Temporal.Instant.from("2096-10-02T07:06:40Z").epochMilliseconds;

function event(name: string, more: Partial<NewEvent> = {}): NewEvent {
  return { accountId: 1, type: "file.state", subject: { kind: "file", id: 7, name }, atMs: YOUNG_MS, ...more };
}

const add = (...events: NewEvent[]) => store.people.change(() => addEvents(events));

function pageOf(found: EventPage) {
  if (found.kind !== "page") throw new Error(found.kind);
  return { ...found, names: found.events.map(({ subject }) => subject.name) };
}

async function read(after: number | null, limit = 100, filter: EventFilter = {}) {
  return pageOf(await store.events.after(1, after, filter, limit));
}

test("events of an account are numbered from 1, in the order in which they were added", async () => {
  await add(event("a"), event("of another", { accountId: 2 }), event("b"));
  await add(...Array.from({ length: 120 }, (_, at) => event(`many ${at}`)));
  const { events, names, next } = await read(null, 1_000);
  expect(events.map(({ id }) => id)).toEqual(Array.from({ length: 122 }, (_, at) => at + 1));
  expect(names.slice(0, 3)).toEqual(["a", "b", "many 0"]);
  expect(next).toBe(122);
  expect(await store.events.newest([2, 3])).toEqual(
    new Map([
      [2, 1],
      [3, 0],
    ]),
  );
});

test("an event keeps what it was given", async () => {
  const facts = { reason: "no trigger \ud800 claims it" };
  const about = { siteId: 3, sourceId: 4, variableId: 5, severity: "high", isFailure: true, state: "unclaimed" };
  await add(event("x.csv", { ...about, facts }));
  const { events } = await read(0);
  expect(events).toEqual([
    {
      id: 1,
      date: "2096-10-02T07:06:40.000Z",
      type: "file.state",
      subject: { kind: "file", id: "7", name: "x.csv" },
      ...about,
      facts: { reason: "no trigger \ufffd claims it" },
    },
  ]);
});

test("a write that fails takes no number", async () => {
  const failing = store.people.change(function* () {
    yield* addEvents([event("lost")]);
    throw new Error("on purpose");
  });
  await expect(failing).rejects.toThrow("on purpose");
  await add(event("kept"));
  expect((await read(0)).events).toMatchObject([{ id: 1, subject: { name: "kept" } }]);
});

test("pages follow each other, also where the filter passes events over", async () => {
  await add(event("a", { state: "stored" }), event("b", { state: "quarantined", isFailure: true }), event("c"));
  await add(event("d", { variableId: 9 }), event("e", { isFailure: true }));
  expect(await read(0, 2)).toMatchObject({ names: ["a", "b"], next: 2, last: 5 });
  expect(await read(2, 3)).toMatchObject({ names: ["c", "d", "e"], next: 5 });
  expect(await read(5, 3)).toMatchObject({ names: [], next: 5 });
  expect(await read(0, 1, { onlyFailures: true })).toMatchObject({ names: ["b"], next: 2 });
  expect(await read(2, 5, { variableIds: [9, 10] })).toMatchObject({ names: ["d"], next: 5 });
  expect(await read(0, 5, { states: ["stored"], types: ["file.state"] })).toMatchObject({ names: ["a"], next: 5 });
  expect(await read(0, 5, { types: ["push.outcome"] })).toMatchObject({ names: [], next: 5 });
  expect(await store.events.after(1, 6, {}, 5)).toEqual({ kind: "ahead", last: 5 });
});

test("many writes at one time leave one order without gaps", async () => {
  await Promise.all(Array.from({ length: 40 }, (_, at) => add(event(`${at} first`), event(`${at} second`))));
  const { events, names } = await read(0);
  expect(events.map(({ id }) => id)).toEqual(Array.from({ length: 80 }, (_, at) => at + 1));
  for (const [at, name] of names.entries())
    if (at % 2 === 0) expect(names[at + 1]).toBe(name?.replace("first", "second"));
});
