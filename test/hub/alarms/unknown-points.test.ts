/** Points of a group of operations that began before the hub watched them are evaluated, too. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { silentLog as log } from "#core/log.ts";
import { AlarmEvaluation } from "#hub/alarms/evaluation.ts";
import { startAlarms } from "#hub/alarms/service.ts";
import { hubOptions } from "#hub/options.ts";
import type { HubStore } from "#hub/store/store.ts";
import { JumpingClock } from "../../support/jumping-clock.ts";
import { rawOptions, startTestHub, type TestHub } from "../fixture.ts";
import { alarmsOf } from "./scene.ts";

let hub: TestHub;
beforeAll(async () => {
  hub = await startTestHub();
});
afterAll(async () => {
  vi.restoreAllMocks();
  await hub.close();
});

const { variable, templateOf, alarmOf } = alarmsOf(() => hub);

test("a group that ends unwatched has all watched variables looked at again, also meanwhile", async () => {
  await alarmOf(await templateOf(await variable()));
  const note: { told: Parameters<Parameters<typeof startAlarms>[0]["ingestion"]["watch"]>[0] } = { told: null };
  let looks = 0;
  vi.spyOn(AlarmEvaluation.prototype, "sweep").mockImplementation(async () => {
    looks += 1;
    if (looks === 1) note.told?.("unknown");
  });
  const nothing = async () => undefined;
  const alarms = startAlarms({
    options: hubOptions.parse(rawOptions("unused")),
    store: hub.inside().store as HubStore,
    clock: new JumpingClock(),
    log,
    deliveries: { wake: () => undefined },
    mail: { wake: () => undefined } as never,
    ingestion: {
      wake: () => undefined,
      again: () => undefined,
      close: nothing,
      watch: (told) => {
        note.told = told;
      },
    },
  });
  try {
    await expect.poll(() => looks).toBe(2);
    note.told?.("unknown");
    await expect.poll(() => looks).toBe(3);
  } finally {
    await alarms.close();
  }
});
