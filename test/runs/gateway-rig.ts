/** A hub and a gateway in this process, with local drops in a temporary folder. */
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { type Clock, systemClock } from "#core/clock.ts";
import { parseConfigText } from "#core/config/document.ts";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { type RunningHub, startHub } from "#hub/hub.ts";
import { hubOptions } from "#hub/options.ts";
import { ServiceClient } from "#wire/client/index.ts";
import { LITTLE_HASHING as hashCost } from "../support/hash-cost.ts";

type Sections = Readonly<Record<string, unknown>>;

const CREDENTIALS = { clientId: "c", clientSecret: "client-secret", username: "u", password: "password" };
const never = new AbortController().signal;

export class GatewayRig {
  readonly folder = mkdtempSync(join(tmpdir(), "headgate-"));
  readonly hub: RunningHub;
  readonly client: ServiceClient;
  #gateway: Gateway | null = null;

  private constructor(hub: RunningHub) {
    this.hub = hub;
    this.client = this.clientOf(hub.url);
  }

  clientOf(base: string): ServiceClient {
    return new ServiceClient(
      {
        ...this.service("hub"),
        base,
        account: "1",
        apiVersion: "1.7",
        auth: "bearer",
        scopes: ["datahub-api", "push-data"],
      },
      {
        connections: 1,
        timeouts: { connect: 5_000, headers: 10_000, body: 10_000, total: 30_000 },
        clock: systemClock,
      },
    );
  }

  /** With more sections of the hub's configuration. */
  static async start(hubSections: Sections = {}): Promise<GatewayRig> {
    const folder = mkdtempSync(join(tmpdir(), "headgate-hub-"));
    const text = stringify({
      listen: "127.0.0.1:0",
      store: { kind: "sqlite", path: join(folder, "hub.sqlite") },
      accounts: [{ id: 1, name: "First" }],
      clients: [{ id: CREDENTIALS.clientId, secret: CREDENTIALS.clientSecret }],
      users: [
        {
          username: CREDENTIALS.username,
          password: CREDENTIALS.password,
          accounts: [1],
          roles: ["Manager", "Datapusher"],
        },
      ],
      ...hubSections,
    });
    const hub = await startHub(parseConfigText(text, hubOptions, "hub.yaml"), { log: silentLog, hashCost });
    const rig = new GatewayRig({
      ...hub,
      close: async () => {
        await hub.close();
        rmSync(folder, { recursive: true });
      },
    });
    return rig;
  }

  service(name: string, base = this.hub.url) {
    return { name, base, push: `${base}/push`, token: `${base}/connect/token`, credentials: CREDENTIALS };
  }

  async variable(name: string, isVersioned = false): Promise<number> {
    const siteId = await this.client.postSite({ name, typeId: 3, timeZoneId: "UTC" }, never);
    const source = await this.client.postSource({ name, siteId, serialNumber: name, sourceTypeId: 72 }, never);
    return this.client.postVariable(
      { name, sourceId: source.id, variableTypeId: 0, unitId: 8, mappingConfig: "v", isVersioned },
      never,
    );
  }

  /** Values by date, as they are stored now. */
  async stored(variableId: number): Promise<Readonly<Record<string, number>>> {
    const rows = await this.client.postData(
      { VariableIds: [variableId], DisplayLevel: "ValueVariableDate", TimeZoneId: "UTC" },
      never,
    );
    return Object.fromEntries(rows.map((row) => [(row.date ?? "").slice(0, 10), row.rawValue ?? Number.NaN]));
  }

  async removePoints(variableId: number, from: string, to: string): Promise<void> {
    await this.client.deleteData({ VariableIds: [variableId], FromDateUtc: from, ToDateUtc: to }, never);
  }

  /** How many versions of points are stored. */
  async versions(variableId: number): Promise<number> {
    const rows = await this.client.postData(
      { VariableIds: [variableId], DisplayLevel: "ValueVariableDate", TimeZoneId: "UTC", AllVersions: true },
      never,
    );
    return rows.length;
  }

  put(path: string, content: string | Uint8Array, at = new Date("2026-03-01T00:00:00Z")): void {
    const full = join(this.folder, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, content);
    utimesSync(full, at, at);
  }

  /** A gateway with these sections; the rest has defaults that make tests quick. */
  async open(sections: Sections, log = silentLog, clock: Clock = systemClock): Promise<Gateway> {
    await this.#gateway?.stop();
    this.configure(sections);
    this.#gateway = await startGateway(loadGatewayConfig(this.config), { log, clock });
    return this.#gateway;
  }

  get config(): string {
    return join(this.folder, "gateway.yaml");
  }

  /** Writes the configuration's file. */
  configure(sections: Sections): void {
    mkdirSync(join(this.folder, "in"), { recursive: true });
    const settings = {
      services: [this.service("hub")],
      drops: [drop("in")],
      triggers: [trigger("standard")],
      push: {
        confirm: { by: "read-back", pollEvery: "50ms" },
        retry: { initial: "50ms", max: "200ms", quickAttempts: 1 },
      },
      operations: { listen: "127.0.0.1:0" },
      ...sections,
    };
    writeFileSync(this.config, stringify(settings));
  }

  async close(): Promise<void> {
    await this.#gateway?.stop();
    await this.client.close();
    await this.hub.close();
    rmSync(this.folder, { recursive: true });
  }
}

export function drop(name: string, more: Readonly<Record<string, unknown>> = {}) {
  return {
    name,
    kind: "local",
    path: `./${name}`,
    every: "100ms",
    watch: false,
    settle: { observations: 1 },
    ...more,
  };
}

export function trigger(name: string, more: Readonly<Record<string, unknown>> = {}) {
  return {
    name,
    mapper: "standard",
    fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
    ...more,
  };
}

/** One reading of one variable. */
export function oneReading(variableId: number, value: number, date = "2026-03-01T00:00:00Z"): string {
  return `variable_id,date,value\n${variableId},${date},${value}\n`;
}

export async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 90_000;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
