/** What one drop may take of the workers, while others wait. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

it("keeps a worker free for the other drops when a drop may not take all of them", async () => {
  const variable = await rig.variable("quick");
  const marker = join(rig.folder, "hold");
  writeFileSync(marker, "");
  mkdirSync(join(rig.folder, "mappers"));
  writeFileSync(
    join(rig.folder, "mappers", "slow.ts"),
    `import { existsSync } from "node:fs";
import { defineMapper } from "headgate/mapper";
export default defineMapper({ name: "slow", summary: "", async map() {
  while (existsSync(${JSON.stringify(marker)})) await new Promise((resolve) => setTimeout(resolve, 10));
} });`,
  );
  for (const name of ["a", "b", "c", "d"]) rig.put(`slow/${name}.csv`, "");
  const gateway = await rig.open({
    workers: { count: 2, perDrop: 1 },
    drops: [drop("slow"), drop("in")],
    triggers: [trigger("slow", { drops: ["slow"], mapper: "slow" }), trigger("quick", { drops: ["in"] })],
  });
  await until("a slow file is mapped", async () => (await gateway.ledger.runsIn(["mapping"])).length === 1);
  rig.put("in/quick.csv", oneReading(variable, 5));
  await until("the quick one is stored", async () => (await rig.stored(variable))["2026-03-01"] === 5);
  expect((await gateway.ledger.runsIn(["mapping"])).map((run) => run.drop)).toEqual(["slow"]);
  rmSync(marker);
  await until("all is done", () => gateway.isIdle());
});
