/** A lane that triggers name holds over several drops, also while one of them cannot be listed. */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { laneMates } from "#gateway/runs.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { headgate } from "./in-process.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const place = (path: string) => join(rig.folder, path);

it("has a correction at one drop wait for the file that it corrects at another, which cannot be listed", async () => {
  const variable = await rig.variable("meter");
  mkdirSync(place("in"), { recursive: true });
  mkdirSync(place("south"), { recursive: true });
  // What comes to the south has not settled when the drop is away.
  const settle = { observations: 2, interval: "8s" };
  const drops = [drop("in"), drop("south", { settle })];
  const triggers = [trigger("standard", { lane: "meters" })];
  const clock = new JumpingClock();
  const gateway = await rig.open({ drops, triggers }, silentLog, clock);
  await until("both were listed", () => gateway.isIdle());
  rig.put("south/base.csv", oneReading(variable, 1), new Date("2026-03-01"));
  const seen = async () => (await gateway.ledger.arrivalsIn("south", ["settling"])).length === 1;
  await until("the base file was seen", seen);
  renameSync(place("south"), place("away"));
  await until("it is awaited", async () => (await gateway.ledger.awaited("south")).length === 1);
  rig.put("in/correction.csv", oneReading(variable, 2), new Date("2026-03-02"));
  await until("the correction waits", async () => {
    const { stdout } = await headgate("runs", "--waiting", "-c", rig.config, "--json");
    return stdout.includes("waits for base.csv at the drop south");
  });
  renameSync(place("away"), place("south"));
  await until("both are delivered", async () => {
    clock.jump(1_000);
    await gateway.pulse();
    return (await gateway.ledger.runsIn(["confirmed"])).length === 2;
  });
  const runs = await gateway.ledger.runsIn(["confirmed"]);
  expect(runs.map(({ path }) => path)).toEqual(["base.csv", "correction.csv"]);
  expect(await rig.stored(variable)).toEqual({ "2026-03-01": 2 });
});

it("is shared by the drops of the triggers that name it, and by no others", async () => {
  rig.configure({
    drops: ["a", "b", "c", "d"].map((name) => drop(name)),
    triggers: [
      trigger("one", { lane: "meters", drops: ["a", "b"] }),
      trigger("two", { lane: "meters", drops: ["c"] }),
      trigger("three", { lane: "others", drops: ["d"] }),
      trigger("four"),
    ],
  });
  const config = loadGatewayConfig(rig.config);
  expect(laneMates(config, "a")).toEqual(["b", "c"]);
  expect(laneMates(config, "d")).toEqual([]);
});
