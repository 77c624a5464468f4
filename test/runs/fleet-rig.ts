/** Gateways in this process that share a ledger in PostgreSQL, beside the hub and the folder of a rig. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { type Clock, systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { loadGatewayConfig } from "#gateway/config.ts";
import { type Gateway, startGateway } from "#gateway/gateway.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { GatewayRig } from "./gateway-rig.ts";

type Sections = Readonly<Record<string, unknown>>;

/** A killed node is waited for so long; a process that is not scheduled for so long must not lose its drops. */
const LEASE = "6s";

export class FleetRig {
  readonly rig: GatewayRig;
  readonly #database: TestDatabase;
  readonly #running = new Set<Gateway>();

  private constructor(rig: GatewayRig, database: TestDatabase) {
    this.rig = rig;
    this.#database = database;
  }

  static async start(): Promise<FleetRig> {
    const [rig, database] = await Promise.all([GatewayRig.start(), openTestDatabase()]);
    return new FleetRig(rig, database);
  }

  /** Path of the node's configuration. */
  configure(node: string, sections: Sections): string {
    const ledger = { kind: "postgres", url: this.#database.url, lease: LEASE, node };
    this.rig.configure({ ledger, spool: { path: `./state/spool-${node}` }, ...sections });
    const file = join(this.rig.folder, `${node}.yaml`);
    writeFileSync(file, stringify(parse(readFileSync(this.rig.config, "utf8"))));
    return file;
  }

  spool(node: string): string {
    return join(this.rig.folder, `state/spool-${node}`);
  }

  async start(node: string, sections: Sections, clock: Clock = systemClock): Promise<Gateway> {
    const gateway = await startGateway(loadGatewayConfig(this.configure(node, sections)), { log: silentLog, clock });
    this.#running.add(gateway);
    return gateway;
  }

  async stop(gateway: Gateway): Promise<void> {
    this.#running.delete(gateway);
    await gateway.stop();
  }

  async close(): Promise<void> {
    for (const gateway of this.#running) await this.stop(gateway);
    await this.rig.close();
    await this.#database.drop();
  }
}
