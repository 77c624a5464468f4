/** What becomes an event: outcomes of pushes, states of stored files, changes of structure. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";

let hub: TestHub;
beforeEach(async () => {
  hub = await startTestHub();
});
afterEach(() => hub.close());

const eventsOf = async (types: string, after = 0) => (await hub.get("/events", { types, after, limit: 1_000 })).events;
const newest = async (): Promise<number> => (await hub.get("/events", { limit: 1 })).last;
const watchPushes = () => hub.post("/events/subscriptions", { name: "P", types: ["push.outcome"], channel: "feed" });

describe("the outcome of a push", () => {
  const data = [{ date: "2026-03-01T00:00:00Z", value: 1 }];

  test("is an event while a subscription asks for it", async () => {
    const { variableIds } = await createChain(hub);
    const [variableId] = variableIds;
    const push = (...elements: object[]) => hub.push(elements);
    await push({ variableId, data });
    expect(await eventsOf("push.outcome")).toEqual([]);
    const { id } = await watchPushes();
    const { operationId } = await push({ variableId, data }, { variableId: 9_999, data });
    await push({ variableId: 9_999, data });
    await push({ variableId, data });
    const found = await eventsOf("push.outcome");
    expect(found).toMatchObject([
      {
        subject: { kind: "operation", id: operationId },
        state: "partly-discarded",
        isFailure: true,
        facts: {
          received: 2,
          stored: 1,
          replaced: 1,
          discarded: 1,
          targets: [{ target: "variableId=9999", count: 1 }],
        },
      },
      { state: "discarded", isFailure: true },
      { state: "stored", isFailure: false, facts: { targets: [] } },
    ]);
    await hub.call("DELETE", `/events/subscriptions/${id}`);
    await push({ variableId, data });
    expect(await eventsOf("push.outcome")).toHaveLength(3);
  });

  test("is one of its own account, for many pushes at one time", async () => {
    await createChain(hub);
    await watchPushes();
    const names = Array.from({ length: 60 }, (_, at) => `op ${at}`);
    const push = (operationId: string) =>
      hub.post("/push/api/data", [{ variableId: 1, data }], { query: { operationId } });
    await Promise.all(names.map(push));
    await Promise.all(names.map((name) => hub.settled(name)));
    const found = (await eventsOf("push.outcome")).map(({ subject }: { subject: { name: string } }) => subject.name);
    expect(found.toSorted()).toEqual(names.toSorted());
    expect(await hub.get("/events", { types: "push.outcome" }, { account: 2 })).toMatchObject({ events: [] });
  });
});

test("each state of a stored file but `processing` is an event", async () => {
  const { siteId } = await createChain(hub);
  const after = await newest();
  const { body: id } = await hub.upload("1;2", { Filename: "in/a.csv", SiteId: siteId });
  const { files } = hub.inside().store as HubStore;
  const advance = (state: "processing" | "quarantined" | "stored", reason: string | null = null) =>
    files.advance(1, [{ id, state, reason, atMs: Date.now(), run: "run 1" }]);
  await advance("processing");
  await advance("quarantined", "line 7 is odd");
  // A further reason is no further state.
  await advance("quarantined", "line 8 is odd");
  await hub.post(`/storage/${id}/process`, undefined);
  await advance("processing");
  await advance("stored");
  // Not permitted, and so it did not happen.
  expect(await files.advance(1, [{ id, state: "received", reason: null, atMs: Date.now() }])).toEqual([false]);
  const found = await eventsOf("file.state", after);
  expect(found.map(({ state }: { state: string }) => state)).toEqual(["received", "quarantined", "received", "stored"]);
  expect(found[1]).toMatchObject({
    subject: { kind: "file", id: String(id), name: "in/a.csv" },
    siteId,
    isFailure: true,
    facts: { reason: "line 7 is odd", run: "run 1", size: 3 },
  });
});

describe("a change of structure", () => {
  const words = async (after = 0) =>
    (await eventsOf("structure.changed", after)).map(
      ({ subject, state }: { subject: { kind: string; id: string }; state: string }) =>
        `${subject.kind} ${subject.id} ${state}`,
    );

  test("is one event for each request that changes something", async () => {
    const { siteId, sourceId, variableIds } = await createChain(hub);
    await hub.ok("PATCH", `/sites/${siteId}`, { body: { name: "Other" } });
    await hub.ok("PATCH", `/sites/${siteId}`, { body: { name: "Other" } });
    await hub.ok("PATCH", `/sources/${sourceId}`, { body: { name: "Other" } });
    await hub.ok("PATCH", `/variables/${variableIds[0]}`, { body: { name: "Other", tags: ["x"] } });
    expect(await words()).toEqual([
      "site 1 created",
      "source 1 created",
      "variable 1 created",
      "site 1 changed",
      "source 1 changed",
      "variable 1 changed",
    ]);
    const found = await eventsOf("structure.changed");
    expect(found[5]).toMatchObject({ siteId, sourceId, variableId: 1, facts: { fields: ["name", "tags"] } });
    const after = await newest();
    await hub.call("DELETE", `/sites/${siteId}`);
    const whole = { kind: "site", id: String(siteId), name: "Other" };
    const common = { state: "removed", siteId };
    expect(await eventsOf("structure.changed", after)).toMatchObject([
      { ...common, subject: { kind: "variable", name: "Other" }, sourceId, variableId: 1, facts: { with: whole } },
      { ...common, subject: { kind: "source", name: "Other" }, sourceId, variableId: null, facts: { with: whole } },
      { ...common, subject: { kind: "site" }, sourceId: null, facts: { sources: 1, variables: 1, points: 0 } },
    ]);
    const ofVariable = await hub.get("/events", { variableIds: 1, after });
    expect(ofVariable.events).toMatchObject([{ subject: { kind: "variable", id: "1" }, state: "removed" }]);
  });

  test("is one for each of many variables that are removed with their source", async () => {
    const variables = Array.from({ length: 120 }, () => ({}));
    const { sourceId, variableIds } = await createChain(hub, { variables });
    const after = await newest();
    await hub.call("DELETE", `/sources/${sourceId}`);
    const found: { subject: { kind: string; id: string } }[] = await eventsOf("structure.changed", after);
    const expected = [...variableIds.map((id) => `variable ${id}`), `source ${sourceId}`];
    expect(found.map(({ subject }) => `${subject.kind} ${subject.id}`)).toEqual(expected);
  });

  test("that is refused is none", async () => {
    await createChain(hub);
    const after = await newest();
    const body = { name: "X", siteId: 999, sourceTypeId: 1 };
    expect((await hub.call("POST", "/sources", { body })).status).toBeGreaterThanOrEqual(400);
    expect((await hub.call("DELETE", "/groups/999")).status).toBe(404);
    expect(await words(after)).toEqual([]);
  });

  test("of forms, file triggers and groups is one, too", async () => {
    const { siteId } = await createChain(hub);
    const after = await newest();
    const { id: form } = await hub.post("/form", { name: "F", groups: [] });
    await hub.call("DELETE", `/form/${form}`);
    const trigger = await hub.post("/fileTrigger", { name: "T", mapping: "acme", ingestionType: "SendViaHttp" });
    await hub.ok("DELETE", "/fileTrigger", { query: { ids: trigger } });
    const group = await hub.post("/groups", { name: "G" });
    await hub.post(`/groups/${group}/sites`, { siteIds: [siteId] });
    await hub.call("DELETE", `/groups/${group}`);
    const expected = ["form created", "form removed", "fileTrigger created", "fileTrigger removed"];
    expected.push("group created", "group changed", "group removed");
    expect((await words(after)).map((one: string) => one.replace(/ \d+/, ""))).toEqual(expected);
  });
});
