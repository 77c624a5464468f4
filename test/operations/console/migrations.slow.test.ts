/** Migrations over the operations API, read beside the command that runs them. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { controlMigrations } from "#app/cli/migrate/lazy-control.ts";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { migrationLedger } from "#gateway/migration/request.ts";
import { migrationEndpoints } from "#gateway/operations/api/migrations.ts";
import { captureShown } from "../../cli/shown.ts";
import { PATIENTLY } from "../../e2e/wait.ts";
import { headgateHere, migrateHere } from "../../migration/migrate-command.ts";
import { GatewayRig, oneReading, until } from "../../runs/gateway-rig.ts";
import { askOperations } from "../../support/operations.ts";
import { call, refusal } from "./calls.ts";

/** The name of programs that use the secret of the endpoint file and name no person. */
const PERSON = "command line";

vi.setConfig(PATIENTLY);

let rig: GatewayRig;
let gateway: Gateway;
const shown = captureShown();
let control: ReturnType<typeof controlMigrations>;
const migrations = () => call(gateway, migrationEndpoints.migrations);

beforeEach(async () => {
  rig = await GatewayRig.start();
  rig.configure({ operations: { listen: "127.0.0.1:0", console: { histories: ["./history"] } } });
  control = controlMigrations(rig.config);
  gateway = await startGateway(loadGatewayConfig(rig.config), { log: silentLog, migrations: control });
});
afterEach(async () => {
  await gateway.stop();
  await control.close();
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

it("plans, starts, pauses, resumes and reports a migration, each in the name of the person", async () => {
  const variable = await rig.variable("M-1");
  rig.put("history/good.csv", oneReading(variable, 1));
  rig.put("history/twin.csv", oneReading(variable, 1));
  rig.put("history/wrong.csv", `variable_id,date,value\n${variable},2025-01-01T00:00:00Z,x1\n`);
  const patterns = [join(rig.folder, "history/*.csv")];
  const { id } = await call(gateway, migrationEndpoints.plan, { body: { patterns, mapper: "standard" } });
  const one = async () => (await migrations()).find((each) => each.id === id);
  await until("it is planned", async () => (await one())?.plan?.state === "done");
  expect(await one()).toMatchObject({
    state: "planned",
    plan: { facts: { files: 3, points: 2, isCounted: true, targets: 1 } },
    actions: [{ what: "planned", by: PERSON }],
  });
  const kinds = (await one())?.plan?.findings.map(({ kind, count }) => [kind, count]);
  expect(kinds).toContainEqual(["fault", 1]);
  expect(kinds).toContainEqual(["duplicate", 1]);
  expect(await rig.stored(variable)).toEqual({});

  // Its hours are those of another time of the day, so that it runs until it is paused.
  const now = Temporal.Now.zonedDateTimeISO("UTC");
  const at = (hours: number) => now.add({ hours }).toPlainTime().toString({ smallestUnit: "minute" });
  const params = { id };
  const between = `${at(6)}-${at(8)} UTC`;
  await call(gateway, migrationEndpoints.start, { params, body: { between, why: "as agreed" } });
  await until("it waits for its hours", async () => {
    const shown = await one();
    return shown?.state === "running" && shown.opensAt !== null;
  });
  expect(await one()).toMatchObject({ limits: { between }, files: {} });
  expect(await refusal(gateway, migrationEndpoints.start, { params, body: {} })).toMatchObject({ code: "HG-MIGR-002" });
  await call(gateway, migrationEndpoints.pause, { params, body: { why: "not yet" } });
  await until("it is paused", async () => (await one())?.state === "stopped");
  expect((await one())?.actions.slice(0, 2)).toMatchObject([
    { what: "paused", by: PERSON, words: "not yet" },
    { what: "started", by: PERSON, words: `between ${between}: as agreed` },
  ]);
  expect(await refusal(gateway, migrationEndpoints.pause, { params, body: {} })).toMatchObject({ status: 409 });

  await call(gateway, migrationEndpoints.start, { params, body: {} });
  await until("it has ended", async () => (await one())?.actions[0]?.what === "ended");
  expect(await one()).toMatchObject({
    state: "stopped",
    limits: { between: null },
    files: { delivered: 2, quarantined: 1 },
    pausing: null,
    hasReport: true,
  });
  const report = await askOperations(gateway, `/operations/migrations/${id}/report`);
  expect(report.headers.get("content-disposition")).toContain(`migration-${id}.html`);
  expect(await report.text()).toContain("wrong.csv");
  const preview = await call(gateway, migrationEndpoints.previewUndo, { params, body: {} });
  expect(preview).toMatchObject({ points: 1, count: 1, variables: [{ variableId: variable, points: 1, stay: 0 }] });
  expect(Object.keys(await rig.stored(variable))).toHaveLength(1);
});

it("plans nothing beside the folders of histories, and says what the command refuses", async () => {
  rig.put("in/secret.csv", "x");
  const outside = [join(rig.folder, "in/*.csv"), join(rig.folder, "history/*/../../in/*.csv"), "in/*.csv", "/etc/*"];
  rig.put("history/good.csv", oneReading(1, 1));
  for (const pattern of [...outside, "sftp://meters.example.com/*.csv"]) {
    const refused = await refusal(gateway, migrationEndpoints.plan, { body: { patterns: [pattern] } });
    expect(refused).toMatchObject({ status: 409, code: "HG-MIGR-007" });
  }
  const patterns = [join(rig.folder, "history/*.csv")];
  const unknown = await refusal(gateway, migrationEndpoints.plan, { body: { patterns, mapper: "none-such" } });
  expect(unknown).toMatchObject({ status: 409, code: "HG-CLI-001", detail: expect.stringContaining("none-such") });
  const params = { id: "0123456789" };
  expect(await refusal(gateway, migrationEndpoints.start, { params, body: {} })).toMatchObject({ code: "HG-MIGR-003" });
});
