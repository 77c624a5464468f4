/** A spool that is smaller than what waits for it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { openStorage, startGateway } from "#gateway/gateway.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { ledgerOptions } from "#gateway/ledger/options.ts";
import type { Spool } from "#gateway/spool/spool.ts";
import { until } from "../e2e/wait.ts";
import { GatewayRig, oneReading } from "../runs/gateway-rig.ts";

const FILES = 6;

let rig: GatewayRig;
beforeAll(async () => {
  rig = await GatewayRig.start();
});
afterAll(() => rig.close());

/** Two seconds of waiting are most of an hour by it. */
const slow = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() / 1_000 };

it.each([
  ["was put away", (spool: Spool) => spool.retire(["done"])],
  ["was put away with others", (spool: Spool) => spool.retire(["done", "other"])],
  ["was given up", (spool: Spool) => spool.discard("done", "input")],
])("tells who waits for room when what filled it %s", async (_what, leave) => {
  const ledger = await openLedger(ledgerOptions.parse({ kind: "sqlite", path: join(rig.folder, "own.sqlite") }), {
    clock: slow,
  });
  const told = Promise.withResolvers<string>();
  rig.configure({ spool: { path: "./own", budget: "100B", headroom: "1MB" } });
  const means = { ledger, clock: slow, log: silentLog, metrics: { registry: new Registry() } };
  const { spool, quota } = await openStorage(loadGatewayConfig(rig.config).spool, {
    ...means,
    onRun: told.resolve,
  });
  try {
    writeFileSync(spool.inputPath("done"), Buffer.alloc(200));
    expect(await quota.reserve("waiting", 10, false)).toMatchObject({ code: "HG-SPOOL-005" });
    await leave(spool);
    expect(await told.promise).toBe("waiting");
  } finally {
    await spool.close();
    await ledger.close();
  }
});

it("takes the next file as soon as one has left the spool, and not only when a time is over", async () => {
  const variable = await rig.variable("drained");
  // Room for one of them.
  const spool = { path: "./state/spool", budget: "100B", headroom: "1MB" };
  rig.configure({ spool, push: { confirm: { by: "none" } } });
  for (let day = 1; day <= FILES; day += 1)
    rig.put(`in/${day}.csv`, oneReading(variable, day, `2026-03-0${day}T00:00:00Z`));
  const gateway = await startGateway(loadGatewayConfig(rig.config), { log: silentLog, clock: slow });
  try {
    await until("all are stored", async () => Object.keys(await rig.stored(variable)).length === FILES, 20_000);
    expect(await gateway.ledger.runsIn(["claimed"])).toEqual([]);
  } finally {
    await gateway.stop();
  }
});
