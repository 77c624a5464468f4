/** Alarms are evaluated in slices, by turns of the accounts. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock as clock } from "#core/clock.ts";
import { silentLog as log } from "#core/log.ts";
import { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import { change } from "#hub/store/database.ts";
import { openStore } from "#hub/store/open.ts";
import type { HubStore } from "#hub/store/store.ts";
import { createChain, startTestHub, type TestHub } from "../fixture.ts";
import { settled } from "./scene.ts";

const VARIABLES = 5;
const POINTS = 1_000;
const SECOND = { as: "second", account: 2 };
const data = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    date: new Date(Date.UTC(2026, 2, 1, 0, at)).toISOString(),
    value: at % 2 === 0 ? 50 : 1,
  }));

let hub: TestHub;
let store: HubStore;
let ofSecond: readonly number[];
/** Points of many variables of the first account, and of one of the second, with alarms that no hub has evaluated. */
beforeAll(async () => {
  hub = await startTestHub();
  const selection = { customFilter: "Name <> ''" };
  const template = { name: "High", selection, condition: { kind: "Above", set: 10, reset: 8 }, enabled: false };
  for (const by of [{}, SECOND]) await hub.post("/alarms/template", template, by);
  const { variableIds } = await createChain(hub, { variables: Array.from({ length: VARIABLES }, () => ({})) });
  ({ variableIds: ofSecond } = await createChain(hub, { more: SECOND }));
  await hub.push(variableIds.map((variableId) => ({ variableId, data: data(POINTS) })));
  await hub.push(
    ofSecond.map((variableId) => ({ variableId, data: data(1) })),
    SECOND,
  );
  await hub.stop();
  store = await openStore(hub.options.store, log);
  await store.people.change(function* () {
    yield* change("UPDATE alarm_template SET enabled = TRUE");
  });
});
afterAll(async () => {
  await store.close();
  await hub.close();
});

test("an alarm of an account waits for one slice of those of another, whatever changes wait there", async () => {
  const read: number[] = [];
  const changed: number[] = [];
  const points: HubStore["points"] = Object.assign(Object.create(store.points), {
    heads: (...[asks, page]: Parameters<HubStore["points"]["heads"]>) => {
      if (page.order === "ASC") read.push(asks[0]?.variable.accountId ?? 0);
      return store.points.heads(asks, page);
    },
  });
  const evaluation: HubStore["alarms"]["evaluation"] = {
    ...store.alarms.evaluation,
    advance: (steps, mailsAnHour) => {
      for (const { alarm, changes } of steps) changed.push(...changes.map(() => alarm.accountId));
      return store.alarms.evaluation.advance(steps, mailsAnHour);
    },
  };
  const alarms = new AlarmEvaluation({
    ...{ clock, log, mailsAnHour: 60, onChanged() {} },
    store: { ...store, points, alarms: { ...store.alarms, evaluation } },
  });
  await alarms.refresh();
  await alarms.round();
  expect(read).toEqual([1, 2]);
  expect(changed.filter((id) => id === 2)).toHaveLength(1);
  expect(changed.length, "one slice of the other").toBeLessThan(POINTS);
  expect(alarms.isBehind).toBe(true);

  // Points of it that come later.
  const of = (value: number) => Float64Array.of(value);
  const at = of(Date.UTC(2026, 2, 1));
  alarms.take([{ ids: [...ofSecond], fromMs: at, toMs: at, min: of(1), max: of(1) }]);
  await alarms.round();
  expect(read).toEqual([1, 2, 1, 2]);
  await settled(alarms);
  expect(changed.filter((id) => id === 1)).toHaveLength(VARIABLES * POINTS);
});
