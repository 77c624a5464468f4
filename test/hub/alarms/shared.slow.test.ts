/** Several hubs over one schema of PostgreSQL share alarms: each change is made, recorded and reported by one. */
import { expect, test } from "vitest";
import { systemClock as clock } from "#core/clock.ts";
import { silentLog as log } from "#core/log.ts";
import { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import { startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import type { HubStore } from "#hub/store/store.ts";
import type { AlarmChange } from "#wire/index.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import {
  callsOf,
  createChain,
  type HubCalls,
  rawOptions,
  startReceiver,
  temporaryDirectory,
  usePostgres,
} from "../fixture.ts";
import { settled } from "./scene.ts";

await usePostgres();

const VARIABLES = 5;
const ROUNDS = 6;
const dateOf = (hour: number) => `2026-03-01T0${hour}:00:00.000Z`;

test("two hubs that store points of the same variables by turns fire each change once", async () => {
  const directory = await temporaryDirectory();
  const receiver = await startReceiver();
  const options = hubOptions.parse(rawOptions(directory.path));
  const hubs = [await startHub(options, { log, hashCost }), await startHub(options, { log, hashCost })];
  try {
    const [one, other] = hubs.map((hub) => callsOf(() => hub.url)) as [HubCalls, HubCalls];
    const { variableIds } = await createChain(one, { variables: Array.from({ length: VARIABLES }, () => ({})) });
    const template = { name: "Too high", selection: { variableIds }, condition: { kind: "Above", set: 10 } };
    await one.post("/alarms/template", { ...template, notifications: { webhooks: [receiver.url] } });
    // A template of its own makes the other hub follow at once.
    await other.post("/alarms/template", { ...template, name: "Rests", enabled: false });
    await expect.poll(async () => (await other.get("/alarms")).length).toBe(VARIABLES);
    // Beside the hubs, which judge what they have stored, both judge everything all the time.
    const rivals = hubs.map(
      ({ inside }) =>
        new AlarmEvaluation({ store: inside.store as HubStore, clock, log, mailsAnHour: 60, onChanged() {} }),
    );
    const ending = new AbortController();
    const sweeps = rivals.map(async (rival) => {
      while (!ending.signal.aborted) {
        await rival.sweep();
        await settled(rival);
      }
    });
    const history = async (): Promise<AlarmChange[]> => (await one.get("/alarms/history")).toReversed();
    const store = async (hour: number) => {
      const data = [{ date: dateOf(hour), value: hour % 2 === 0 ? 20 : 1 }];
      await [one, other][hour % 2]?.push(variableIds.map((variableId) => ({ variableId, data })));
    };
    for (let hour = 0; hour < ROUNDS - 1; hour += 1) await store(hour);
    await expect.poll(async () => (await history()).length).toBeGreaterThanOrEqual(VARIABLES * (ROUNDS - 1));
    ending.abort();
    await Promise.all(sweeps);
    // The last changes wake what sends also those that the rivals have made.
    await store(ROUNDS - 1);
    await expect.poll(async () => (await history()).length).toBeGreaterThanOrEqual(VARIABLES * ROUNDS);
    const found = await history();
    const expected = Array.from({ length: ROUNDS }, (_, hour) => [
      hour % 2 === 0 ? "Present" : "NotPresent",
      dateOf(hour),
    ]);
    for (const id of variableIds) {
      const own = found.filter(({ variableId }) => variableId === id);
      expect(own.map(({ state, date }) => [state, date])).toEqual(expected);
    }
    const ids = found.map(({ id }) => id);
    const { events } = await other.get("/events", { types: "alarm.changed" });
    const told: number[] = events.map(({ facts }: { facts: { changeId: number } }) => facts.changeId);
    expect(told.toSorted((a, b) => a - b)).toEqual(ids);
    await expect.poll(() => receiver.received.length).toBeGreaterThanOrEqual(ids.length);
    const sent: number[] = receiver.received.map(({ text }) => JSON.parse(text).change.id);
    expect(sent.toSorted((a, b) => a - b)).toEqual(ids);
  } finally {
    for (const hub of hubs) await hub.close();
    await receiver.close();
    await directory.remove();
  }
});
