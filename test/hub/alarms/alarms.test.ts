import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AlarmEvaluation } from "../../../src/hub/alarms/evaluation.ts";
import type { HubStore } from "../../../src/hub/store/store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { createLog } from "../../../src/support/log.ts";
import type { AlarmChange } from "../../../src/wire/index.ts";
import { createChain, startReceiver, startTestHub, type TestHub, until } from "../fixture.ts";
import { sentMails } from "./outbox.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const DAY = "2026-03-01";
const points = (values: readonly number[], date = DAY) =>
  values.map((value, hour) => ({ date: `${date}T${String(hour).padStart(2, "0")}:00:00Z`, value }));
const pushed = (variableId: number, values: readonly number[], date?: string) =>
  hub.push([{ variableId, data: points(values, date) }]);

async function variable(more: object = {}): Promise<number> {
  const { variableIds } = await createChain(hub, { variables: [more] });
  return variableIds[0] ?? 0;
}

async function templateOf(variableId: number, more: object = {}): Promise<number> {
  return hub.post("/alarms/template", {
    name: "Too high",
    selection: { variableIds: [variableId] },
    condition: { kind: "Above", set: 10, reset: 8 },
    ...more,
  });
}

const alarmOf = (templateId: number) => until(async () => (await hub.get("/alarms", { templateIds: templateId }))[0]);
/** State and date of each change, oldest first. */
const changes = async (templateId: number) => {
  const found: AlarmChange[] = await hub.get("/alarms/history", { templateIds: templateId });
  return found.map(({ state, date, value }) => [state, date.slice(0, 16), value]).toReversed();
};
const changesOf = (templateId: number, count: number) =>
  until(async () => {
    const found = await changes(templateId);
    return found.length >= count ? found : undefined;
  });

