/** Alarms that push their state into what they watch are refused, or paused; so is one that changes again and again. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Alarm, AlarmTemplateBody } from "#wire/index.ts";
import { createChain, startReceiver, startTestHub, type TestHub, until } from "../fixture.ts";
import { sentMails } from "./outbox.ts";
import { alarmsOf, DAY } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const { variable, pushed, templateOf, alarmOf, changes, changesOf } = alarmsOf(() => hub);

const ABOVE = { kind: "Above", set: 10, reset: 8 } as const;

function bodyOf(selection: AlarmTemplateBody["selection"], notifications: AlarmTemplateBody["notifications"]) {
  return { name: "Loop", selection, condition: ABOVE, notifications };
}

const calculatedFrom = (variableId: number) => ({
  calculatedVariableFormulas: [{ formula: "= a", variables: [{ variableId, alias: "a" }] }],
});

async function calculatedOf(inputId: number): Promise<number> {
  return variable({ calculated: calculatedFrom(inputId) });
}

const refused = async (body: object, path = "/alarms/template", method: "POST" | "PUT" = "POST") => {
  const answer = await hub.call(method, path, { body });
  return [answer.status, JSON.stringify(answer.body)] as const;
};

const pausedOf = (templateId: number, count: number) =>
  until(async () => {
    const found = await hub.get("/alarms", { templateIds: templateId });
    return found.length === count && found.every(({ paused }: Alarm) => paused !== null) ? found : undefined;
  });

describe("a template is refused whose state would be pushed into what it watches", () => {
  test("by id, when it is created and when it is changed", async () => {
    const [id, other] = [await variable(), await variable()];
    const [status, text] = await refused(bodyOf({ variableIds: [id, other] }, { variableId: id }));
    expect([status, text]).toEqual([400, expect.stringContaining(`it watches the variable ${id}`)]);
    expect(text).toContain("notifications.variableId");
    const template = await hub.post("/alarms/template", bodyOf({ variableIds: [other] }, { variableId: id }));
    const changed = await refused(
      bodyOf({ variableIds: [id] }, { variableId: id }),
      `/alarms/template/${template}`,
      "PUT",
    );
    expect(changed[0]).toBe(400);
    // One that rests may be saved, and not waked.
    const rests = { ...bodyOf({ variableIds: [id] }, { variableId: id }), enabled: false };
    await hub.ok("PUT", `/alarms/template/${template}`, { body: rests });
    expect((await refused({ ...rests, enabled: true }, `/alarms/template/${template}`, "PUT"))[0]).toBe(400);
  });

  test("by an identifier at the source", async () => {
    const { variableIds } = await createChain(hub, {
      variables: [{ mappingConfig: "load" }, { mappingConfig: "state" }],
    });
    const [load = 0, state = 0] = variableIds;
    const [status, text] = await refused(bodyOf({ variableIds: [load] }, { mappingConfig: "load" }));
    expect([status, text]).toEqual([400, expect.stringContaining("notifications.mappingConfig")]);
    expect((await refused(bodyOf({ variableIds: [load, state] }, { mappingConfig: "state" })))[0]).toBe(400);
    await hub.post("/alarms/template", bodyOf({ variableIds: [load] }, { mappingConfig: "state" }));
  });

  test("through other alarms and calculated variables, with the way", async () => {
    const [first, second] = [await variable(), await variable()];
    const calculated = await calculatedOf(await calculatedOf(second));
    const template = await templateOf(first, { name: "First", notifications: { variableId: second } });
    await alarmOf(template);
    const [status, text] = await refused(bodyOf({ variableIds: [calculated] }, { variableId: first }));
    expect(status).toBe(400);
    expect(text).toContain(`${first}: the alarm “First” writes into ${second}, an input of `);
    expect(text).toContain(`an input of ${calculated}, which it watches`);
    const unwritable = await refused(bodyOf({ variableIds: [first] }, { variableId: calculated }));
    expect(unwritable).toEqual([400, expect.stringContaining("its points come from its formulas alone")]);
    // A chain that does not come back is a chain.
    await hub.post("/alarms/template", bodyOf({ variableIds: [calculated] }, { variableId: await variable() }));
  });
});

describe("an alarm is paused, writes nothing and says so", () => {
  test("where its selection comes to have its target, until it has not", async () => {
    const receiver = await startReceiver();
    const [id, target] = [await variable({ tags: ["loop"] }), await variable()];
    const notifications = { variableId: target, webhooks: [receiver.url], emails: ["one@example.org"] };
    const template = await hub.post("/alarms/template", bodyOf({ tags: ["loop"] }, notifications));
    await hub.ok("PATCH", `/variables/${target}`, { body: { tags: ["loop"] } });
    await pushed(target, [50]);
    const paused = await pausedOf(template, 2);
    expect(paused).toMatchObject([{ variableId: id }, { variableId: target, state: "NotPresent" }]);
    const reason = expect.stringContaining(`it watches the variable ${target}`);
    expect(paused[1]?.paused).toMatchObject({ cause: "Feedback", reason });
    expect(await hub.get(`/alarms/template/${template}`)).toMatchObject({ alarms: 2, paused: 2 });
    const { events } = await hub.get("/events", { types: "alarm.paused", onlyFailures: true, variableIds: target });
    expect(events).toMatchObject([
      { subject: { kind: "alarm" }, state: "paused", facts: { cause: "Feedback", reason } },
    ]);
    await until(async () => (receiver.received.length === 2 ? true : undefined));
    expect(JSON.parse(receiver.received[0]?.text ?? "")).toMatchObject({ type: "alarm.paused", paused: { reason } });
    await until(async () => ((await sentMails(hub, "Paused: Loop")).length === 2 ? true : undefined));
    await receiver.close();
    // Neither its own readings nor those of the other variable make it write.
    await pushed(id, [60]);
    await pushed(target, [70], "2026-03-02");
    expect(await changes(template)).toEqual([]);
    await hub.ok("PATCH", `/variables/${target}`, { body: { tags: [] } });
    await pushed(id, [61], "2026-03-02");
    expect(await changesOf(template, 1)).toEqual([["Present", "2026-03-01T00:00", 60]]);
    expect(await hub.get(`/alarms/template/${template}`)).toMatchObject({ alarms: 1, paused: 0 });
    const resumed = await hub.get("/events", { types: "alarm.paused", states: "resumed" });
    expect(resumed.events).toMatchObject([{ variableId: id, isFailure: false }]);
  });

  test("where its identifier points to the watched variable since it was renamed", async () => {
    const { variableIds } = await createChain(hub, {
      variables: [{ mappingConfig: "load" }, { mappingConfig: "state" }],
    });
    const [load = 0, state = 0] = variableIds;
    const template = await hub.post("/alarms/template", bodyOf({ variableIds: [load] }, { mappingConfig: "state" }));
    await hub.ok("PATCH", `/variables/${state}`, { body: { mappingConfig: "former" } });
    await hub.ok("PATCH", `/variables/${load}`, { body: { mappingConfig: "state" } });
    await pushed(load, [50, 5]);
    expect(await pausedOf(template, 1)).toMatchObject([{ variableId: load, paused: { cause: "Feedback" } }]);
    expect(await changes(template)).toEqual([]);
    expect((await hub.get("/data", { variableId: load })).length).toBe(2);
  });

  test("where a calculated variable reads its target since its formula changed, and others of the circle", async () => {
    const [id, target, plain] = [await variable(), await variable(), await variable()];
    const calculated = await calculatedOf(id);
    const first = await hub.post("/alarms/template", bodyOf({ variableIds: [calculated] }, { variableId: target }));
    const second = await hub.post("/alarms/template", bodyOf({ variableIds: [target] }, { variableId: plain }));
    await hub.ok("PATCH", `/variables/${calculated}`, { body: { calculated: calculatedFrom(plain) } });
    await pushed(plain, [50]);
    for (const template of [first, second]) {
      const [{ paused }] = await pausedOf(template, 1);
      expect(paused.reason).toContain(`${plain}, an input of ${calculated}`);
    }
    // Once one of both ends in another variable, neither rests.
    await hub.ok("PUT", `/alarms/template/${second}`, { body: bodyOf({ variableIds: [target] }, {}) });
    await until(async () =>
      (await hub.get("/alarms", { templateIds: first }))[0]?.paused === null ? true : undefined,
    );
    expect(await changesOf(first, 1)).toEqual([["Present", `${DAY}T00:00`, 50]]);
  });

  test("after twenty changes in a row at one date, until its template is saved again", async () => {
    const id = await variable();
    const template = await templateOf(id);
    await pushed(id, [12, 5]);
    await changesOf(template, 2);
    // What a receiver of its notices would do that corrects the point each time.
    for (let count = 2; count < 21; count += 1) {
      await pushed(id, [12, count % 2 === 0 ? 15 : 5]);
      await changesOf(template, count + 1);
    }
    const reason = expect.stringContaining(`20 times in a row at ${DAY}T01:00:00.000Z`);
    expect(await pausedOf(template, 1)).toMatchObject([{ paused: { cause: "Repeats", reason } }]);
    await pushed(id, [12, 15]);
    await hub.restart();
    await pushed(id, [12, 15, 3]);
    expect(await changes(template)).toHaveLength(21);
    const body = { name: "Too high", selection: { variableIds: [id] }, condition: ABOVE };
    await hub.ok("PUT", `/alarms/template/${template}`, { body });
    expect((await changesOf(template, 22)).at(-1)).toEqual(["NotPresent", `${DAY}T02:00`, 3]);
    expect(await hub.get(`/alarms/template/${template}`)).toMatchObject({ paused: 0 });
  });
});
