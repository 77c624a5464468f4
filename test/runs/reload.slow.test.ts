import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { Reloading } from "#gateway/reload.ts";
import { askOperations } from "../support/operations.ts";
import { drop, GatewayRig, oneReading, trigger, until } from "./gateway-rig.ts";

let rig: GatewayRig;
let daemon: Reloading<Gateway> | null;
let servers: Server[];

beforeEach(async () => {
  rig = await GatewayRig.start();
  daemon = null;
  servers = [];
});
afterEach(async () => {
  await daemon?.stop();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await rig.close();
});

const configure = (sections: Readonly<Record<string, unknown>>) =>
  rig.configure({ log: { level: "silent" }, ...sections });

async function start(sections: Readonly<Record<string, unknown>>): Promise<Reloading<Gateway>> {
  configure(sections);
  return await watchConfiguration();
}

async function watchConfiguration(): Promise<Reloading<Gateway>> {
  const log = createLog("silent");
  daemon = await Reloading.start<Gateway>({
    load: (files) => loadGatewayConfig(rig.config, files),
    start: (config, configuration) => startGateway(config, { log, configuration }),
    log,
  });
  return daemon;
}

/** Resolves when health says this of the configuration. */
async function configurationIs(words: RegExp): Promise<void> {
  await until(`the configuration is ${words}`, async () => words.test(daemon?.health().reason ?? ""));
}

const settled = (path: string) =>
  until(`${path} is delivered`, async () =>
    ((await daemon?.gateway.ledger.trace(path)) ?? []).some(({ runs }) =>
      runs.some(({ run }) => run.state === "confirmed"),
    ),
  );

async function listening(onRequest: Parameters<typeof createServer>[1] = () => undefined): Promise<number> {
  const server = createServer(onRequest);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

const USER = { username: "device", password: "device-password" };
const intake = (more: Readonly<Record<string, unknown>> = {}) => ({
  name: "intake",
  kind: "http",
  listen: "127.0.0.1:0",
  users: [USER],
  every: "100ms",
  ...more,
});

describe("a changed configuration that is valid", () => {
  it("offers unmatched files to the new triggers, and leaves drops and ledger open", async () => {
    const variable = await rig.variable("a");
    const drops = [drop("in"), intake()];
    rig.put("in/a.dat", oneReading(variable, 7));
    const { gateway } = await start({ drops });
    const { ledger, intakes } = gateway;
    await until("it is unmatched", async () =>
      (await ledger.arrivalsIn("in", ["unmatched"])).some(({ path }) => path === "a.dat"),
    );
    configure({
      drops,
      triggers: [trigger("dat", { fileNamePatternMatches: [{ filterType: "EndsWith", value: ".dat" }] })],
    });
    await settled("a.dat");
    expect(daemon?.gateway.ledger).toBe(ledger);
    expect(daemon?.gateway.intakes).toEqual(intakes);
    expect((await fetch(`${intakes["intake"]}/health`)).status).toBe(200);
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 7 });
  });

  it("takes a new secret as soon as its file has it, and sends what the old one kept back", async () => {
    const variable = await rig.variable("a");
    const secret = join(rig.folder, "client-secret");
    writeFileSync(secret, "wrong\n");
    const service = rig.service("hub");
    const credentials = { ...service.credentials, clientSecret: "${file:client-secret}" };
    rig.put("in/a.csv", oneReading(variable, 7));
    const { gateway } = await start({ services: [{ ...service, credentials }] });
    await until("the service refuses the secret", async () =>
      /2/.test(JSON.stringify((await gateway.ledger.recentRuns(1))[0]?.reason?.code ?? "")),
    );
    // As a mounted secret is exchanged: another file under the same name.
    writeFileSync(`${secret}.new`, "client-secret\n");
    renameSync(`${secret}.new`, secret);
    await settled("a.csv");
    expect(daemon?.gateway).toBe(gateway);
  });

  it("lets the push under way to the old address end, and sends nothing of it again", async () => {
    const variable = await rig.variable("a");
    const other = await rig.variable("b");
    const came: string[] = [];
    const hold = Promise.withResolvers<void>();
    const port = await listening((request, response) => {
      request.resume();
      came.push(new URL(request.url ?? "", "http://x").searchParams.get("operationId") ?? "");
      void hold.promise.then(() => response.writeHead(200).end());
    });
    const service = { ...rig.service("hub"), push: `http://127.0.0.1:${port}` };
    const dates = ["01", "02", "03"].map((day) => `${variable},2026-03-${day}T00:00:00Z,${Number(day)}\n`);
    rig.put("in/a.csv", `variable_id,date,value\n${dates.join("")}`);
    const push = { batch: { points: 1 }, concurrency: 2, confirm: { by: "none" } };
    const { gateway } = await start({ services: [service], push });
    await until("two batches are on their way", async () => came.length === 2);
    configure({ services: [rig.service("hub")], push });
    const before = daemon?.health().reason;
    await until("it is in force", async () => daemon?.health().reason !== before);
    rig.put("in/b.csv", oneReading(other, 9));
    await until("the new address takes another file", async () => Object.hasOwn(await rig.stored(other), "2026-03-01"));
    hold.resolve();
    await until("the run is accepted", async () =>
      ((await gateway.ledger.trace("a.csv"))[0]?.runs ?? []).some(({ run }) => run.state === "accepted"),
    );
    expect(came).toHaveLength(2);
    await until("what was accepted is stored", async () => Object.hasOwn(await rig.stored(variable), "2026-03-03"));
    expect(await rig.stored(variable)).toEqual({ "2026-03-03": 3 });
    const batches = (await gateway.ledger.trace("a.csv"))[0]?.runs[0]?.batches ?? [];
    expect(batches.map(({ attempts }) => attempts)).toEqual([1, 1, 1]);
  });

  it("starts another gateway in the same process when it is built on something else", async () => {
    const variable = await rig.variable("a");
    const first = (await start({})).gateway;
    configure({ ledger: { kind: "sqlite", path: "./other/ledger.sqlite" } });
    await until("another gateway runs", async () => {
      try {
        return daemon?.gateway !== first;
      } catch {
        return false; // Between the two.
      }
    });
    rig.put("in/a.csv", oneReading(variable, 7));
    await settled("a.csv");
    expect(await rig.stored(variable)).toEqual({ "2026-03-01": 7 });
  });

  it("is found behind a link that points elsewhere, and where a secret was missing before", async () => {
    const { folder, config } = rig;
    configure({});
    mkdirSync(join(folder, "one"));
    renameSync(config, join(folder, "one", "gateway.yaml"));
    symlinkSync(join(folder, "one", "gateway.yaml"), config);
    await watchConfiguration();
    mkdirSync(join(folder, "two"));
    rmSync(config);
    const service = rig.service("hub");
    const credentials = { ...service.credentials, clientSecret: "${file:later}" };
    configure({ services: [{ ...service, credentials }] });
    renameSync(config, join(folder, "two", "gateway.yaml"));
    symlinkSync(join(folder, "two", "gateway.yaml"), `${config}.new`);
    renameSync(`${config}.new`, config);
    await configurationIs(/refused.*later/);
    writeFileSync(join(folder, "later"), "client-secret");
    await configurationIs(/^in force/);
  });
});

