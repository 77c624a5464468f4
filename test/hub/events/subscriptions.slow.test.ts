/** Subscriptions: what their receivers get, and what managers see of them. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addEvents, type NewEvent } from "#hub/store/events/events.ts";
import type { HubStore } from "#hub/store/store.ts";
import { eventDelivery, SIGNATURE_HEADER, verifyWebhook } from "#wire/index.ts";
import { type Received, startReceiver, startTestHub, type TestHub } from "../fixture.ts";

const OPTIONS = {
  webhook: { backoff: "20ms", backoffMax: "50ms", attempts: 3, timeout: "2s", hosts: ["127.0.0.1"] },
  events: { pauseAfter: "1ms", subscriptions: 4 },
};
let hub: TestHub;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
/** What the receiver answers next; then 200. */
let answers: number[];
beforeEach(async () => {
  hub = await startTestHub(OPTIONS);
  answers = [];
  receiver = await startReceiver(answers);
});
afterEach(async () => {
  await hub.close();
  await receiver.close();
});

const SUBSCRIPTIONS = "/events/subscriptions";
const add = (...events: NewEvent[]) => (hub.inside().store as HubStore).people.change(() => addEvents(events));
const event = (name: string, more: Partial<NewEvent> = {}): NewEvent => ({
  ...{ accountId: 1, type: "file.state", subject: { kind: "file", id: 7, name }, atMs: Date.now(), ...more },
});
const many = (count: number) => Array.from({ length: count }, (_, at) => event(`${at + 1}`));
const subscribe = (more: object = {}) =>
  hub.post(SUBSCRIPTIONS, { name: "W", types: ["file.state"], url: receiver.url, ...more });
const seen = (id: number) => hub.get(`${SUBSCRIPTIONS}/${id}`);
const bodies = () => receiver.received.map(({ text }) => eventDelivery.parse(JSON.parse(text)));
const idsOf = () => bodies().map(({ events }) => events.map(({ id }) => id));
const isSigned = ({ text, headers }: Received, secret: string) =>
  verifyWebhook(text, secret, String(headers[SIGNATURE_HEADER]), Math.floor(Date.now() / 1_000)) === null;

