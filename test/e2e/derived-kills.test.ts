/**
 * Calculations, alarms and events of a hub that is killed at random: each value, change and event is there once, in
 * the feed and at a receiver. `HEADGATE_ROUNDS` asks for more kills.
 */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type HubCalls, startReceiver, temporaryDirectory } from "../hub/fixture.ts";
import { HubProcess } from "../hub/hub-process.ts";
import { idle } from "./calculation-chains.ts";
import { CALCULATION_POINTS, liveAndDie } from "./calculation-lives.ts";
import { chanceOf, roundsOf, seedOf } from "./chance.ts";
import { DerivedScene, deliveredIds, feedOf } from "./derived-scene.ts";
import { PATIENTLY } from "./wait.ts";

vi.setConfig(PATIENTLY);

const rounds = roundsOf(3);
const STEPS_OF_ROUND = 12;
const POINTS = [...CALCULATION_POINTS, "hub.alarm.found", "hub.alarm.changed"];
const MINUTE_MS = 60_000;

const hubProcess = new HubProcess("hub", { webhook: { backoff: "20ms", backoffMax: "100ms", hosts: ["127.0.0.1"] } });
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
beforeEach(async () => {
  directory = await temporaryDirectory();
  receiver = await startReceiver();
});
afterEach(async () => {
  await hubProcess.end("SIGKILL");
  await receiver.close();
  await directory.remove();
});

const TYPES = ["alarm.changed", "calculation.recalculated", "calculation.failed", "structure.changed"];

test(`values, changes of alarms and events are there once after ${rounds} kills`, {
  timeout: Math.max(PATIENTLY.testTimeout, rounds * MINUTE_MS),
}, async () => {
  const seed = seedOf("derived");
  const chance = chanceOf(seed);
  const lives: string[] = [];
  const scene = new DerivedScene();
  try {
    const first = await hubProcess.run(directory.path);
    await first.post("/events/subscriptions", { name: "All", types: TYPES, url: receiver.url, batch: 20 });
    await scene.create(first);
    await hubProcess.end("SIGKILL");
    const unanswered = new Map<string, object[]>();
    const pushAll = async (hub: HubCalls) => {
      for (const [operationId, body] of unanswered) {
        const headers = { "idempotency-key": operationId };
        await hub.ok("POST", "/push/api/data", { body, query: { operationId }, headers });
        unanswered.delete(operationId);
      }
    };
    for (let round = 0; round < rounds; round += 1) {
      const from = round * STEPS_OF_ROUND;
      unanswered.set(`round ${round}`, scene.elements(from, from + STEPS_OF_ROUND));
      const life = { directory: directory.path, chance, lifeMaxMs: 2_000, points: POINTS, meanwhile: pushAll };
      lives.push(await liveAndDie(hubProcess, life));
    }
    const hub = await hubProcess.run(directory.path);
    await pushAll(hub);
    await idle(hub);
    const changeIds = await scene.expectAll(hub, rounds * STEPS_OF_ROUND);
    await expectEvents(hub, changeIds);
  } catch (thrown) {
    process.stderr.write(`${lives.join("\n")}\nHEADGATE_SEED=${seed} HEADGATE_ROUNDS=${rounds}\n`);
    throw thrown;
  }
});

/** One for each change and each calculation, numbered without a gap, and all of them at the receiver. */
async function expectEvents(hub: HubCalls, changeIds: readonly number[]): Promise<void> {
  const changed = async () => (await feedOf(hub)).filter(({ type }) => type === "alarm.changed").length;
  await expect.poll(changed).toBeGreaterThanOrEqual(changeIds.length);
  const events = await feedOf(hub);
  expect(events.map(({ id }) => id)).toEqual(events.map((_, at) => at + 1));
  const sorted = (ids: readonly unknown[]) => ids.map(Number).toSorted((one, other) => one - other);
  const factsOf = (prefix: string, fact: string) =>
    sorted(events.flatMap(({ type, facts }) => (type.startsWith(prefix) ? [facts[fact]] : [])));
  expect(factsOf("alarm.", "changeId")).toEqual(sorted(changeIds));
  const calculations: { id: number; state: string }[] = await hub.get("/calculations", {
    "Paging.ItemsPerPage": 100_000,
  });
  expect(calculations.filter(({ state }) => state !== "done")).toEqual([]);
  expect(factsOf("calculation.", "calculationId")).toEqual(sorted(calculations.map(({ id }) => id)));
  await expect.poll(() => hub.get("/events/subscriptions/1")).toMatchObject({ behind: 0, state: "Active" });
  expect(deliveredIds(receiver.received)).toEqual(
    events.filter(({ type }) => TYPES.includes(type)).map(({ id }) => id),
  );
}
