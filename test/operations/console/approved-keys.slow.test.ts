/** Host keys that a person approves in the console of one node, for two gateways on one ledger in PostgreSQL. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Gateway } from "#gateway/gateway.ts";
import { dropEndpoints as endpoints } from "#gateway/operations/api/drops.ts";
import { FleetRig } from "../../runs/fleet-rig.ts";
import { oneReading, until } from "../../runs/gateway-rig.ts";
import { call } from "./calls.ts";
import { changedServer } from "./changed-server.ts";

const params = { name: "field" };

let fleet: FleetRig;
beforeEach(async () => {
  fleet = await FleetRig.start();
});
afterEach(() => fleet.close());

const start = (node: string, options: object) =>
  fleet.start(node, { drops: [{ ...options, every: "100ms", settle: { observations: 1 } }] });

const hostKeyOf = async (gateway: Gateway) => (await call(gateway, endpoints.drops))[0]?.hostKey;

it("counts on the node that polls the drop and on one that joins later, and stays withdrawn", async () => {
  const { rig } = fleet;
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
    const file = join(fleet.spool("south"), "known_hosts");
    const text = readFileSync(file, "utf8");
    expect(text).toBe(readFileSync(join(fleet.spool("north"), "known_hosts"), "utf8"));
    expect(text).toMatch(
      /^# approved by "command line" at \S+, for the drop "field": SHA256:\S+\n\S+ ssh-ed25519 \S+\n$/,
    );

    await start("east", options);
    expect(readFileSync(join(fleet.spool("east"), "known_hosts"), "utf8")).toBe(text);

    // A file that cannot be written hinders neither the start of its node nor its other work.
    mkdirSync(join(fleet.spool("west"), "known_hosts"), { recursive: true });
    await start("west", options);

    const [note = ""] = text.split("\n");
    writeFileSync(file, `${note}\n`);
    await fleet.stop(south);
    await start("south", options);
    expect(readFileSync(file, "utf8")).toBe(`${note}\n`);
  } finally {
    await server.close();
  }
});