describe("a webhook", () => {
  test("gets the events that fit, in their order, signed by the key that was shown once", async () => {
    const siteId = await hub.post("/sites", { name: "S", typeId: 1, timeZoneId: "UTC" });
    const { secret, ...made } = await subscribe({ filter: { SiteIds: [siteId], states: ["Quarantined"] } });
    const at = (name: string, place: number) => event(name, { siteId: place, state: "quarantined" });
    await add(at("a", siteId), at("b", siteId + 1), at("c", siteId));
    await expect.poll(() => idsOf()).toEqual([[2], [4]]);
    expect(receiver.received.every((one) => isSigned(one, secret))).toBe(true);
    expect(bodies()[0]).toMatchObject({
      account: "1",
      subscription: { id: made.id, name: "W" },
      events: [{ id: 2, type: "file.state", subject: { kind: "file", id: "7", name: "a" }, siteId }],
    });
    await expect.poll(() => seen(made.id)).toMatchObject({ state: "Active", position: 4, behind: 0 });
    expect(JSON.stringify(await seen(made.id))).not.toContain(secret);
    expect(JSON.stringify(await hub.get("/account/audit"))).not.toContain(secret);
  });

  test("gets several events at once where it asks for that", async () => {
    const { id } = await subscribe({ batch: 4, secret: "a-secret-of-my-own" });
    await add(...many(9));
    await expect.poll(() => idsOf().flat()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(idsOf().every((ids) => ids.length <= 4)).toBe(true);
    expect(receiver.received.every((one) => isSigned(one, "a-secret-of-my-own"))).toBe(true);
    await expect.poll(async () => (await seen(id)).delivered).not.toBeNull();
  });

  test("that fails gets the same events again, and none is passed over", async () => {
    answers.push(500, 503);
    await subscribe();
    await add(...many(2));
    await expect.poll(() => idsOf()).toEqual([[1], [1], [1], [2]]);
  });

  test("that fails for too long is paused, shown with the reason, and continues there when resumed", async () => {
    answers.push(500, 500, 500);
    const { id } = await subscribe();
    await add(...many(3));
    await expect.poll(async () => (await seen(id)).state).toBe("Paused");
    expect(await seen(id)).toMatchObject({
      attempts: 3,
      failure: "the receiver answered 500; it accepts by 2xx",
      position: 0,
      behind: 3,
      since: expect.stringMatching(/^20/),
    });
    const { eventDeliveries } = hub.inside().store as HubStore;
    expect(await eventDeliveries.counts()).toEqual({ undelivered: 3, paused: 1 });
    await hub.restart();
    await add(event("while paused"));
    expect(idsOf()).toEqual([[1], [1], [1]]);
    expect(await hub.post(`${SUBSCRIPTIONS}/${id}/resume`, undefined)).toMatchObject({ state: "Active", since: null });
    await expect.poll(() => idsOf().slice(3)).toEqual([[1], [2], [3], [4]]);
  });

  test("that says it is gone is paused at once", async () => {
    answers.push(410);
    const { id } = await subscribe();
    await add(event("a"));
    await expect.poll(() => seen(id)).toMatchObject({ state: "Paused", attempts: 1 });
  });

  test("gets what waited when the hub starts again", async () => {
    answers.push(...Array.from({ length: 100 }, () => 503));
    const patient = await startTestHub({ ...OPTIONS, events: { pauseAfter: "1h" } });
    try {
      const { id } = await patient.post(SUBSCRIPTIONS, { name: "W", types: ["file.state"], url: receiver.url });
      await (patient.inside().store as HubStore).people.change(() => addEvents(many(2)));
      await expect.poll(() => patient.get(`${SUBSCRIPTIONS}/${id}`)).toMatchObject({ state: "Failing" });
      await patient.restart();
      answers.length = 0;
      await expect.poll(() => patient.get(`${SUBSCRIPTIONS}/${id}`)).toMatchObject({ state: "Active", behind: 0 });
      expect(idsOf().slice(-2)).toEqual([[1], [2]]);
    } finally {
      await patient.close();
    }
  });

  test("is not held back by another one that fails", async () => {
    answers.push(...Array.from({ length: 100 }, () => 503));
    const other = await startReceiver();
    try {
      await subscribe();
      await subscribe({ url: other.url });
      await add(...many(3));
      await expect.poll(() => other.received.length).toBe(3);
    } finally {
      await other.close();
    }
  });

  test("that was inactive begins with new events", async () => {
    const body = { name: "W", types: ["file.state"], url: receiver.url };
    const { id } = await subscribe({ active: false });
    await add(event("lost"));
    await hub.ok("PUT", `${SUBSCRIPTIONS}/${id}`, { body });
    await add(event("b"));
    await expect.poll(() => idsOf()).toEqual([[2]]);
  });
});

describe("a test", () => {
  test("sends an event that is none of the account, and says what the receiver answered", async () => {
    const { id, secret } = await subscribe({ active: false });
    const tested = () => hub.post(`${SUBSCRIPTIONS}/${id}/test`, undefined);
    expect(await tested()).toEqual({ accepted: true, status: 200, words: "the receiver accepted it (200)" });
    expect(bodies()).toMatchObject([{ test: true, events: [{ id: 0, type: "subscription.test" }] }]);
    expect(receiver.received.every((one) => isSigned(one, secret))).toBe(true);
    answers.push(404);
    expect(await tested()).toEqual({
      accepted: false,
      status: 404,
      words: "the receiver answered 404; it accepts by 2xx",
    });
    await receiver.close();
    // Why not would tell about the network of the hub.
    expect(await tested()).toEqual({ accepted: false, status: null, words: "the receiver did not answer" });
    expect(await hub.get("/events")).toMatchObject({ last: 0 });
  });

  test("of a feed is refused", async () => {
    const { id } = await hub.post(SUBSCRIPTIONS, { name: "F", types: ["file.state"], channel: "feed" });
    expect(await hub.call("POST", `${SUBSCRIPTIONS}/${id}/test`)).toMatchObject({ status: 409 });
  });
});

test("subscriptions are created, read, changed and removed by managers, and the audit trail says by whom", async () => {
  const { id } = await subscribe();
  expect((await hub.get(SUBSCRIPTIONS)).map(({ name }: { name: string }) => name)).toEqual(["W"]);
  const body = { ...(await seen(id)), name: "Other", types: ["alarm.changed", "file.state"], batch: 7 };
  expect(await hub.ok("PUT", `${SUBSCRIPTIONS}/${id}`, { body })).toMatchObject({ name: "Other", batch: 7 });
  for (const method of ["GET", "DELETE"])
    expect(await hub.call(method, `${SUBSCRIPTIONS}/${id}`, { as: "plain" })).toMatchObject({ status: 403 });
  expect((await hub.call("DELETE", `${SUBSCRIPTIONS}/${id}`)).status).toBe(204);
  expect((await hub.call("GET", `${SUBSCRIPTIONS}/${id}`)).status).toBe(404);
  const audit = await hub.get("/account/audit");
  const entries = audit.filter(({ subject }: { subject: { kind: string } }) => subject.kind === "subscription");
  expect(entries.map(({ action }: { action: string }) => action)).toEqual([
    "subscription.removed",
    "subscription.changed",
    "subscription.created",
  ]);
});

test.each([
  [{ url: undefined }, "url"],
  [{ url: "ftp://127.0.0.1/x" }, "url"],
  [{ url: "https://10.0.0.1/x" }, "url"],
  [{ channel: "feed" }, "url"],
  [{ types: [] }, "types"],
  [{ types: ["file.stated"] }, "types.0"],
  [{ secret: "short" }, "secret"],
  [{ batch: 501 }, "batch"],
  [{ filter: { onlyFailures: "perhaps" } }, "filter.onlyFailures"],
  [{ filter: { sites: [3] } }, "filter"],
  [{ filter: { states: ["lost"] } }, "filter.states.0"],
  [{ filter: { states: ["Present"] } }, "filter.states"],
  [{ filter: { severities: ["Critical"] } }, "filter.severities"],
  [{ filter: { siteIds: [] } }, "filter.siteIds"],
  [{ filter: { siteIds: [99_999] } }, "filter.siteIds"],
  [{ filter: { variableIds: [1] } }, "filter.variableIds"],
  [{ types: ["alarm.changed"], filter: { states: ["NotPresent"], onlyFailures: true } }, "filter"],
  [{ types: ["file.state", "structure.changed"], filter: { onlyFailures: true } }, "filter.onlyFailures"],
  [{ types: ["file.state", "push.outcome"], filter: { siteIds: [1] } }, "filter.siteIds"],
])("a subscription with %j is refused, and its field is named", async (more, path) => {
  const body = { name: "W", types: ["file.state"], url: receiver.url, ...more };
  const { status, body: problem } = await hub.call("POST", SUBSCRIPTIONS, { body });
  expect({ status, path: problem.errors?.[0]?.path }).toEqual({ status: 400, path });
});

test("an account may have so many subscriptions", async () => {
  for (let made = 0; made < 4; made += 1) await subscribe();
  const body = { name: "W", types: ["file.state"], url: receiver.url };
  expect(await hub.call("POST", SUBSCRIPTIONS, { body })).toMatchObject({ status: 409 });
  await hub.post(SUBSCRIPTIONS, body, { account: 2 });
});
