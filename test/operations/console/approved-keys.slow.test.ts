/** Host keys that a person approves in the console of one node, for two gateways on one ledger in PostgreSQL. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadGatewayConfig } from "../../../src/config/gateway-config.ts";
import { type Gateway, startGateway } from "../../../src/gateway.ts";
import { dropEndpoints as endpoints } from "../../../src/operations/api/drops.ts";
import { silentLog } from "../../../src/support/log.ts";
import { GatewayRig, oneReading, trigger, until } from "../../runs/gateway-rig.ts";
import { openTestDatabase, type TestDatabase } from "../../support/postgres.ts";
import { call } from "./calls.ts";
import { changedServer } from "./changed-server.ts";

const params = { name: "field" };

let rig: GatewayRig;
let database: TestDatabase;
let gateways: Gateway[];
beforeEach(async () => {
  [rig, database] = await Promise.all([GatewayRig.start(), openTestDatabase()]);
  gateways = [];
});
afterEach(async () => {
  for (const gateway of gateways) await gateway.stop();
  await rig.close();
  await database.drop();
});

const spool = (node: string) => join(rig.folder, `state/spool-${node}`);

async function start(node: string, options: object): Promise<Gateway> {
  const file = join(rig.folder, `${node}.yaml`);
  const settings = {
    services: [rig.service("hub")],
    ledger: { kind: "postgres", url: database.url, lease: "6s", node },
    spool: { path: spool(node) },
    drops: [{ ...options, every: "100ms", settle: { observations: 1 } }],
    triggers: [trigger("standard")],
    push: { confirm: { by: "read-back", pollEvery: "50ms" } },
    operations: { listen: "127.0.0.1:0" },
  };
  writeFileSync(file, stringify(settings));
  const gateway = await startGateway(loadGatewayConfig(file), { log: silentLog });
  gateways.push(gateway);
  return gateway;
}

const hostKeyOf = async (gateway: Gateway) => (await call(gateway, endpoints.drops))[0]?.hostKey;

it("counts on the node that polls the drop and on one that joins later, and stays withdrawn", async () => {
  const { options, root, present, server } = await changedServer(rig.folder);
  try {
    const variable = await rig.variable("M-1");
    writeFileSync(join(root, "a.csv"), oneReading(variable, 1));
    const south = await start("south", options);
    await until("south refuses the key", async () => (await hostKeyOf(south)) === "refused");
    const north = await start("north", options);
    const approved = await call(north, endpoints.approveHostKey, { params, body: { fingerprint: present } });
    expect(approved.offered.isTrusted).toBe(true);
    await until("south delivers the file", async () => (await rig.stored(variable))["2026-03-01"] === 1);
    expect(await hostKeyOf(south)).toBe("trusted");
    const file = join(spool("south"), "known_hosts");
    const text = readFileSync(file, "utf8");
    expect(text).toBe(readFileSync(join(spool("north"), "known_hosts"), "utf8"));
    expect(text).toMatch(
      /^# approved by "command line" at \S+, for the drop "field": SHA256:\S+\n\S+ ssh-ed25519 \S+\n$/,
    );

    await start("east", options);
    expect(readFileSync(join(spool("east"), "known_hosts"), "utf8")).toBe(text);

    // A file that cannot be written hinders neither the start of its node nor its other work.
    mkdirSync(join(spool("west"), "known_hosts"), { recursive: true });
    await start("west", options);

    const [note = ""] = text.split("\n");
    writeFileSync(file, `${note}\n`);
    await south.stop();
    gateways = gateways.filter((one) => one !== south);
    await start("south", options);
    expect(readFileSync(file, "utf8")).toBe(`${note}\n`);
  } finally {
    await server.close();
  }
});
