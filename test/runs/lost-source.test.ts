/** A run whose bytes are neither in the spool nor at its drop ends with a reason, and its lane goes on. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openSqliteLedger } from "#gateway/ledger/sqlite/open.ts";
import { askOperations } from "../support/operations.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeEach(async () => {
  rig = await GatewayRig.start();
});
afterEach(() => rig.close());

const later = new Date("2026-03-05T00:00:00Z");
const twoReadings = (variable: number) => `${oneReading(variable, 1)}${variable},2026-03-02T00:00:00Z,2\n`;
const unreachable = () => ({ services: [{ ...rig.service("hub"), push: "http://127.0.0.1:9/push" }] });
const latestOf = async (ledger: Ledger, path: string) => (await ledger.recentRuns(50)).find((run) => run.path === path);
const batch = { batch: { points: 1 } };
const push = { confirm: { by: "read-back", pollEvery: "50ms" }, retry: { initial: "50ms", max: "200ms" } };

/** Mapped in one batch a reading, and sent in vain; then the gateway ends and its spool is lost. */
async function loseSpool(states = ["mapped", "delivering"]): Promise<void> {
  const before = await rig.open({ ...unreachable(), push: { ...push, ...batch } });
  await until("the run is mapped", async () => states.includes((await latestOf(before.ledger, "a.csv"))?.state ?? ""));
  await before.stop();
  rmSync(join(rig.folder, "state/spool"), { recursive: true });
}

async function inLedger<T>(work: (ledger: Ledger) => Promise<T>): Promise<T> {
  const ledger = await openSqliteLedger({
    path: join(rig.folder, "state/ledger.sqlite"),
    clock: systemClock,
  });
  try {
    return await work(ledger);
  } finally {
    await ledger.close();
  }
}

async function atRest(gateway: Gateway): Promise<void> {
  await until("the gateway is idle", () => gateway.isIdle());
}

describe("a mapped run whose spool was lost", () => {
  it("ends when its file was replaced: the newer version and the rest of the lane are delivered", async () => {
    const variable = await rig.variable("replaced");
    rig.put("in/a.csv", twoReadings(variable));
    await loseSpool();
    rig.put("in/a.csv", oneReading(variable, 7), later);
    rig.put("in/b.csv", oneReading(variable, 8, "2026-03-03T00:00:00Z"), later);
    const gateway = await rig.open({ push });
    await atRest(gateway);
    const [lost] = await gateway.ledger.recentRuns(9, ["quarantined"]);
    expect(lost).toMatchObject({ path: "a.csv", reason: { code: "HG-RUN-014" }, points: { accepted: 0 } });
    expect(lost?.reason?.message).toContain("was replaced at the drop");
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 7, "2026-03-03": 8 });
    expect(await gateway.concerns()).toEqual([expect.stringContaining("a.csv at in is quarantined")]);
  });

  it("ends when its file is gone for good, and says what was accepted before", async () => {
    const variable = await rig.variable("gone");
    rig.put("in/a.csv", twoReadings(variable));
    await loseSpool();
    await inLedger(async (ledger) => {
      const [run] = await ledger.recentRuns(1);
      const [first] = await ledger.batches(run?.id ?? "");
      if (run === undefined || first === undefined) throw new Error("nothing was mapped");
      if (run.state === "mapped") await ledger.beginDelivery(run.id, "to hub");
      if (first.state === "ready") await ledger.advanceBatch(first.operationId, "ready", "sending");
      await ledger.advanceBatch(first.operationId, "sending", "accepted");
    });
    rmSync(join(rig.folder, "in/a.csv"));
    rig.put("in/b.csv", oneReading(variable, 8, "2026-03-03T00:00:00Z"), later);
    const gateway = await rig.open({ push });
    await atRest(gateway);
    const lost = await latestOf(gateway.ledger, "a.csv");
    expect(lost).toMatchObject({ state: "quarantined", points: { mapped: 2, accepted: 1 } });
    expect(lost?.reason).toMatchObject({ code: "HG-RUN-014" });
    expect(lost?.reason?.message).toContain("1 of its 2 batches were accepted before");
    expect(await rig.stored(variable)).toEqual({ "2026-03-03": 8 });
    const health = (await (await askOperations(gateway, "/health/ready")).json()) as {
      parts: { part: string; reason: string }[];
    };
    expect(health.parts).toContainEqual(
      expect.objectContaining({ part: "runs", reason: expect.stringContaining("1 run needs attention: ") }),
    );
  });

  it("waits while its file is only out of sight for a moment, and is delivered when it is back", async () => {
    const variable = await rig.variable("back");
    rig.put("in/a.csv", twoReadings(variable));
    await loseSpool();
    const paused = [drop("in", { every: "10m" })];
    rmSync(join(rig.folder, "in/a.csv"));
    await inLedger((ledger) => ledger.pause({ kind: "drop", name: "in", by: "test", why: "not polled" }));
    const gateway = await rig.open({
      push: { ...push, ...batch },
      drops: paused,
      triggers: [trigger("standard")],
    });
    await until(
      "it says what it lacks",
      async () => (await latestOf(gateway.ledger, "a.csv"))?.reason?.message.includes("no longer at drop") === true,
    );
    rig.put("in/a.csv", twoReadings(variable));
    await until("it is confirmed", async () => (await latestOf(gateway.ledger, "a.csv"))?.state === "confirmed");
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 1, "2026-03-02": 2 });
  });
});
