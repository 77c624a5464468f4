/** Alarms that depend on the time, over the clock of a hub: each comes, is sent once, and goes away. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { type HubOptions, hubOptions } from "#hub/options.ts";
import type { AlarmChange } from "#wire/index.ts";
import { LITTLE_HASHING as hashCost } from "../../support/hash-cost.ts";
import { JumpingClock } from "../../support/jumping-clock.ts";
import { calculate, openScene, pushValues, untilCalculated } from "../calculated/scene.ts";
import {
  callsOf,
  createChain,
  type HubCalls,
  rawOptions,
  startReceiver,
  temporaryDirectory,
  until,
} from "../fixture.ts";
import { rowsOf } from "../walls/store-rows.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

let clock: JumpingClock;
let running: RunningHub;
let store: HubOptions["store"];
let hub: HubCalls;
let receiver: Awaited<ReturnType<typeof startReceiver>>;
let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeEach(async () => {
  clock = new JumpingClock();
  receiver = await startReceiver();
  directory = await temporaryDirectory();
  const options = hubOptions.parse(rawOptions(directory.path, { tokenLifetime: "30d", calculated: { inputRows: 3 } }));
  store = options.store;
  running = await startHub(options, { log, hashCost, clock });
  hub = callsOf(() => running.url);
});
afterEach(async () => {
  await running.close();
  await receiver.close();
  await directory.remove();
});

const nowMs = () => clock.now().epochMilliseconds;
const isoOf = (ms: number) => new Date(ms).toISOString();

/** Not before all deliveries are recorded: one that is still in progress after so long is made again. */
async function jump(ms: number): Promise<void> {
  await until(async () => ((await rowsOf(store, 1))["alarm_dispatch"]?.length ?? 0) === 0 || undefined);
  clock.jump(ms);
}

async function templateOf(selection: object, condition: object): Promise<number> {
  const notifications = { webhooks: [receiver.url] };
  const id = await hub.post("/alarms/template", { name: "Watch", selection, condition, notifications });
  await until(async () => (await hub.get("/alarms", { templateIds: id }))[0]);
  return id;
}

/** Changes of a template, oldest first, when there are so many, and their webhooks are sent. */
async function changesOf(templateIds: number, count: number): Promise<readonly AlarmChange[]> {
  const found = await until(async () => {
    const history: AlarmChange[] = await hub.get("/alarms/history", { templateIds });
    return history.length >= count ? history.toReversed() : undefined;
  });
  await until(async () => (receiver.received.length >= count ? true : undefined));
  return found;
}

/** Everything that was due until then has been judged and sent, when another alarm that is due has. */
async function untilJudged(): Promise<void> {
  const { variableIds } = await createChain(hub);
  const sent = receiver.received.length;
  const id = await templateOf({ variableIds }, { kind: "Above", set: 10 });
  await hub.push([{ variableId: variableIds[0], data: [{ date: isoOf(nowMs()), value: 12 }] }]);
  await until(async () => (receiver.received.length > sent ? true : undefined));
  await hub.call("DELETE", `/alarms/template/${id}`);
}

const sentStates = () =>
  receiver.received
    .map(({ text }) => JSON.parse(text))
    .filter(({ alarm }) => alarm.kind !== "Above")
    .map(({ change }) => change.state);

test("no data", async () => {
  const { variableIds } = await createChain(hub);
  const [variableId = 0] = variableIds;
  const push = (ms: number) => hub.push([{ variableId, data: [{ date: isoOf(ms), value: 1 }] }]);
  const firstMs = nowMs();
  await push(firstMs);
  const template = await templateOf({ variableIds }, { kind: "NoData", minutes: 60 });
  await jump(2 * HOUR_MS);
  expect(await changesOf(template, 1)).toMatchObject([{ state: "Present", date: isoOf(firstMs + HOUR_MS) }]);
  await jump(2 * HOUR_MS);
  await untilJudged();
  expect(sentStates()).toEqual(["Present"]);
  const againMs = nowMs();
  await push(againMs);
  await until(async () => (sentStates().length === 2 ? true : undefined));
  expect((await changesOf(template, 2))[1]).toMatchObject({ state: "NotPresent", date: isoOf(againMs), value: 1 });
  expect(sentStates()).toEqual(["Present", "NotPresent"]);
});

test("a late file", async () => {
  const id = await hub.post("/fileTrigger", { ingestionType: "SendViaHttp", mapping: "acme" });
  const { token } = await hub.get(`/fileTrigger/${id}`);
  const push = () => hub.call("POST", `/push/api/generic/${token}`, { raw: `1;${nowMs()}` });
  const template = await templateOf({ triggerIds: [id] }, { kind: "LateFile", by: "06:00" });
  const sixMs = () => Math.floor(nowMs() / DAY_MS) * DAY_MS + 6 * HOUR_MS;
  const nextMs = () => (sixMs() > nowMs() ? sixMs() : sixMs() + DAY_MS);
  // A file before the time is in time.
  expect(await push()).toMatchObject({ status: 200 });
  await jump(nextMs() - nowMs() + HOUR_MS);
  await untilJudged();
  expect(sentStates()).toEqual([]);
  const dueMs = nextMs();
  await jump(dueMs - nowMs() + HOUR_MS);
  expect(await changesOf(template, 1)).toMatchObject([{ state: "Present", date: isoOf(dueMs) }]);
  await jump(HOUR_MS);
  await untilJudged();
  expect(sentStates()).toEqual(["Present"]);
  expect(await push()).toMatchObject({ status: 200 });
  await jump(2 * 60_000);
  await until(async () => (sentStates().length === 2 ? true : undefined));
  expect(sentStates()).toEqual(["Present", "NotPresent"]);
});

test("a failed calculation", async () => {
  const scene = await openScene(hub);
  const [input = 0] = scene.inputs;
  const id = await calculate(hub, scene, "= a * 2", { a: input });
  const template = await templateOf({ variableIds: [id] }, { kind: "CalculationFailed" });
  const dates = [1, 2, 3, 4, 5].map((hour) => `2026-03-01T0${hour}:00:00Z`);
  // More than one run may read.
  await pushValues(hub, input, Object.fromEntries(dates.map((date) => [date, 1])));
  const ended = (State: string) =>
    until(async () => (await hub.get("/calculations", { VariableIds: [id], State })).length > 0 || undefined);
  await ended("failed");
  await jump(2 * 60_000);
  expect(await changesOf(template, 1)).toMatchObject([{ state: "Present", variableId: id }]);
  await jump(HOUR_MS);
  await untilJudged();
  expect(sentStates()).toEqual(["Present"]);
  await hub.ok("DELETE", "/data", { query: { VariableIds: input } });
  await pushValues(hub, input, { "2026-03-02T01:00:00Z": 1 });
  await untilCalculated(hub);
  await ended("done");
  await jump(2 * 60_000);
  await until(async () => (sentStates().length === 2 ? true : undefined));
  expect(sentStates()).toEqual(["Present", "NotPresent"]);
});
