/** A gateway with an HTTP intake in this process, whose service is a hub that may be away. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { waitUntilIdle } from "#app/cli/until-idle.ts";
import { silentLog } from "#core/log.ts";
import { gatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { until } from "../e2e/wait.ts";

export const GUID = "0b6b2ad6-8a0e-4d54-9f2b-6f1f3f0f5a11";
export const never = new AbortController().signal;

export type Settings = Record<string, unknown>;

export const users = [
  { username: "device", password: "device-password" },
  { username: "local", password: "local-password", timeZone: "Europe/Brussels" },
  { username: "uploader", password: "uploader-password", rights: ["storage"] },
];

export function intakeSettings(folder: string, hub: string, more: Settings = {}, intake: Settings = {}): Settings {
  return {
    services: [
      {
        name: "hub",
        base: hub,
        push: `${hub}/push`,
        token: `${hub}/connect/token`,
        account: "1",
        credentials: {
          clientId: "gateway",
          clientSecret: "gateway-secret",
          username: "manager",
          password: "manager-password",
        },
      },
    ],
    ledger: { kind: "sqlite", path: join(folder, "ledger.sqlite") },
    spool: { path: join(folder, "spool") },
    workers: { count: 1 },
    drops: [
      {
        kind: "http",
        name: "intake",
        listen: "127.0.0.1:0",
        every: "200ms",
        users,
        clients: [{ id: "device", secret: "device-secret" }],
        ...intake,
      },
    ],
    triggers: [
      {
        name: "generic",
        ingestionType: "SendViaHttp",
        token: GUID,
        fileNamePatternMatches: [],
        mapper: "standard",
      },
      {
        name: "uploads",
        ingestionType: "UploadInStorage",
        fileNamePatternMatches: [{ filterType: "EndsWith", value: ".csv" }],
        mapper: "standard",
      },
    ],
    push: { confirm: { pollEvery: "50ms" }, retry: { initial: "50ms", max: "200ms" } },
    operations: { listen: "127.0.0.1:0" },
    ...more,
  };
}

export class IntakeRig {
  readonly folder: string;
  readonly hub: string;
  readonly #more: Settings;
  readonly #intake: Settings;
  #gateway: Gateway | null = null;

  private constructor(folder: string, hub: string, more: Settings, intake: Settings) {
    this.folder = folder;
    this.hub = hub;
    this.#more = more;
    this.#intake = intake;
  }

  /** Without a hub, the service refuses connections. */
  static async start(hub?: string, more: Settings = {}, intake: Settings = {}): Promise<IntakeRig> {
    const folder = await mkdtemp(join(tmpdir(), "headgate-"));
    const rig = new IntakeRig(folder, hub ?? `http://127.0.0.1:${await freePort()}`, more, intake);
    try {
      await rig.up();
    } catch (thrown) {
      await rig.close();
      throw thrown;
    }
    return rig;
  }

  get gateway(): Gateway {
    if (this.#gateway === null) throw new Error("the gateway is down");
    return this.#gateway;
  }

  get url(): string {
    return this.gateway.intakes["intake"] ?? "";
  }

  async up(more: Settings = {}, intake: Settings = {}): Promise<void> {
    const own = { ...this.#intake, ...intake };
    const settings = intakeSettings(this.folder, this.hub, { ...this.#more, ...more }, own);
    const config = gatewayConfig.parse(settings);
    this.#gateway = await startGateway(config, { log: silentLog });
  }

  async down(): Promise<void> {
    await this.#gateway?.stop();
    this.#gateway = null;
  }

  async idle(): Promise<void> {
    const end = await waitUntilIdle(this.gateway, never, 90_000);
    if (end !== "idle") throw new Error(`not idle: ${await this.gateway.concerns()}`);
  }

  /** Resolves when all that was sent before is in the ledger: bodies are listed in the order in which they came. */
  async seen(): Promise<void> {
    const last = `last-${performance.now()}`;
    await this.post(`/api/data?operationId=${last}`, "[]");
    await until("the last body in the ledger", async () => (await this.gateway.ledger.trace(last)).length > 0);
  }

  async post(path: string, body: string | FormData, headers: Record<string, string> = {}) {
    const response = await fetch(`${this.url}${path}`, {
      method: "POST",
      body,
      headers: { authorization: basic("device"), ...headers },
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text === "" ? null : JSON.parse(text),
    };
  }

  async token(fields: Record<string, string> = {}) {
    const form = {
      grant_type: "password",
      client_id: "device",
      client_secret: "device-secret",
      username: "device",
      password: "device-password",
      scope: "push-data datahub-api",
      ...fields,
    };
    const response = await fetch(`${this.url}/connect/token`, {
      method: "POST",
      body: new URLSearchParams(form),
    });
    return { status: response.status, body: (await response.json()) as Record<string, string | number> };
  }

  /** Paths of the bodies that lie in the intake. */
  async bodies(): Promise<string[]> {
    const root = join(this.folder, "spool", "intake", "intake", "bodies");
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map((entry) => relative(root, join(entry.parentPath, entry.name)));
  }

  async close(): Promise<void> {
    await this.down();
    await rm(this.folder, { recursive: true, force: true });
  }
}

export function basic(username: string, password = `${username}-password`): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

export function pushBody(variableId: number, ...values: number[]): string {
  const data = values.map((value, index) => ({
    date: new Date(Date.UTC(2026, 2, 1, index)).toISOString(),
    value,
  }));
  return JSON.stringify([{ variableId, data }]);
}

export function upload(name: string, content: string, part = "file"): FormData {
  const form = new FormData();
  form.append(part, new Blob([content]), name);
  return form;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
