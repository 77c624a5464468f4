import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { GatewayRig, oneReading, until } from "../runs/gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

test("a clock far from that of the service needs attention and is in health, by the answer to a push", async () => {
  const clock = { ...systemClock, now: () => systemClock.now().add({ minutes: 10 }) };
  rig.put("in/a.csv", oneReading(await rig.variable("a"), 1));
  const gateway = await rig.open({}, silentLog, clock);
  const ask = async (path: string) => {
    const authorization = `Bearer ${gateway.operationsToken}`;
    return (await (await fetch(`${gateway.operationsUrl}${path}`, { headers: { authorization } })).json()) as never;
  };
  const health = async () => ((await ask("/health/ready")) as { parts: { part: string; reason: string }[] }).parts;
  const words =
    /the clock of this machine is (9|10) min \d+ s ahead of that of the service hub: .* UTC here, .* UTC there/;
  await until("health says it", async () => (await health()).some(({ part }) => part === "clock of service hub"));
  expect((await health()).find(({ part }) => part === "clock of service hub")).toMatchObject({
    ready: true,
    reason: expect.stringMatching(words),
  });
  const { groups } = (await ask("/operations/attention")) as { groups: object[] };
  expect(JSON.stringify(groups)).toMatch(words);
});
