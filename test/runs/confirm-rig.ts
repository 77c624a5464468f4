/** A gateway whose clock jumps, and whose service may not be asked what it stored. */

import { silentLog } from "#core/log.ts";
import type { Gateway } from "#gateway/gateway.ts";
import type { Run } from "#gateway/model.ts";
import { JumpingClock } from "../support/jumping-clock.ts";
import { openTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { GatewayRig, trigger, until } from "./gateway-rig.ts";
import { ReadableBase } from "./readable-base.ts";

export const MINUTE = 60_000;
/** `confirm.within` of these gateways. */
export const WITHIN = 10 * MINUTE;

export class ConfirmRig {
  readonly rig: GatewayRig;
  readonly base: ReadableBase;
  readonly clock = new JumpingClock();
  readonly #database: TestDatabase | null;
  #gateway: Gateway | null = null;

  private constructor(rig: GatewayRig, base: ReadableBase, database: TestDatabase | null) {
    this.rig = rig;
    this.base = base;
    this.#database = database;
  }

  static async start(ledger: "sqlite" | "postgres" = "sqlite"): Promise<ConfirmRig> {
    const rig = await GatewayRig.start();
    const base = await ReadableBase.start(rig.hub.url);
    return new ConfirmRig(rig, base, ledger === "postgres" ? await openTestDatabase() : null);
  }

  get gateway(): Gateway {
    if (this.#gateway === null) throw new Error("the gateway is not open yet");
    return this.#gateway;
  }

  /** Starts the gateway, or another one in its place. */
  async open(change: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const url = this.#database?.url;
    const sections = {
      ...(url === undefined ? {} : { ledger: { kind: "postgres", url, schema: "headgate", node: "north" } }),
      services: [{ ...this.rig.service("hub"), base: this.base.url }],
      triggers: [trigger("standard", { guard: "push" })],
    };
    this.#gateway = await this.rig.open({ ...sections, ...change }, silentLog, this.clock);
  }

  async runOf(path: string): Promise<Run | undefined> {
    return (await this.gateway.ledger.recentRuns(99)).find((run) => run.path === path);
  }

  /** Searches for work all the while, since timers do not know of a clock that jumped. */
  async untilState(path: string, ...states: readonly Run["state"][]): Promise<void> {
    await until(`${path} is ${states.join(" or ")}`, async () => {
      await this.gateway.pulse();
      const run = await this.runOf(path);
      return run !== undefined && states.includes(run.state);
    });
  }

  async close(): Promise<void> {
    await this.rig.close();
    await this.base.close();
    await this.#database?.drop();
  }
}
