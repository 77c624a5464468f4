/** How long the changes of alarms are kept (`keep.alarmHistory`). */
import { afterEach, expect, test } from "vitest";
import type { HubStore } from "#hub/store/store.ts";
import { startTestHub, type TestHub, until } from "../fixture.ts";
import { alarmsOf } from "./scene.ts";

let hub: TestHub;
afterEach(() => hub.close());
const { variable, pushed, templateOf, alarmOf, changes, changesOf } = alarmsOf(() => hub);

test("old changes go when the hub starts, the newest and the state of an alarm stay", async () => {
  hub = await startTestHub({ keep: { alarmHistory: "1ms" } });
  const [id, other] = [await variable(), await variable()];
  const [template, rarely] = [await templateOf(id), await templateOf(other)];
  await Promise.all([alarmOf(template), alarmOf(rarely)]);
  await pushed(id, [12, 5, 13]);
  await pushed(other, [14]);
  await Promise.all([changesOf(template, 3), changesOf(rarely, 1)]);
  await hub.restart();
  await until(async () => ((await changes(template)).length === 1 ? true : undefined));
  expect(await changes(template)).toEqual([["Present", "2026-03-01T02:00", 13]]);
  expect(await changes(rarely)).toEqual([["Present", "2026-03-01T00:00", 14]]);
  expect(await alarmOf(template)).toMatchObject({ state: "Present", since: "2026-03-01T02:00:00.000Z", value: 13 });
  await pushed(id, [5], "2026-03-02");
  expect((await changesOf(template, 2)).map(([state]) => state)).toEqual(["Present", "NotPresent"]);
});

test("changes that were recorded since then stay, and more than one step removes the others", async () => {
  hub = await startTestHub();
  const id = await variable();
  const template = await templateOf(id);
  await alarmOf(template);
  const data = Array.from({ length: 2_200 }, (_, minute) => ({
    date: new Date(Date.UTC(2026, 2, 1, 0, minute)).toISOString(),
    value: minute % 2 === 0 ? 12 : 5,
  }));
  await hub.push([{ variableId: id, data }]);
  const { alarms } = (hub.inside().store as HubStore).alarms;
  const count = async () => (await alarms.changes(1, { templateIds: [template] }, { offset: 0, limit: 1 })).total;
  await until(async () => ((await count()) === 2_200 ? true : undefined));
  await alarms.purge(0);
  expect(await count()).toBe(2_200);
  await alarms.purge(Number.MAX_SAFE_INTEGER);
  expect(await count()).toBe(1);
});
