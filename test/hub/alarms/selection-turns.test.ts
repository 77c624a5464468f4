/** The selections of many templates of one account leave the others their turn. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { WatchedAlarms } from "#hub/alarms/watched.ts";
import type { HubStore } from "#hub/store/store.ts";
import { startTestHub, type TestHub } from "../fixture.ts";
import { alarmsOf } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(() => hub.close());

const { variable, templateOf, alarmOf } = alarmsOf(() => hub);
const TEMPLATES = 5;

test("an account with many templates selects a slice a turn, and another one is served in the first", async () => {
  const id = await variable();
  for (let nth = 0; nth < TEMPLATES; nth += 1) await alarmOf(await templateOf(id));
  const second = { as: "second", account: 2 };
  const body = { name: "B", selection: { customFilter: "Name = 'none'" }, condition: { kind: "Above", set: 1 } };
  await hub.post("/alarms/template", body, second);
  const store = hub.inside().store as HubStore;
  const selected: string[] = [];
  const evaluation = new Proxy(store.alarms.evaluation, {
    get: (target, name) => {
      const own = Reflect.get(target, name);
      if (name !== "templates") return own;
      return async (accountId: number) => {
        selected.push(`${accountId}`);
        return target.templates(accountId);
      };
    },
  });
  const alarms = { ...store.alarms, evaluation };
  const watched = new WatchedAlarms({ ...store, alarms } as HubStore, log, undefined, 0);
  let turns = 0;
  do {
    turns += 1;
    await watched.refresh(Date.now(), false);
    if (turns === 1) expect([...new Set(selected)]).toEqual(["1", "2"]);
  } while (watched.isPartial);
  expect([turns, watched.size]).toEqual([TEMPLATES, TEMPLATES]);
  selected.length = 0;
  await watched.refresh(Date.now(), false);
  expect(selected, "nothing has changed since").toEqual([]);

  await alarmOf(await templateOf(id));
  await watched.refresh(Date.now(), false);
  expect(watched.isPartial).toBe(true);
  watched.end();
  expect(watched.isPartial, "the hub ends").toBe(false);
});