describe("a changed configuration that cannot be taken", () => {
  it("is refused with the reason, in health and metrics, and what was in force stays", async () => {
    const variable = await rig.variable("a");
    const { gateway } = await start({});
    writeFileSync(rig.config, "servces: []\n");
    await configurationIs(/refused.*unknown key servces/s);
    const { parts } = (await (await askOperations(gateway, "/health/ready")).json()) as {
      parts: { part: string; reason: string }[];
    };
    expect(parts.find(({ part }) => part === "configuration")?.reason).toContain("did you mean services");
    const metrics = await (await askOperations(gateway, "/metrics")).text();
    expect(metrics).toMatch(/^headgate_configuration_valid 0$/m);
    rig.put("in/a.csv", oneReading(variable, 7));
    await settled("a.csv");
    configure({});
    await configurationIs(/^in force/);
    expect(daemon?.gateway).toBe(gateway);
  });

  it("leaves the intake where it listens when its new address is taken", async () => {
    const port = await listening();
    const { gateway } = await start({ drops: [drop("in"), intake()] });
    configure({ drops: [drop("in"), intake({ listen: `127.0.0.1:${port}` })] });
    await configurationIs(/refused.*taken by another program/s);
    expect((await fetch(`${gateway.intakes["intake"]}/health`)).status).toBe(200);
  });

  it("returns to the gateway before when the new one does not start", async () => {
    const variable = await rig.variable("a");
    const port = await listening();
    await start({});
    configure({ operations: { listen: `127.0.0.1:${port}` } });
    await configurationIs(/refused.*taken by another program/s);
    rig.put("in/a.csv", oneReading(variable, 7));
    // For a moment none runs.
    await until("the file is stored", async () => (await rig.stored(variable))["2026-03-01"] === 7);
  });
});
