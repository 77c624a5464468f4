/**
 * One hub process behind the recording proxy, and any number of stages: each a gateway with its own folder,
 * drops, state and variables.
 */
import { cp, mkdir, mkdtemp, readdir, realpath, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { systemClock } from "#core/clock.ts";
import { OWN_PREFIX } from "#gateway/drops/paths.ts";
import type { Ledger } from "#gateway/ledger/ledger.ts";
import { openLedger } from "#gateway/ledger/open.ts";
import { ledgerOptions } from "#gateway/ledger/options.ts";
import { ServiceClient } from "#wire/client/index.ts";
import { API_VERSION, accountWebhookKey } from "#wire/index.ts";
import { type Ended, HeadgateProcess, type StartOptions } from "./processes.ts";
import { type Lane, RecordingProxy } from "./proxy.ts";

const SECRET = "a secret of the webhooks";
const OPERATIONS_TOKEN = "a token for the tests";
const TIMEOUTS = { connect: 5_000, headers: 20_000, body: 20_000, total: 60_000 };
const CREDENTIALS = {
  clientId: "gateway",
  clientSecret: "gateway-secret",
  username: "pusher",
  password: "pusher-password",
};
const PUSHED_DATA = 72;
const ROWS_PER_PAGE = 10_000;

export const never = new AbortController().signal;

/** The operator's interface of a stage's gateway. */
export function askOperations(url: string, path: string): Promise<Response> {
  return fetch(`${url}${path}`, { headers: { authorization: `Bearer ${OPERATIONS_TOKEN}` } });
}

/** Options as a configuration file has them. */
export type Settings = Readonly<Record<string, unknown>>;

/** One stored version of one point. */
export interface StoredPoint {
  readonly date: string;
  readonly value: number;
  readonly version: string | null;
}

export class Rig {
  readonly folder: string;
  readonly proxy: RecordingProxy;
  readonly client: ServiceClient;
  hub: HeadgateProcess;
  #siteId: number | null = null;
  readonly #processes = new Set<HeadgateProcess>();

  private constructor(folder: string, proxy: RecordingProxy, hub: HeadgateProcess) {
    this.folder = folder;
    this.proxy = proxy;
    this.hub = hub;
    this.client = new ServiceClient(
      {
        ...serviceAddresses(proxy.url, "rig"),
        name: "hub",
        account: "1",
        apiVersion: API_VERSION,
        auth: "bearer",
        credentials: CREDENTIALS,
        scopes: ["datahub-api", "push-data"],
      },
      { connections: 2, timeouts: TIMEOUTS, clock: systemClock },
    );
  }

  /** `store`: of the hub. */
  static async start(fault?: string, store: Settings = hubSettings.store): Promise<Rig> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "headgate-")));
    await writeFile(join(folder, "hub.yaml"), stringify({ ...hubSettings, store }));
    const proxy = await RecordingProxy.start();
    const rig = new Rig(folder, proxy, new HeadgateProcess(["hub", "-c", join(folder, "hub.yaml")], { fault }));
    try {
      await rig.#hubIsUp();
      return rig;
    } catch (thrown) {
      await rig.close();
      throw thrown;
    }
  }

  /** Starts the hub again, on whatever port is free: the proxy knows. */
  async restartHub(fault?: string): Promise<void> {
    await this.hub.end("SIGKILL");
    this.hub = new HeadgateProcess(["hub", "-c", join(this.folder, "hub.yaml")], { fault });
    await this.#hubIsUp();
  }

  async #hubIsUp(): Promise<void> {
    this.#processes.add(this.hub);
    this.proxy.hub = null;
    this.proxy.hub = (await this.hub.said("stdout", /^hub: base (\S+)/m))[1] ?? null;
  }

  /**
   * A variable of a source of its own; its source has the serial number `name`, and it has the mappingConfig
   * `value`.
   */
  async variable(name: string, isVersioned = true): Promise<number> {
    this.#siteId ??= await this.client.postSite({ name: "Site", typeId: 3, timeZoneId: "Europe/Brussels" }, never);
    const source = await this.client.postSource(
      { name, siteId: this.#siteId, serialNumber: name, sourceTypeId: PUSHED_DATA, energyTypeId: 1 },
      never,
    );
    return await this.client.postVariable(
      { name, sourceId: source.id, variableTypeId: 0, unitId: 8, mappingConfig: "value", isVersioned },
      never,
    );
  }

  /** Every version of every point (or the one that counts), in the order of dates. */
  async stored(variableId: number, allVersions = true): Promise<readonly StoredPoint[]> {
    const points: StoredPoint[] = [];
    for (let page = 0; ; page += 1) {
      const rows = await this.client.postData(
        {
          VariableIds: [variableId],
          ...(allVersions ? { AllVersions: true } : {}),
          DisplayLevel: "ValueVariableDate",
          TimeZoneId: "UTC",
          "Paging.PageNumber": page,
          "Paging.ItemsPerPage": ROWS_PER_PAGE,
        },
        never,
      );
      for (const row of rows)
        points.push({
          date: new Date(row.date ?? "").toISOString(),
          value: row.rawValue ?? Number.NaN,
          version: row.version ?? null,
        });
      if (rows.length < ROWS_PER_PAGE) return points;
    }
  }

  async stage(name: string, change: Settings = {}): Promise<Stage> {
    const stage = new Stage(this, name, change);
    await mkdir(join(stage.folder, "drop"), { recursive: true });
    await stage.configure();
    return stage;
  }

  start(args: readonly string[], options: StartOptions = {}): HeadgateProcess {
    const process = new HeadgateProcess(args, options);
    this.#processes.add(process);
    return process;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#processes].map((process) => process.end("SIGKILL")));
    await this.client.close();
    await this.proxy.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}

export class Stage {
  readonly rig: Rig;
  readonly name: string;
  readonly folder: string;
  readonly lane: Lane;
  /** Address under which the gateway reaches the proxy. */
  entrance: string;
  #change: Settings;

  constructor(rig: Rig, name: string, change: Settings) {
    this.rig = rig;
    this.name = name;
    this.folder = join(rig.folder, "stages", name);
    this.lane = rig.proxy.lane(name);
    this.entrance = rig.proxy.url;
    this.#change = change;
  }

  get config(): string {
    return join(this.folder, "gateway.yaml");
  }

  get drop(): string {
    return join(this.folder, "drop");
  }

  /** Writes the configuration, with other sections than before when given. */
  async configure(change: Settings = this.#change): Promise<void> {
    this.#change = change;
    await writeFile(this.config, stringify(this.settings()));
  }

  /** All sections of its configuration. */
  settings(): Settings {
    return { ...this.#settings(), ...this.#change };
  }

  /** Takes over the state and the drop of another stage, whose gateway does not run. */
  async copyFrom(other: Stage): Promise<void> {
    for (const name of ["drop", "state"])
      await cp(join(other.folder, name), join(this.folder, name), {
        recursive: true,
        preserveTimestamps: true,
      });
  }

  /** Puts a complete file into the local drop (or a folder of the stage that a field server shows). */
  async put(path: string, content: string | Uint8Array, folder = this.drop, minutesAgo = 1): Promise<void> {
    const full = join(folder, path);
    await mkdir(dirname(full), { recursive: true });
    await writeFile(full, content);
    const modified = new Date(Date.now() - minutesAgo * 60_000);
    await utimes(full, modified, modified);
  }

  /** Starts a gateway; its webhooks find it from when it says that it has started. */
  gateway(more: readonly string[], options: StartOptions = {}): HeadgateProcess {
    this.lane.gateway = null;
    const process = this.rig.start(["gateway", "-c", this.config, ...more], options);
    process.said("stderr", /"operations":"([^"]+)"[^\n]*gateway started/).then(
      ([, url]) => {
        this.lane.gateway = url ?? null;
      },
      () => undefined, // It was killed before.
    );
    return process;
  }

  untilIdle(fault?: string): Promise<Ended> {
    return this.gateway(["--until-idle", "--json", "--timeout", "60s"], { fault }).ended();
  }

  /** What the ledger says, read beside whoever writes it. */
  async inspect<T>(look: (ledger: Ledger) => Promise<T>): Promise<T> {
    const options = ledgerOptions.parse(this.settings()["ledger"]);
    const place = options.kind === "sqlite" ? { ...options, path: join(this.folder, options.path) } : options;
    const ledger = await openLedger(place, { clock: systemClock, readOnly: true });
    try {
      return await look(ledger);
    } finally {
      await ledger.close();
    }
  }

  /**
   * Paths of the files below a folder, relative to it, but for the one by which a gateway tries whether
   * events arrive: killed then, it leaves that to its next start.
   */
  async files(folder = this.drop): Promise<string[]> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith(`${OWN_PREFIX}events-`))
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .sort();
  }

  #settings(): Settings {
    return {
      services: [
        {
          ...serviceAddresses(this.entrance, this.name),
          idempotency: true,
          name: "hub",
          account: "1",
          credentials: CREDENTIALS,
        },
      ],
      ledger: { kind: "sqlite", path: "./state/ledger.sqlite" },
      spool: { path: "./state/spool" },
      workers: { count: 1 },
      drops: [localDrop],
      triggers: [standardTrigger, unguardedTrigger],
      push: quickPush,
      operations: {
        listen: "127.0.0.1:0",
        access: { tokens: [{ name: "tests", token: OPERATIONS_TOKEN }] },
        webhook: { publicUrl: `${this.rig.proxy.url}/${this.name}/hook`, secret: accountWebhookKey(SECRET, 1) },
      },
      log: { level: "info" },
    };
  }
}

