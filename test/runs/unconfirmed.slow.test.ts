/** A service that cannot be asked what it stored, for longer than `confirm.within`. */
import { existsSync, readdirSync } from "node:fs";
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
/** `confirm.within` of these gateways. */
const WITHIN = 10 * MINUTE;

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
const stateOf = async (path: string) => (await runOf(path))?.state;

/** Looks for work all the while, since timers do not know of a clock that jumped. */
const untilState = (path: string, state: Run["state"]) =>
  until(`${path} is ${state}`, async () => {
    await gateway.pulse();
    return (await stateOf(path)) === state;
  });

describe.each(["sqlite", "postgres"] as const)("with a ledger in %s", (kind) => {
  const ledgerSection = async () => {
    if (kind === "sqlite") return {};
    database = await openTestDatabase();
    return { ledger: { kind, url: database.url, schema: "headgate", node: "north" } };
  };
  let sections: Readonly<Record<string, unknown>>;
  beforeEach(async () => {
    sections = {
      ...(await ledgerSection()),
      services: [{ ...rig.service("hub"), base: base.url }],
      triggers: [trigger("standard", { guard: "push" })],
    };
  });
  const open = async (change: Readonly<Record<string, unknown>> = {}) => {
    gateway = await rig.open({ ...sections, ...change }, silentLog, clock);
  };

  /** Delivered, and in the middle of `confirm.within` when the service goes away. */
  async function deliverThenAway(path: string, variable: number, value = 1): Promise<void> {
    base.state = "away";
    rig.put(path, oneReading(variable, value));
    await until("it is accepted and was asked about", async () => {
      const reason = await runOf(path.slice(path.indexOf("/") + 1));
      return reason?.state === "accepted" && gateway.waitReason(reason) !== undefined;
    });
  }

  it("a run is unconfirmed once the service was away for confirm.within, and confirmed when it is back", async () => {
    const variable = await rig.variable("v");
    await open();
    await deliverThenAway("in/a.csv", variable);
    clock.jump(WITHIN);
    await untilState("a.csv", "unconfirmed");
    expect(await runOf("a.csv")).toMatchObject({ reason: { code: "HG-RUN-005" }, points: { accepted: 1 } });
    expect(await gateway.summary()).toMatchObject({ files: { unconfirmed: 1 } });
    expect((await gateway.concerns()).join()).toContain("a.csv at in is unconfirmed");
    expect(readdirSync(join(rig.folder, "in"))).not.toContain("a.csv");

    // Its lane goes on.
    rig.put("in/b.csv", oneReading(variable, 2));
    await untilState("b.csv", "accepted");
    base.state = "there";
    clock.jump(5 * MINUTE);
    for (const path of ["a.csv", "b.csv"]) await untilState(path, "confirmed");
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 2 });
    expect(await rig.versions(variable)).toBe(1);
    expect(await gateway.concerns()).toEqual([]);
  });

  it("points not yet stored when the service is back are not discarded: its absence does not count", async () => {
    const variable = await rig.variable("v");
    await open();
    await deliverThenAway("in/a.csv", variable);
    clock.jump(WITHIN);
    await untilState("a.csv", "unconfirmed");
    await rig.removePoints(variable, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    await open();
    base.state = "there";
    const missing = () =>
      until("it is asked about in vain", async () => {
        await gateway.pulse();
        const run = await runOf("a.csv");
        return (run && gateway.waitReason(run))?.includes("cannot be read back yet") === true;
      });
    await missing();
    clock.jump(WITHIN / 2);
    await open();
    await missing();
    expect(await stateOf("a.csv")).toBe("unconfirmed");
    // Asked about for as long as it may be: what is missing then was not stored.
    clock.jump(WITHIN);
    await untilState("a.csv", "discarded");
  });

  it("the file stays at its drop under finishAfter confirmed, and is taken away once it is known", async () => {
    const variable = await rig.variable("v");
    await open({ triggers: [trigger("standard", { guard: "push", finishAfter: "confirmed" })] });
    await deliverThenAway("in/a.csv", variable);
    clock.jump(WITHIN);
    await untilState("a.csv", "unconfirmed");
    expect(await runOf("a.csv")).toMatchObject({ finishedAt: null });
    expect(existsSync(join(rig.folder, "in/a.csv"))).toBe(true);
    base.state = "there";
    clock.jump(5 * MINUTE);
    await until("it is archived", async () => {
      await gateway.pulse();
      return (await runOf("a.csv"))?.finishedAt !== null && (await stateOf("a.csv")) === "confirmed";
    });
    expect(existsSync(join(rig.folder, "in/a.csv"))).toBe(false);
  });
});

it("a service that refuses to be read is not asked again when the run has become unconfirmed", async () => {
  const variable = await rig.variable("v");
  gateway = await rig.open(
    {
      services: [{ ...rig.service("hub"), base: base.url }],
      triggers: [trigger("standard", { guard: "push" })],
    },
    silentLog,
    clock,
  );
  base.state = "refused";
  rig.put("in/a.csv", oneReading(variable, 1));
  await until("it is accepted and was asked about", async () => {
    const run = await runOf("a.csv");
    return run?.state === "accepted" && gateway.waitReason(run) !== undefined;
  });
  const before = base.asked;
  clock.jump(WITHIN);
  await untilState("a.csv", "unconfirmed");
  await until("nothing is left to do", () => gateway.isIdle());
  expect(base.asked - before).toBe(1);
  base.state = "there";
  clock.jump(5 * MINUTE);
  await untilState("a.csv", "confirmed");
});

describe("a service that is back", () => {
  it("is tried by one run at a time while it is away", async () => {
    const variable = await rig.variable("v");
    gateway = await rig.open(
      {
        services: [{ ...rig.service("hub"), base: base.url }],
        triggers: [trigger("standard", { guard: "push" })],
      },
      silentLog,
      clock,
    );
    base.state = "away";
    for (let day = 1; day <= 9; day += 1)
      rig.put(`in/${day}.csv`, oneReading(variable, day, `2026-03-0${day}T00:00:00Z`));
    await until("all are accepted, and the service is known to be away", async () => {
      const accepted = await gateway.ledger.runsIn(["accepted"]);
      return accepted.length === 9 && accepted.every((run) => gateway.waitReason(run) !== undefined);
    });
    clock.jump(WITHIN);
    await until("all are unconfirmed", async () => {
      await gateway.pulse();
      return (await gateway.ledger.runsIn(["unconfirmed"])).length === 9;
    });
    const before = base.asked;
    for (let look = 0; look < 5; look += 1) {
      clock.jump(2 * MINUTE);
      await gateway.pulse();
      await until("the one that tries has failed", async () => !gateway.isBusy);
    }
    expect(base.asked - before).toBeLessThanOrEqual(5);
    base.state = "there";
    await until("all are confirmed", async () => {
      clock.jump(MINUTE);
      await gateway.pulse();
      return (await gateway.ledger.runsIn(["confirmed"])).length === 9;
    });
  });
});
