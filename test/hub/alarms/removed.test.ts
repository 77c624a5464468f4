/** Alarms whose newest judged point was removed (`DELETE /data`). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog as log } from "#core/log.ts";
import { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import type { HubStore } from "#hub/store/store.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { alarmsOf, DAY, settled } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const { variable, pushed, templateOf, alarmOf, changes, changesOf } = alarmsOf(() => hub);
const at = (time: string) => `${DAY}T${time}:00Z`;
const removeFrom = (id: number, time: string) =>
  hub.ok("DELETE", "/data", { query: { VariableIds: id, FromDateUtc: at(time) } });
const push = (id: number, points: Readonly<Record<string, number>>) =>
  hub.push([{ variableId: id, data: Object.entries(points).map(([time, value]) => ({ date: at(time), value })) }]);
async function sweep(): Promise<void> {
  const evaluation = new AlarmEvaluation({
    ...{ store: hub.inside().store as HubStore, clock: systemClock, log },
    mailsAnHour: 60,
    onChanged() {},
  });
  await evaluation.sweep();
  await settled(evaluation);
}

test("every point that is then stored before its date counts, and the state is by the newest", async () => {
  const id = await variable();
  const template = await templateOf(id);
  await alarmOf(template);
  await pushed(id, [5, 2, 12]);
  await changesOf(template, 1);
  await removeFrom(id, "02:00");
  await push(id, { "01:10": 3, "01:20": 40, "01:30": 4 });
  expect(await changesOf(template, 4)).toEqual([
    ["Present", "2026-03-01T02:00", 12],
    ["NotPresent", "2026-03-01T01:00", 2],
    ["Present", "2026-03-01T01:20", 40],
    ["NotPresent", "2026-03-01T01:30", 4],
  ]);
  await push(id, { "01:40": 50 });
  expect((await changesOf(template, 5)).at(-1)).toEqual(["Present", "2026-03-01T01:40", 50]);
});

test("the first point of a variable again, when no point is left", async () => {
  const id = await variable();
  const template = await templateOf(id);
  await alarmOf(template);
  await push(id, { "02:00": 12 });
  await changesOf(template, 1);
  await removeFrom(id, "00:00");
  await push(id, { "01:00": 3 });
  expect((await changesOf(template, 2)).at(-1)).toEqual(["NotPresent", "2026-03-01T01:00", 3]);
});

test("a rate of change is judged again by the two points before it", async () => {
  const id = await variable();
  const template = await templateOf(id, { condition: { kind: "ChangeRate", set: 100, per: "Hour" } });
  await alarmOf(template);
  await pushed(id, [1, 2, 500]);
  await changesOf(template, 1);
  await removeFrom(id, "02:00");
  await sweep();
  expect(await changes(template)).toEqual([
    ["Present", "2026-03-01T02:00", 500],
    ["NotPresent", "2026-03-01T01:00", 2],
  ]);
  await sweep();
  expect(await changes(template)).toHaveLength(2);
});

test("a flat line lasts without its newest point", async () => {
  const id = await variable();
  const template = await templateOf(id, { condition: { kind: "FlatLine", minutes: 120 } });
  await alarmOf(template);
  await pushed(id, [1, 7, 7, 7, 7]);
  await changesOf(template, 1);
  await removeFrom(id, "04:00");
  await push(id, { "03:30": 7 });
  await push(id, { "03:40": 8 });
  expect(await changesOf(template, 2)).toEqual([
    ["Present", "2026-03-01T03:00", 7],
    ["NotPresent", "2026-03-01T03:40", 8],
  ]);
});