export const localDrop: Settings = {
  name: "field",
  kind: "local",
  path: "./drop",
  every: "200ms",
  settle: { observations: 1 },
};

export const standardTrigger: Settings = {
  name: "standard",
  fileNamePatternMatches: [
    { filterType: "StartsWith", value: "standard_" },
    { filterType: "EndsWith", value: ".csv" },
  ],
  fileTriggerCombination: "And",
  mapper: "standard",
};

/** For files that begin with `unguarded_`: they are pushed whatever the guard has to say. */
export const unguardedTrigger: Settings = {
  ...standardTrigger,
  name: "unguarded",
  fileNamePatternMatches: [{ filterType: "StartsWith", value: "unguarded_" }],
  guard: "push",
};

export const quickPush: Settings = {
  batch: { points: 40 },
  confirm: { pollEvery: "100ms" },
  retry: { initial: "50ms", max: "500ms" },
};

const hubSettings = {
  listen: "127.0.0.1:0",
  store: { kind: "sqlite", path: "./hub.sqlite" },
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
  webhook: { secret: SECRET, backoff: "50ms", backoffMax: "200ms", attempts: 1_000, hosts: ["127.0.0.1"] },
  log: { level: "warn" },
};

function serviceAddresses(proxyUrl: string, lane: string) {
  const at = `${proxyUrl}/${lane}`;
  return { base: `${at}/base`, push: `${at}/push`, token: `${at}/token` };
}
