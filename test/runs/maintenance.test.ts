/** What a running gateway makes up for by and by. */
import { readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Clock, systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { startGateway } from "#gateway/gateway.ts";
import { PUT_AWAY_EVERY_MS } from "#gateway/runs/maintenance.ts";
import { until } from "../e2e/wait.ts";
import { GatewayRig, oneReading } from "./gateway-rig.ts";

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

/** A minute of housekeeping is a moment to it. */
const hasty: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === PUT_AWAY_EVERY_MS ? 20 : ms, signal),
};

it("files of a run that could not be put away when it came to rest leave the spool when they can", async () => {
  const variable = await rig.variable("put away");
  rig.configure({ spool: { path: "./state/spool", headroom: "1MB" } });
  const gateway = await startGateway(loadGatewayConfig(rig.config), { log: silentLog, clock: hasty });
  const spool = (name: string) => join(rig.folder, "state", "spool", name);
  try {
    renameSync(spool("kept"), spool("away"));
    rig.put("in/one.csv", oneReading(variable, 1));
    const run = await until("it is at rest, and its reason is that it cannot be put away", async () => {
      const [confirmed] = await gateway.ledger.runsIn(["confirmed"]);
      return confirmed?.reason?.code === "HG-SPOOL-004" ? confirmed : null;
    });
    expect(run.finishedAt).not.toBeNull();
    expect(readdirSync(spool("inputs"))).toEqual([run.id]);
    renameSync(spool("away"), spool("kept"));
    await until("its input has left", () => readdirSync(spool("inputs")).length === 0);
    await until("so has all else", () => readdirSync(spool("segments")).length === 0);
    await until("nothing stands against it", async () => {
      return (await gateway.ledger.run(run.id))?.reason === null;
    });
    expect(readdirSync(spool("kept")).some((name) => name.startsWith(`${run.id}.input`))).toBe(true);
  } finally {
    await gateway.stop();
  }
});

it("a process compresses the large files that the one before kept, without waiting for a minute", async () => {
  const variable = await rig.variable("compressed later");
  rig.configure({});
  const kept = join(rig.folder, "state", "spool", "kept");
  const options = { log: silentLog, clock: { ...systemClock, sleep: noMinute } };
  const first = await startGateway(loadGatewayConfig(rig.config), options);
  const runId = await (async () => {
    try {
      rig.put("in/large.csv", manyReadings(variable));
      return await until("its run is at rest", async () => {
        const run = (await first.ledger.runsIn(["confirmed"])).find(({ path }) => path === "large.csv");
        return run?.finishedAt == null ? null : run.id;
      });
    } finally {
      await first.stop();
    }
  })();
  const isKept = (end: string) => readdirSync(kept).includes(`${runId}${end}`);
  expect(isKept(".input")).toBe(true);
  const next = await startGateway(loadGatewayConfig(rig.config), options);
  try {
    await until("its input is compressed", () => isKept(".input.zst") && !isKept(".input"));
  } finally {
    await next.stop();
  }
});

/** No process of the test lives for a minute. */
function noMinute(ms: number, signal?: AbortSignal): Promise<boolean> {
  return systemClock.sleep(ms === PUT_AWAY_EVERY_MS ? 2 ** 30 : ms, signal);
}

/** Beyond 256 KB. */
function manyReadings(variable: number): string {
  const minute = (at: number) => new Date(Date.UTC(2026, 2, 1) + at * 60_000).toISOString();
  const lines = Array.from({ length: 10_000 }, (_, at) => `${variable},${minute(at)},${at}\n`);
  return `variable_id,date,value\n${lines.join("")}`;
}
