import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { AlarmChange } from "#wire/index.ts";
import { createChain, startReceiver, startTestHub, type TestHub, until } from "../fixture.ts";
import { sentMails } from "./outbox.ts";
import { alarmsOf, DAY, settled } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const { variable, pushed, templateOf, alarmOf, changesOf } = alarmsOf(() => hub);

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
    const other = new AlarmEvaluation({
      store: store as HubStore,
      clock,
      log: createLog("silent"),
      mailsAnHour: 60,
      onChanged() {},
    });
    await other.sweep();
    await settled(other);
    nowMs = soonMs;
    other.tick();
    await settled(other);
    expect((await changesOf(template, 2))[1]).toEqual(["NotPresent", soon?.slice(0, 16), 3]);
    await other.sweep();
    await settled(other);
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
        new AlarmEvaluation({
          store: store as HubStore,
          clock: systemClock,
          log: createLog("silent"),
          mailsAnHour: 60,
          onChanged() {},
        }),
    );
    for (const other of others) {
      await other.refresh();
      await settled(other);
    }
    await pushed(id, [12, 5, 20]);
    for (const other of others) await other.sweep();
    await Promise.all(others.map(settled));
    expect((await changesOf(template, 3)).map(([state]) => state)).toEqual(["Present", "NotPresent", "Present"]);
    const { events } = await hub.get("/events", { types: "alarm.changed", variableIds: id });
    expect(events.map(({ state }: { state: string }) => state)).toEqual(["Present", "NotPresent", "Present"]);
  });

  test("that has changed meanwhile is left as it is, and the others of its list are written", async () => {
    const [one, other] = [await variable(), await variable()];
    const template = await templateOf(one, { selection: { variableIds: [one, other] }, enabled: false });
    const { alarms } = hub.inside().store as HubStore;
    const [found] = await alarms.evaluation.templatesOf(1, [template]);
    if (found === undefined) throw new Error("the template is gone");
    const wanted = [one, other].map((variableId) => ({ variableId, triggerId: null, watermarkMs: null }));
    await alarms.evaluation.add(1, found, wanted, 1);
    await hub.call("PUT", `/alarms/template/${template}`, { body: { ...found.body, enabled: true } });
    const rows = (await alarms.evaluation.alarms(1, 0, 1_000)).filter(({ templateId }) => templateId === template);
    const change = { state: "Present", atMs: 1, value: 12, limit: null, user: null } as const;
    const noticesOf = () => ({ mails: [], dispatches: [], events: [] });
    const steps = rows.map((alarm) => ({
      ...{ alarm, templateRevision: found.revision, watermarkMs: 1, memory: {}, changes: [change] },
      ...{ recordedMs: 1, noticesOf },
    }));
    const stale = steps.map((step, at) => (at === 1 ? { ...step, alarm: { ...step.alarm, revision: 7 } } : step));
    expect(await alarms.evaluation.advance(stale, 60)).toEqual([true, false]);
    expect((await alarms.evaluation.alarmsOf(rows.map(({ id }) => id))).map(({ state }) => state)).toEqual([
      "Present",
      "NotPresent",
    ]);
    const ofOldRule = steps.map((step) => ({ ...step, templateRevision: found.revision - 1 }));
    expect(await alarms.evaluation.advance(ofOldRule, 60)).toEqual([false, false]);
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

  test("mails the time of its site beside UTC, and a link to its values where the hub has a public URL", async () => {
    const publicUrl = "https://hub.example.com/";
    const other = await startTestHub({ publicUrl });
    const made = alarmsOf(() => other);
    const { variableIds } = await createChain(other, { variables: [{}] });
    const [id = 0] = variableIds;
    await made.templateOf(id, { notifications: { emails: ["one@example.org"] } });
    await made.pushed(id, [1, 12]);
    const [mail] = await until(async () => {
      const found = await sentMails(other, "Warning: Too high");
      return found.length === 1 ? found : undefined;
    });
    expect(mail?.text).toContain("Since: 2026-03-01 02:00:00 in Europe/Paris (2026-03-01 01:00:00 UTC)");
    expect(mail?.text).toContain(`${publicUrl}?variables=${id}&from=2026-02-28&to=2026-03-02`);
    expect(mail?.text).not.toMatch(/GET|\/alarms/);
    await other.close();
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
