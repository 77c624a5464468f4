/** The newest file that brought a target and date stands last, also when one of them came in a container. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { zip } from "./archives.ts";
import { drop, GatewayRig, oneReading, until } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const march = (day: number) => new Date(Date.UTC(2026, 2, day));
const DATE = "2026-03-01";

describe("of a ZIP and a plain file that bring the same target and date", () => {
  it.each([
    { newer: "the plain file", zipDay: 10, plainDay: 11, stands: 2 },
    { newer: "the ZIP", zipDay: 11, plainDay: 10, stands: 1 },
  ])("the value of the newer one stands: $newer", async ({ zipDay, plainDay, stands }) => {
    const variable = await rig.variable("both");
    // What comes with it keeps the container from being opened at once.
    const besides = Array.from({ length: 15 }, (_, nth) => ({
      name: `more/${nth}.txt`,
      content: "x".repeat(200_000),
    }));
    rig.put("in/box.zip", zip([{ name: "a.csv", content: oneReading(variable, 1) }, ...besides]), march(zipDay));
    rig.put("in/b.csv", oneReading(variable, 2), march(plainDay));
    const gateway = await rig.open({});
    await until("both are confirmed", async () => (await gateway.ledger.recentRuns(9, ["confirmed"])).length === 2);
    await until("the gateway is idle", () => gateway.isIdle());
    expect(await rig.stored(variable)).toEqual({ [DATE]: stands });
  });
});

describe("of two entries of one ZIP", () => {
  it("the newer one by their own times stands, whatever their names and places", async () => {
    const variable = await rig.variable("inside");
    const entries = [
      { name: "a.csv", content: oneReading(variable, 2), at: march(12) },
      { name: "b.csv", content: oneReading(variable, 1), at: march(11) },
    ];
    rig.put("in/box.zip", zip(entries));
    const gateway = await rig.open({});
    await until("both are confirmed", async () => (await gateway.ledger.recentRuns(9, ["confirmed"])).length === 2);
    await until("the gateway is idle", () => gateway.isIdle());
    expect(await rig.stored(variable)).toEqual({ [DATE]: 2 });
  });

  it("the later one by its name stands at a drop whose `order` is `name`", async () => {
    const variable = await rig.variable("named");
    const entries = [
      { name: "2019-10.csv", content: oneReading(variable, 2), at: march(11) },
      { name: "2019-9.csv", content: oneReading(variable, 1), at: march(12) },
    ];
    rig.put("in/box.zip", zip(entries));
    const gateway = await rig.open({ drops: [drop("in", { order: "name" })] });
    await until("both are confirmed", async () => (await gateway.ledger.recentRuns(9, ["confirmed"])).length === 2);
    await until("the gateway is idle", () => gateway.isIdle());
    expect(await rig.stored(variable)).toEqual({ [DATE]: 2 });
  });
});
