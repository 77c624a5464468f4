/** Another value stands where a run delivered one: overwritten by a later run, or not stored. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Gateway } from "../../src/gateway.ts";
import type { Run } from "../../src/model.ts";
import { silentLog } from "../../src/support/log.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";
import { ReadableBase } from "./readable-base.ts";

const MINUTE = 60_000;
const WITHIN = 10 * MINUTE;
const OTHER_DATE = "2026-03-09T00:00:00Z";

let rig: GatewayRig;
let base: ReadableBase;
let clock: JumpingClock;
let database: TestDatabase | null;
let gateway: Gateway;
beforeEach(async () => {
  rig = await GatewayRig.start();
  base = await ReadableBase.start(rig.hub.url);
  clock = new JumpingClock();
  database = null;
});
afterEach(async () => {
  await rig.close();
  await base.close();
  await database?.drop();
});

const runOf = async (path: string): Promise<Run | undefined> =>
  (await gateway.ledger.recentRuns(99)).find((run) => run.path === path);

const untilState = (path: string, states: readonly Run["state"][]) =>
  until(`${path} is ${states.join(" or ")}`, async () => {
    await gateway.pulse();
    const run = await runOf(path);
    return run !== undefined && states.includes(run.state);
  });

describe.each(["sqlite", "postgres"] as const)("with a ledger in %s", (kind) => {
  let sections: Readonly<Record<string, unknown>>;
  beforeEach(async () => {
    if (kind === "postgres") database = await openTestDatabase();
    const url = database?.url;
    sections = {
      ...(url === undefined ? {} : { ledger: { kind, url, schema: "headgate", node: "north" } }),
      services: [{ ...rig.service("hub"), base: base.url }],
      triggers: [trigger("standard", { guard: "push" })],
    };
    await open();
  });
  const open = async () => {
    gateway = await rig.open(sections, silentLog, clock);
  };

  /** Accepted, and nobody could be asked yet what became of it. */
  async function accept(path: string, content: string): Promise<void> {
    base.state = "away";
    rig.put(`in/${path}`, content);
    await untilState(path, ["accepted"]);
  }

  /** By somebody else, beside this gateway. */
  async function overwrite(variable: number, value: number): Promise<void> {
    const sent = await fetch(`${rig.hub.url}/push/api/data`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${(await rig.client.token(new AbortController().signal)).value}`,
        "content-type": "application/json",
      },
      body: JSON.stringify([{ variableId: variable, data: [{ date: "2026-03-01T00:00:00Z", value }] }]),
    });
    expect(sent.status).toBe(200);
    await until("it is stored", async () => (await rig.stored(variable))["2026-03-01"] === value);
  }

  it.each([
    ["of another variable", "another"],
    ["of the same variable and another date", "same"],
  ] as const)("a later file %s proves nothing: what differs is discarded", async (_, which) => {
    const [variable, another] = [await rig.variable("v"), await rig.variable("w")];
    await accept("a.csv", oneReading(variable, 1));
    await until("it is stored", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    await overwrite(variable, 7);
    await accept("b.csv", oneReading(which === "same" ? variable : another, 2, OTHER_DATE));
    base.state = "there";
    clock.jump(5 * MINUTE);
    await untilState("b.csv", ["confirmed"]);
    clock.jump(WITHIN);
    await untilState("a.csv", ["confirmed", "discarded"]);
    expect(await runOf("a.csv")).toMatchObject({ state: "discarded", points: { stored: 0, discarded: 1 } });
  });

  it("a run that a later one overwrote is confirmed, also after a long pause of the gateway", async () => {
    const variable = await rig.variable("v");
    await accept("a.csv", oneReading(variable, 1));
    await accept("b.csv", oneReading(variable, 2));
    await until("both are stored", async () => (await rig.stored(variable))["2026-03-01"] === 2);
    clock.jump(30 * WITHIN);
    await open();
    base.state = "there";
    clock.jump(5 * MINUTE);
    for (const path of ["a.csv", "b.csv"]) await untilState(path, ["confirmed", "discarded"]);
    expect(await runOf("a.csv")).toMatchObject({ state: "confirmed", points: { stored: 1 } });
    expect(await runOf("b.csv")).toMatchObject({ state: "confirmed" });
    const events = await gateway.ledger.events((await runOf("a.csv"))?.arrivalId ?? 0);
    expect(events.map(({ what }) => what)).toContain("run.overwritten");
  });

  it("where the dates of the later file are no longer known, the run is neither confirmed nor discarded", async () => {
    const variable = await rig.variable("v");
    await accept("a.csv", oneReading(variable, 1));
    await accept("b.csv", oneReading(variable, 2));
    await until("both are stored", async () => (await rig.stored(variable))["2026-03-01"] === 2);
    const later = (await runOf("b.csv"))?.id ?? "";
    await until("its source is archived", async () => (await runOf("b.csv"))?.finishedAt !== null);
    rmSync(join(rig.folder, "in/archive"), { recursive: true });
    const spool = join(rig.folder, "state/spool");
    for (const folder of ["inputs", "segments", "kept"])
      for (const name of readdirSync(join(spool, folder)))
        if (name.startsWith(later)) rmSync(join(spool, folder, name));
    base.state = "there";
    await open();
    await until("it was asked about", async () => {
      const run = await runOf("a.csv");
      return run !== undefined && gateway.waitReason(run)?.includes("cannot be read back yet") === true;
    });
    clock.jump(WITHIN);
    await untilState("a.csv", ["confirmed", "discarded", "unconfirmed"]);
    const run = await runOf("a.csv");
    expect(run).toMatchObject({ state: "unconfirmed", points: { stored: 0, discarded: 0 } });
    expect(run?.reason?.message).toContain("its dates are no longer known");
  });
});