describe("an alarm", () => {
  test("follows the points of a push in order of date, with the peak inside", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await pushed(id, [5, 12, 9, 7, 11]);
    expect(await changesOf(template, 3)).toEqual([
      ["Present", "2026-03-01T01:00", 12],
      ["NotPresent", "2026-03-01T03:00", 7],
      ["Present", "2026-03-01T04:00", 11],
    ]);
    expect(await alarmOf(template)).toMatchObject({
      name: "Too high",
      severity: "Warning",
      state: "Present",
      since: "2026-03-01T04:00:00.000Z",
      value: 11,
      limit: "at or above 10 (until at or below 8)",
      variableId: id,
      sourceName: "Source",
      siteName: "Site",
    });
  });

  test("begins with the newest point of a variable that is older than its template", async () => {
    const id = await variable();
    await pushed(id, [50, 50, 12]);
    const template = await templateOf(id);
    expect(await changesOf(template, 1)).toEqual([["Present", "2026-03-01T02:00", 12]]);
  });

  test("appears with a variable that fits the filter, counts all of its points, and goes with it", async () => {
    const { sourceId } = await createChain(hub, { source: { serialNumber: "ALARM-S" }, variables: [] });
    const template = await templateOf(0, {
      selection: { customFilter: "SerialNumber = 'ALARM-S'", tags: ["watched"] },
    });
    const body = { name: "Late", sourceId, variableTypeId: 0, unitId: 8 };
    await hub.post("/variables", body);
    const id = await hub.post("/variables", { ...body, tags: ["watched"] });
    await pushed(id, [20, 1]);
    expect(await changesOf(template, 2)).toEqual([
      ["Present", "2026-03-01T00:00", 20],
      ["NotPresent", "2026-03-01T01:00", 1],
    ]);
    await hub.call("DELETE", `/variables/${id}`, { query: { WithData: true } });
    await until(async () => ((await hub.get("/alarms", { templateIds: template })).length === 0 ? true : undefined));
  });

  test("fires for a corrected newest point, and not for one that is older than it", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await alarmOf(template);
    await pushed(id, [12, 5]);
    await changesOf(template, 2);
    await hub.push([{ variableId: id, data: [{ date: `${DAY}T00:30:00Z`, value: 99 }] }]);
    await hub.push([{ variableId: id, data: [{ date: `${DAY}T01:00:00Z`, value: 15 }] }]);
    expect(await changesOf(template, 3)).toEqual([
      ["Present", "2026-03-01T00:00", 12],
      ["NotPresent", "2026-03-01T01:00", 5],
      ["Present", "2026-03-01T01:00", 15],
    ]);
  });

  test("judges a point of the future at its moment, and those before it meanwhile", async () => {
    const id = await variable();
    const silent = await variable();
    const template = await templateOf(id);
    const noData = await templateOf(silent, { condition: { kind: "NoData", minutes: 1 } });
    const soonMs = Date.now() + 300 * 86_400_000;
    const [soon, now, past] = [soonMs, Date.now(), Date.parse(DAY)].map((ms) => new Date(ms).toISOString());
    await hub.push([{ variableId: id, data: [{ date: soon, value: 3 }] }]);
    await hub.push([{ variableId: silent, data: [past, soon].map((date) => ({ date, value: 1 })) }]);
    await hub.push([{ variableId: id, data: [{ date: now, value: 12 }] }]);
    expect(await changesOf(template, 1)).toEqual([["Present", now?.slice(0, 16), 12]]);
    expect((await changesOf(noData, 1)).map(([state]) => state)).toEqual(["Present"]);
    let nowMs = Date.now();
    const clock = { ...systemClock, now: () => Temporal.Instant.fromEpochMilliseconds(nowMs) };
    const { store } = hub.inside();
    const other = new AlarmEvaluation({ store: store as HubStore, clock, log: createLog("silent"), onChanged() {} });
    await other.sweep();
    nowMs = soonMs;
    await other.tick();
    expect((await changesOf(template, 2))[1]).toEqual(["NotPresent", soon?.slice(0, 16), 3]);
    await other.sweep();
    expect((await changesOf(noData, 2))[1]).toEqual(["NotPresent", soon?.slice(0, 16), 1]);
  });

  test("is acknowledged once, under the caller's name, and stays so until it goes away", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await pushed(id, [12]);
    await changesOf(template, 1);
    const { id: alarmId } = await alarmOf(template);
    const path = `/alarms/${alarmId}/acknowledge`;
    const answer = await hub.post(path, { comment: "Someone looks." }, { as: "plain" });
    expect(answer).toMatchObject({ id: alarmId, state: "Acknowledged", value: 12 });
    expect(await hub.call("POST", path, { body: {} })).toMatchObject({ status: 409 });
    await hub.post(`/alarms/${alarmId}/comments`, { text: "It was the fuse." });
    await pushed(id, [14, 3], "2026-03-02");
    expect((await changesOf(template, 3)).map(([state]) => state)).toEqual(["Present", "Acknowledged", "NotPresent"]);
    const { history, comments } = await hub.get(`/alarms/${alarmId}`);
    expect(history.map(({ user }: AlarmChange) => user)).toEqual([null, "plain", null]);
    expect(comments).toMatchObject([
      { author: "plain", text: "Someone looks." },
      { author: "manager", text: "It was the fuse." },
    ]);
    expect(await hub.call("POST", path, { body: {} })).toMatchObject({ status: 409 });
  });

  test("keeps its state through a restart, and finds what was stored meanwhile", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await pushed(id, [12, 9]);
    await changesOf(template, 1);
    await hub.restart();
    await pushed(id, [9, 2], "2026-03-02");
    expect(await changesOf(template, 2)).toEqual([
      ["Present", "2026-03-01T00:00", 12],
      ["NotPresent", "2026-03-02T01:00", 2],
    ]);
  });

  test("that several hubs evaluate at once changes once, with one history and one event", async () => {
    const id = await variable();
    const template = await templateOf(id);
    const { store } = hub.inside();
    const others = [1, 2].map(
      () =>
        new AlarmEvaluation({ store: store as HubStore, clock: systemClock, log: createLog("silent"), onChanged() {} }),
    );
    for (const other of others) await other.refresh();
    await pushed(id, [12, 5, 20]);
    await Promise.all(others.map((other) => other.sweep()));
    expect((await changesOf(template, 3)).map(([state]) => state)).toEqual(["Present", "NotPresent", "Present"]);
    const { events } = await hub.get("/events", { types: "alarm.changed", variableIds: id });
    expect(events.map(({ state }: { state: string }) => state)).toEqual(["Present", "NotPresent", "Present"]);
  });

  test("of an expression is present where it is true", async () => {
    const id = await variable();
    const template = await templateOf(id, { condition: { kind: "Expression", expression: "value > 3 and value < 6" } });
    await pushed(id, [1, 5, 7]);
    expect(await changesOf(template, 2)).toEqual([
      ["Present", "2026-03-01T01:00", 5],
      ["NotPresent", "2026-03-01T02:00", 7],
    ]);
  });

  test("tells by mail, webhook, event and variable what, where, value, limit and since when", async () => {
    const receiver = await startReceiver();
    const { variableIds } = await createChain(hub, {
      variables: [{ name: "Load" }, { name: "State", mappingConfig: "state" }],
    });
    const [id = 0, stateId = 0] = variableIds;
    const notifications = {
      emails: ["one@example.org", "two@example.org"],
      webhooks: [receiver.url],
      mappingConfig: "state",
    };
    const template = await templateOf(id, { name: "Load above", severity: "Critical", notifications });
    await pushed(id, [12, 2]);
    await changesOf(template, 2);
    const { id: alarmId } = await alarmOf(template);
    const mails = await until(async () => {
      const found = await sentMails(hub, "Load above");
      return found.length === 4 ? found : undefined;
    });
    const first = mails.find(
      ({ headers: { to = "", subject = "" } }) => to.includes("one@") && subject.startsWith("Critical: Load above"),
    );
    for (const words of ["Site / Source / Load", "Value: 12", "at or above 10", "2026-03-01 00:00:00 UTC"])
      expect(first?.text).toContain(words);
    await until(async () => (receiver.received.length === 2 ? true : undefined));
    const bodies = receiver.received.map(({ text }) => JSON.parse(text));
    expect(bodies.map(({ change }) => change.state).sort()).toEqual(["NotPresent", "Present"]);
    expect(bodies[0]).toMatchObject({
      type: "alarm.changed",
      account: "1",
      alarm: { id: alarmId, variableName: "Load" },
    });
    expect(receiver.received[0]?.headers["x-headgate-signature"]).toMatch(/^t=\d+,v1=/);
    await receiver.close();
    const values = await until(async () => {
      const rows = await hub.get("/data", { VariableIds: [stateId], DisplayLevel: "ValueVariableDate" });
      return rows.length === 2 ? rows : undefined;
    });
    expect(values.map(({ rawValue }: { rawValue: number }) => rawValue)).toEqual([1, 0]);
  });
});

