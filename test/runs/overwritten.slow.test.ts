/** Another value stands where a run delivered one: overwritten by a later run, or not stored. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConfirmRig, MINUTE, WITHIN } from "./confirm-rig.ts";
import { oneReading, until } from "./gateway-rig.ts";

const OTHER_DATE = "2026-03-09T00:00:00Z";

let scene: ConfirmRig;
afterEach(() => scene.close());

describe.each(["sqlite", "postgres"] as const)("with a ledger in %s", (kind) => {
  beforeEach(async () => {
    scene = await ConfirmRig.start(kind);
    await scene.open();
  });

  /** Accepted, and nobody could be asked yet what became of it. */
  async function accept(path: string, content: string): Promise<void> {
    scene.base.state = "away";
    scene.rig.put(`in/${path}`, content);
    await scene.untilState(path, "accepted");
  }

  /** By somebody else, beside this gateway. */
  async function overwrite(variable: number, value: number): Promise<void> {
    const sent = await fetch(`${scene.rig.hub.url}/push/api/data`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${(await scene.rig.client.token(new AbortController().signal)).value}`,
        "content-type": "application/json",
      },
      body: JSON.stringify([{ variableId: variable, data: [{ date: "2026-03-01T00:00:00Z", value }] }]),
    });
    expect(sent.status).toBe(200);
    await until("it is stored", async () => (await scene.rig.stored(variable))["2026-03-01"] === value);
  }

  it.each([
    ["of another variable", "another"],
    ["of the same variable and another date", "same"],
  ] as const)("a later file %s proves nothing: what differs is discarded", async (_, which) => {
    const [variable, another] = [await scene.rig.variable("v"), await scene.rig.variable("w")];
    await accept("a.csv", oneReading(variable, 1));
    await until("it is stored", async () => (await scene.rig.stored(variable))["2026-03-01"] === 1);
    await overwrite(variable, 7);
    await accept("b.csv", oneReading(which === "same" ? variable : another, 2, OTHER_DATE));
    scene.base.state = "there";
    scene.clock.jump(5 * MINUTE);
    await scene.untilState("b.csv", "confirmed");
    scene.clock.jump(WITHIN);
    await scene.untilState("a.csv", "confirmed", "discarded");
    expect(await scene.runOf("a.csv")).toMatchObject({ state: "discarded", points: { stored: 0, discarded: 1 } });
  });

  it("a run that a later one overwrote is confirmed, also after a long pause of the gateway", async () => {
    const variable = await scene.rig.variable("v");
    await accept("a.csv", oneReading(variable, 1));
    await accept("b.csv", oneReading(variable, 2));
    await until("both are stored", async () => (await scene.rig.stored(variable))["2026-03-01"] === 2);
    scene.clock.jump(30 * WITHIN);
    await scene.open();
    scene.base.state = "there";
    scene.clock.jump(5 * MINUTE);
    for (const path of ["a.csv", "b.csv"]) await scene.untilState(path, "confirmed", "discarded");
    expect(await scene.runOf("a.csv")).toMatchObject({ state: "confirmed", points: { stored: 1 } });
    expect(await scene.runOf("b.csv")).toMatchObject({ state: "confirmed" });
    const events = await scene.gateway.ledger.events((await scene.runOf("a.csv"))?.arrivalId ?? 0);
    expect(events.map(({ what }) => what)).toContain("run.overwritten");
  });

  it("where the dates of the later file are no longer known, the run is neither confirmed nor discarded", async () => {
    const variable = await scene.rig.variable("v");
    await accept("a.csv", oneReading(variable, 1));
    await accept("b.csv", oneReading(variable, 2));
    await until("both are stored", async () => (await scene.rig.stored(variable))["2026-03-01"] === 2);
    const later = (await scene.runOf("b.csv"))?.id ?? "";
    await until("its source is archived", async () => (await scene.runOf("b.csv"))?.finishedAt !== null);
    rmSync(join(scene.rig.folder, "in/archive"), { recursive: true });
    const spool = join(scene.rig.folder, "state/spool");
    for (const folder of ["inputs", "segments", "kept"])
      for (const name of readdirSync(join(spool, folder)))
        if (name.startsWith(later)) rmSync(join(spool, folder, name));
    scene.base.state = "there";
    await scene.open();
    await until("it was asked about", async () => {
      const run = await scene.runOf("a.csv");
      return run !== undefined && scene.gateway.waitReason(run)?.includes("cannot be read back yet") === true;
    });
    scene.clock.jump(WITHIN);
    await scene.untilState("a.csv", "confirmed", "discarded", "unconfirmed");
    const run = await scene.runOf("a.csv");
    expect(run).toMatchObject({ state: "unconfirmed", points: { stored: 0, discarded: 0 } });
    expect(run?.reason?.message).toContain("its dates are no longer known");
  });
});
