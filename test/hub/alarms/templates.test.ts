import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { createLog } from "#core/log.ts";
import { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { AlarmChange } from "#wire/index.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { alarmsOf, DAY, settled } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const { variable, pushed, templateOf, alarmOf, changes, changesOf } = alarmsOf(() => hub);

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
    const gap = await templateOf(id, { condition: { kind: "Gap", minutes: 90, within: 5_000_000 } });
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

  test("shows its addresses, and the paths of its webhooks, to Managers alone", async () => {
    const emails = ["one@example.org"];
    const notifications = { emails, webhooks: ["https://hooks.example.org/services/secret"] };
    const template = await templateOf(await variable(), { notifications });
    const path = `/alarms/template/${template}`;
    expect((await hub.ok("GET", path)).notifications).toEqual(notifications);
    const hidden = { webhooks: ["https://hooks.example.org"] };
    expect((await hub.ok("GET", path, { as: "plain" })).notifications).toEqual(hidden);
    const [listed] = await hub.ok("GET", "/alarms/template", { as: "plain", query: { templateIds: template } });
    expect(JSON.stringify(listed)).not.toMatch(/secret|one@/);
  });

  test.each([{ condition: { kind: "Above", set: 90 } }, { enabled: false }])(
    "that a hub does not know yet as it is now changes no alarm there: %j",
    async (change) => {
      const id = await variable();
      const template = await templateOf(id);
      await alarmOf(template);
      const { store } = hub.inside();
      const other = new AlarmEvaluation({
        ...{ store: store as HubStore, clock: systemClock, log: createLog("silent") },
        mailsAnHour: 60,
        onChanged() {},
      });
      await other.refresh();
      await settled(other);
      const { name, selection, condition } = await hub.get(`/alarms/template/${template}`);
      const body = { name, selection, condition, ...change };
      await hub.ok("PUT", `/alarms/template/${template}`, { body });
      await pushed(id, [12]);
      const [at, twelve] = [Float64Array.of(Date.parse(DAY)), Float64Array.of(12)];
      other.take([{ ids: [id], fromMs: at, toMs: at, min: twelve, max: twelve }]);
      await settled(other);
      expect(await changes(template)).toEqual([]);
      const [{ state }] = await hub.get("/alarms", { templateIds: template });
      expect(state).toBe("NotPresent");
    },
  );

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
    const between = { ...template, condition: { kind: "Expression", expression: "value > 8 and value < 10" } };
    const sometimes = await hub.post("/alarms/template/test", { template: between, from: DAY, to: "2026-03-02" });
    expect(sometimes.changes.map(({ state, value }: AlarmChange) => [state, value])).toEqual([
      ["Present", 9],
      ["NotPresent", 7],
    ]);
    await pushed(id, [5], "2026-03-03");
    const gap = { ...template, condition: { kind: "Gap", minutes: 90, within: 60 } };
    const holes = await hub.post("/alarms/template/test", { template: gap, from: DAY, to: "2026-03-04" });
    expect(holes.changes.map(({ state, date }: AlarmChange) => [state, date.slice(0, 13)])).toEqual([
      ["Present", "2026-03-03T00"],
      ["NotPresent", "2026-03-03T01"],
    ]);
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