describe("a template", () => {
  test("of a disabled kind changes nothing, until it is enabled", async () => {
    const id = await variable();
    const template = await templateOf(id, { enabled: false });
    await pushed(id, [12]);
    expect(await hub.get(`/alarms/template/${template}`)).toMatchObject({ enabled: false, alarms: 0 });
    const {
      id: _,
      alarms: __,
      present: ___,
      creationDate: ____,
      lastEditDate: _____,
      ...body
    } = await hub.get(`/alarms/template/${template}`);
    expect(await hub.ok("PUT", `/alarms/template/${template}`, { body: { ...body, enabled: true } })).toMatchObject({
      id: template,
      enabled: true,
    });
    expect(await changesOf(template, 1)).toEqual([["Present", "2026-03-01T00:00", 12]]);
  });

  test("whose levels change judges the newest point anew", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await pushed(id, [9]);
    await alarmOf(template);
    const { name, selection } = await hub.get(`/alarms/template/${template}`);
    const condition = { kind: "Above", set: 9 };
    await hub.ok("PUT", `/alarms/template/${template}`, { body: { name, selection, condition } });
    expect(await changesOf(template, 1)).toEqual([["Present", "2026-03-01T00:00", 9]]);
  });

  test("with other words leaves a flat line and a gap as they are, and the gap ends when it is filled", async () => {
    const id = await variable();
    const flat = await templateOf(id, { condition: { kind: "FlatLine", minutes: 120 } });
    const gap = await templateOf(id, { condition: { kind: "Gap", minutes: 90, within: 10_000_000 } });
    const at = (hour: number) => ({ date: `${DAY}T0${hour}:00:00Z`, value: 4 });
    await hub.push([{ variableId: id, data: [at(0), at(1), at(4)] }]);
    await changesOf(flat, 1);
    await changesOf(gap, 1);
    for (const template of [flat, gap]) {
      const { selection, condition } = await hub.get(`/alarms/template/${template}`);
      const body = { name: "Other words", severity: "Critical", selection, condition };
      await hub.ok("PUT", `/alarms/template/${template}`, { body });
    }
    await hub.push([{ variableId: id, data: [at(2), at(3)] }]);
    expect((await changesOf(gap, 2)).map(([state]) => state)).toEqual(["Present", "NotPresent"]);
    expect(await changes(flat)).toEqual([["Present", "2026-03-01T04:00", 4]]);
  });

  test("whose condition becomes a gap ends an alarm that is present without one", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await pushed(id, [12]);
    await changesOf(template, 1);
    const { name, selection } = await hub.get(`/alarms/template/${template}`);
    const body = { name, selection, condition: { kind: "Gap", minutes: 90 } };
    await hub.ok("PUT", `/alarms/template/${template}`, { body });
    expect((await changesOf(template, 2)).map(([state]) => state)).toEqual(["Present", "NotPresent"]);
  });

  test("is removed with its alarms", async () => {
    const id = await variable();
    const template = await templateOf(id);
    const { id: alarmId } = await alarmOf(template);
    expect(await hub.call("DELETE", `/alarms/template/${template}`)).toMatchObject({ status: 204 });
    expect(await hub.call("GET", `/alarms/${alarmId}`)).toMatchObject({ status: 404 });
    expect(await hub.call("DELETE", `/alarms/template/${template}`)).toMatchObject({ status: 404 });
  });

  test("is tried over a past period, and nothing changes", async () => {
    const id = await variable();
    await pushed(id, [5, 12, 9, 7, 11]);
    const template = { name: "t", selection: { variableIds: [id] }, condition: { kind: "Above", set: 10, reset: 8 } };
    const answer = await hub.post("/alarms/template/test", { template, from: DAY, to: "2026-03-02" });
    expect(answer).toEqual({
      variables: 1,
      tested: 1,
      complete: true,
      changes: [
        { variableId: id, state: "Present", date: `${DAY}T01:00:00.000Z`, value: 12 },
        { variableId: id, state: "NotPresent", date: `${DAY}T03:00:00.000Z`, value: 7 },
        { variableId: id, state: "Present", date: `${DAY}T04:00:00.000Z`, value: 11 },
      ],
    });
    const silent = { ...template, condition: { kind: "NoData", minutes: 90 } };
    const found = await hub.post("/alarms/template/test", { template: silent, from: DAY, to: `${DAY}T06:00` });
    expect(found.changes).toEqual([{ variableId: id, state: "Present", date: `${DAY}T05:30:00.000Z`, value: null }]);
    expect(await hub.get("/alarms", { variableIds: id })).toEqual([]);
  });

  test.each([
    [{ condition: { kind: "Above" } }, "set"],
    [{ condition: { kind: "Above", set: 1, reset: 2 } }, "reset"],
    [{ condition: { kind: "Abov", set: 1 } }, "kind"],
    [{ selection: {} }, "selects nothing"],
    [{ selection: { viewId: 987 } }, "no view 987"],
    [{ selection: { customFilter: "Nam = 1" } }, "position 1"],
    [{ condition: { kind: "LateFile", by: "06:00" } }, "triggerIds"],
    [{ condition: { kind: "LateFile", by: "6:00" } }, "by"],
    [{ condition: { kind: "Expression", expression: "value >" } }, "column"],
    [{ notifications: { webhooks: ["http://10.0.0.1/x"] } }, "webhook.hosts"],
    [{ notifications: { variableId: 999_999 } }, "no variable 999999"],
    [{ notifications: { userIds: [999_999] } }, "no user 999999"],
    [{ schedule: { from: "25:00" } }, "time of day"],
  ])("is refused with the place and the reason: %j", async (wrong, words) => {
    const body = { name: "t", selection: { variableIds: [1] }, condition: { kind: "Above", set: 1 }, ...wrong };
    const answer = await hub.call("POST", "/alarms/template", { body });
    expect(answer.status).toBe(400);
    expect(JSON.stringify(answer.body)).toContain(words);
  });
});
