/**
 * Held runs take room in the spool, which nothing but a person or the structure gives back: it is said where
 * it matters.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { until } from "../e2e/wait.ts";
import { GatewayRig, oneReading, trigger } from "../runs/gateway-rig.ts";
import { headgate } from "../runs/in-process.ts";
import { askOperations } from "../support/operations.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

it("a spool that held runs fill is told with their number and bytes, and has room again when they go on", async () => {
  const variable = await rig.variable("known");
  const spool = { path: "./state/spool", budget: "100B", headroom: "1MB" };
  const gateway = await rig.open({
    spool,
    triggers: [trigger("standard", { guard: "hold" })],
    push: { confirm: { by: "read-back", pollEvery: "50ms" }, guard: { recheck: "1h", recheckMax: "1h" } },
  });
  rig.put("in/unknown.csv", oneReading(999_999, 1));
  const held = await until("it is held", async () => (await gateway.ledger.runsIn(["held"]))[0]);
  rig.put("in/known.csv", oneReading(variable, 2));
  const words = /; 1 held run takes [1-9]\d* bytes of it: `headgate quarantine` says what each waits for/;
  await until("the next one says why it waits", async () =>
    words.test((await gateway.ledger.runsIn(["claimed"]))[0]?.reason?.message ?? ""),
  );
  const ready = await askOperations(gateway, "/health/ready");
  expect(ready.status).toBe(503);
  expect(await ready.text()).toContain("1 held run takes");
  const metrics = await (await askOperations(gateway, "/metrics")).text();
  expect(Number(/^headgate_spool_held_bytes (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(100);
  const checked = await headgate("check", "-c", rig.config, "--json");
  expect(JSON.parse(checked.stdout)).toContainEqual({
    ...{ part: "spool", level: "warning", about: "budget" },
    what: expect.stringMatching(words),
  });

  const given = await headgate("cancel", held.id, "--yes", "-c", rig.config);
  expect(given.code, given.stderr).toBe(0);
  await until("the other is delivered", async () => (await rig.stored(variable))["2026-03-01"] === 2);
  await until("nothing of it is under way", () => gateway.isIdle());
  expect(JSON.parse((await headgate("check", "-c", rig.config, "--json")).stdout)).toContainEqual({
    ...{ part: "spool", level: "ok", about: "budget" },
    what: expect.stringMatching(/^\d+ % of its budget is in use$/),
  });
});
