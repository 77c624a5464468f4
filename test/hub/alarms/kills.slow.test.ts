/** A hub that is killed while it evaluates alarms neither loses a change nor reports one twice. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { AlarmChange } from "#wire/index.ts";
import { createChain, type HubCalls, temporaryDirectory, until } from "../fixture.ts";
import { HubProcess } from "../hub-process.ts";
import { sentMails } from "./outbox.ts";

const hubProcess = new HubProcess();
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await directory.remove();
});

const run = (fault?: string): Promise<HubCalls> => hubProcess.run(directory.path, fault);
const dateOf = (hour: number) => `2026-03-01T0${hour}:00:00.000Z`;
const pushed = (hub: HubCalls, variableId: number, values: readonly number[], hour: number) =>
  hub.push([{ variableId, data: values.map((value, index) => ({ date: dateOf(hour + index), value })) }]);

/** A variable whose alarm sends a mail and writes its state into another variable. */
async function prepare() {
  const hub = await run();
  const { variableIds } = await createChain(hub, { variables: [{}, { isVersioned: true }] });
  const [id = 0, stateId = 0] = variableIds;
  await hub.post("/alarms/template", {
    name: "Too high",
    selection: { variableIds: [id] },
    condition: { kind: "Above", set: 10, reset: 8 },
    notifications: { emails: ["one@example.org"], variableId: stateId },
  });
  await until(async () => (await hub.get("/alarms", { variableIds: id }))[0]);
  // Nobody listens there: the subscription makes each push into the other variable an event.
  await hub.post("/events/subscriptions", { name: "Pushes", types: ["push.outcome"], url: "http://127.0.0.1:9/" });
  await hubProcess.end("SIGTERM");
  return { id, stateId };
}

const CHANGES = [
  ["Present", dateOf(1)],
  ["NotPresent", dateOf(2)],
  ["Present", dateOf(3)],
  ["NotPresent", dateOf(4)],
];

test.each(["hub.ingest.after", "hub.alarm.found", "hub.alarm.changed"])(
  "killed at %s, each change is recorded, reported and sent once after the next start",
  async (fault) => {
    const { id, stateId } = await prepare();
    const dying = await run(fault);
    // The hub may be gone before it answers how the push ended.
    await pushed(dying, id, [5, 12, 7, 11], 0).catch(() => null);
    expect(await hubProcess.killed()).toBe("SIGKILL");
    const hub = await run();
    const history = async (): Promise<AlarmChange[]> =>
      (await hub.get("/alarms/history", { variableIds: id })).toReversed();
    await expect.poll(async () => (await history()).length).toBeGreaterThanOrEqual(3);
    // What follows is sent after anything that would be sent again.
    await pushed(hub, id, [2], 4);
    await expect.poll(async () => (await history()).length).toBeGreaterThanOrEqual(4);
    const found = await history();
    expect(found.map(({ state, date }) => [state, date])).toEqual(CHANGES);
    const ids = found.map((change) => change.id);
    const { events } = await hub.get("/events", { types: "alarm.changed" });
    expect(events.map((event: { facts: { changeId: number } }) => event.facts.changeId)).toEqual(ids);
    const mails = () => sentMails({ directory: directory.path }, "Too high");
    await expect.poll(async () => (await mails()).length).toBeGreaterThanOrEqual(4);
    const ends = (await mails()).map(({ headers }) => headers["subject"]?.startsWith("Ended"));
    expect(ends.toSorted()).toEqual([false, false, true, true]);
    const states = () => hub.get("/data", { VariableId: stateId, AllVersions: true });
    await expect.poll(async () => (await states()).length).toBeGreaterThanOrEqual(4);
    expect((await states()).map(({ rawValue }: { rawValue: number }) => rawValue)).toEqual([1, 0, 1, 0]);
    const outcomes = await hub.get("/events", { types: "push.outcome" });
    const subjects: string[] = outcomes.events.map(({ subject }: { subject: { id: string } }) => subject.id);
    const own = subjects.filter((one) => one.startsWith("alarm-"));
    expect(own.toSorted()).toEqual(ids.map((one) => `alarm-${found[0]?.alarmId}-${one}-1`).toSorted());
  },
);
