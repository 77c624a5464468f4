/** A service that cannot be asked what it stored, for longer than `confirm.within`. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfirmRig, MINUTE, WITHIN } from "./confirm-rig.ts";
import { oneReading, trigger, until } from "./gateway-rig.ts";

let scene: ConfirmRig;
afterEach(() => scene.close());

const stateOf = async (path: string) => (await scene.runOf(path))?.state;

describe.each(["sqlite", "postgres"] as const)("with a ledger in %s", (kind) => {
  beforeEach(async () => {
    scene = await ConfirmRig.start(kind);
  });

  /** Delivered, and in the middle of `confirm.within` when the service goes away. */
  async function deliverThenAway(path: string, variable: number, value = 1): Promise<void> {
    scene.base.state = "away";
    scene.rig.put(path, oneReading(variable, value));
    await until("it is accepted and was asked about", async () => {
      const reason = await scene.runOf(path.slice(path.indexOf("/") + 1));
      return reason?.state === "accepted" && scene.gateway.waitReason(reason) !== undefined;
    });
  }

  it("a run is unconfirmed once the service was away for confirm.within, and confirmed when it is back", async () => {
    const variable = await scene.rig.variable("v");
    await scene.open();
    await deliverThenAway("in/a.csv", variable);
    scene.clock.jump(WITHIN);
    await scene.untilState("a.csv", "unconfirmed");
    expect(await scene.runOf("a.csv")).toMatchObject({ reason: { code: "HG-RUN-005" }, points: { accepted: 1 } });
    expect(await scene.gateway.summary()).toMatchObject({ files: { unconfirmed: 1 } });
    expect((await scene.gateway.concerns()).join()).toContain("a.csv at in is unconfirmed");
    expect(readdirSync(join(scene.rig.folder, "in"))).not.toContain("a.csv");

    // Its lane goes on.
    scene.rig.put("in/b.csv", oneReading(variable, 2));
    await scene.untilState("b.csv", "accepted");
    scene.base.state = "there";
    scene.clock.jump(5 * MINUTE);
    for (const path of ["a.csv", "b.csv"]) await scene.untilState(path, "confirmed");
    expect(await scene.rig.stored(variable)).toEqual({ "2026-03-01": 2 });
    expect(await scene.rig.versions(variable)).toBe(1);
    expect(await scene.gateway.concerns()).toEqual([]);
  });

  it("points not yet stored when the service is back are not discarded: its absence does not count", async () => {
    const variable = await scene.rig.variable("v");
    await scene.open();
    await deliverThenAway("in/a.csv", variable);
    scene.clock.jump(WITHIN);
    await scene.untilState("a.csv", "unconfirmed");
    await scene.rig.removePoints(variable, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    await scene.open();
    scene.base.state = "there";
    const missing = () =>
      until("it is asked about in vain", async () => {
        await scene.gateway.pulse();
        const run = await scene.runOf("a.csv");
        return (run && scene.gateway.waitReason(run))?.includes("cannot be read back yet") === true;
      });
    await missing();
    scene.clock.jump(WITHIN / 2);
    await scene.open();
    await missing();
    expect(await stateOf("a.csv")).toBe("unconfirmed");
    // Asked about for as long as it may be: what is missing then was not stored.
    scene.clock.jump(WITHIN);
    await scene.untilState("a.csv", "discarded");
  });

  it("the file stays at its drop under finishAfter confirmed, and is taken away once it is known", async () => {
    const variable = await scene.rig.variable("v");
    await scene.open({ triggers: [trigger("standard", { guard: "push", finishAfter: "confirmed" })] });
    await deliverThenAway("in/a.csv", variable);
    scene.clock.jump(WITHIN);
    await scene.untilState("a.csv", "unconfirmed");
    expect(await scene.runOf("a.csv")).toMatchObject({ finishedAt: null });
    expect(existsSync(join(scene.rig.folder, "in/a.csv"))).toBe(true);
    scene.base.state = "there";
    scene.clock.jump(5 * MINUTE);
    await until("it is archived", async () => {
      await scene.gateway.pulse();
      return (await scene.runOf("a.csv"))?.finishedAt !== null && (await stateOf("a.csv")) === "confirmed";
    });
    expect(existsSync(join(scene.rig.folder, "in/a.csv"))).toBe(false);
  });
});

it("a service that refuses to be read is not asked again when the run has become unconfirmed", async () => {
  scene = await ConfirmRig.start();
  await scene.open();
  const variable = await scene.rig.variable("v");
  scene.base.state = "refused";
  scene.rig.put("in/a.csv", oneReading(variable, 1));
  await until("it is accepted and was asked about", async () => {
    const run = await scene.runOf("a.csv");
    return run?.state === "accepted" && scene.gateway.waitReason(run) !== undefined;
  });
  const before = scene.base.asked;
  scene.clock.jump(WITHIN);
  await scene.untilState("a.csv", "unconfirmed");
  await until("nothing is left to do", () => scene.gateway.isIdle());
  expect(scene.base.asked - before).toBe(1);
  scene.base.state = "there";
  scene.clock.jump(5 * MINUTE);
  await scene.untilState("a.csv", "confirmed");
});

describe("a service that is back", () => {
  it("is tried by one run at a time while it is away", async () => {
    scene = await ConfirmRig.start();
    await scene.open();
    const variable = await scene.rig.variable("v");
    scene.base.state = "away";
    for (let day = 1; day <= 9; day += 1)
      scene.rig.put(`in/${day}.csv`, oneReading(variable, day, `2026-03-0${day}T00:00:00Z`));
    await until("all are accepted, and the service is known to be away", async () => {
      const accepted = await scene.gateway.ledger.runsIn(["accepted"]);
      return accepted.length === 9 && accepted.every((run) => scene.gateway.waitReason(run) !== undefined);
    });
    scene.clock.jump(WITHIN);
    await until("all are unconfirmed", async () => {
      await scene.gateway.pulse();
      return (await scene.gateway.ledger.runsIn(["unconfirmed"])).length === 9;
    });
    const before = scene.base.asked;
    for (let look = 0; look < 5; look += 1) {
      scene.clock.jump(2 * MINUTE);
      await scene.gateway.pulse();
      await until("the one that tries has failed", async () => !scene.gateway.isBusy);
    }
    expect(scene.base.asked - before).toBeLessThanOrEqual(5);
    scene.base.state = "there";
    await until("all are confirmed", async () => {
      scene.clock.jump(MINUTE);
      await scene.gateway.pulse();
      return (await scene.gateway.ledger.runsIn(["confirmed"])).length === 9;
    });
  });
});
