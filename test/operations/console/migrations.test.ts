/** Migrations over the operations API, read beside the command that runs them. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { loadGatewayConfig } from "../../../src/config/gateway-config.ts";
import { type Gateway, startGateway } from "../../../src/gateway.ts";
import { openLedger } from "../../../src/ledger/open.ts";
import { migrationsOf } from "../../../src/migration/overview.ts";
import { migrationLedger } from "../../../src/migration/request.ts";
import { migrationEndpoints } from "../../../src/operations/api/migrations.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { silentLog } from "../../../src/support/log.ts";
import { captureShown } from "../../cli/shown.ts";
import { PATIENTLY } from "../../e2e/wait.ts";
import { headgateHere, migrateHere } from "../../migration/migrate-command.ts";
import { GatewayRig, oneReading, until } from "../../runs/gateway-rig.ts";
import { call } from "./calls.ts";

vi.setConfig(PATIENTLY);

let rig: GatewayRig;
let gateway: Gateway;
const shown = captureShown();
const migrations = () => call(gateway, migrationEndpoints.migrations);

beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({});
  gateway = await startGateway(loadGatewayConfig(rig.config), { log: silentLog, migrations: migrationsOf });
});
afterEach(async () => {
  await gateway.stop();
  await rig.close();
});

it("shows a migration with its progress and with findings by cause, while it runs, ended and undone", async () => {
  expect(await migrations()).toEqual([]);
  const variable = await rig.variable("M-1");
  rig.put("history/good.csv", oneReading(variable, 1));
  for (const name of ["a", "b"])
    rig.put(`history/${name}.csv`, `variable_id,date,value\n${variable},2025-01-01T00:00:00Z,${name}1\n`);
  await migrateHere(rig, shown, "--json");
  await until("the migration is shown", async () => (await migrations()).length === 1);

  const [ended] = await migrations();
  expect(ended).toMatchObject({ state: "stopped", mapper: "standard", fault: null, hasReport: true, undone: [] });
  expect(ended?.patterns[0]).toMatch(/history\/\*\*\/\*\.csv$/);
  expect(ended?.files).toEqual({ delivered: 1, quarantined: 2 });
  expect(ended?.points).toMatchObject({ mapped: 1, accepted: 1 });
  expect(ended?.recent).toMatchObject({ files: 3, points: 1 });
  expect(ended?.findings).toEqual([
    expect.objectContaining({ state: "quarantined", code: "HG-MAP-005", files: 2, example: expect.any(String) }),
  ]);
  expect(ended?.findings[0]?.what).toContain("…");

  // As the command holds it while it runs.
  const owner = await openLedger(migrationLedger(ended?.folder ?? ""), { clock: systemClock });
  await until("it is shown as running", async () => (await migrations())[0]?.state === "running");
  await owner.close();
  await until("it is shown as stopped", async () => (await migrations())[0]?.state === "stopped");

  await headgateHere(rig, shown, "migrate", "undo", ended?.id ?? "", "--yes", "--by", "ann");
  await until("it is shown as undone", async () => (await migrations())[0]?.state === "undone");
  const [undone] = await migrations();
  expect(undone).toMatchObject({ files: {}, undone: [{ by: "ann", points: 1, endedAt: expect.any(String) }] });
});
