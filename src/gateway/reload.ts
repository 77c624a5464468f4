/**
 * Keeps a gateway in step with its configuration's file: a valid change takes effect without a restart of the
 * process, an invalid one is refused with the reason and the former one stays in force. Where sections cannot be
 * exchanged one by one, the gateway stops and a new one starts in its place; when the new one does not start, the
 * former one is started again.
 */
import { isDeepStrictEqual } from "node:util";
import type { Registry } from "prom-client";
import { type Clock, isoInstant, systemClock } from "#core/clock.ts";
import { FileWatch } from "#core/config/file-watch.ts";
import { changedPaths } from "#core/config/leaves.ts";
import { HeadgateError, wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";
import type { GatewayConfig } from "./config.ts";
import type { Exchange } from "./live-update.ts";
import type { RefusedConfiguration } from "./operations/attention.ts";
import { ConfigurationMetrics } from "./operations/configuration-metrics.ts";
import type { HealthPart } from "./operations/state-of-work.ts";

/** The interface of the gateway that is kept in step. */
export interface Reloadable {
  exchange(next: GatewayConfig): Promise<Exchange>;
  stop(graceMs?: number): Promise<void>;
  pulse(): Promise<void>;
}

/** A change of the configuration's file, and what became of it. */
export interface Reload {
  readonly at: string;
  readonly result: "in force" | "refused";
  /** Paths of the settings that changed, up to a limit; and how many. */
  readonly changed: readonly string[];
  readonly changedCount: number;
  readonly reason: string | null;
}

const RELOADS_MAX = 50;
const CHANGED_MAX = 100;

export interface ConfigurationState {
  health(): HealthPart;
  /** Why the present content of the file is not in force; null when it is. */
  refused(): RefusedConfiguration | null;
  /** The latest first. */
  reloads(): readonly Reload[];
  recheck(): void;
  register(metrics: Registry): void;
}

export interface ReloadParts<Gateway extends Reloadable> {
  /** Reads and validates the file, and adds the paths of all files that it read to `files`. Throws `ConfigError`. */
  load(files: Set<string>): GatewayConfig;
  start(config: GatewayConfig, configuration: ConfigurationState): Promise<Gateway>;
  /** Called when a reload begins and has ended, for the service manager. */
  readonly onReload?: (phase: "begins" | "ended") => void;
  readonly log: Logger;
  readonly clock?: Clock;
}

export class Reloading<Gateway extends Reloadable> {
  readonly #parts: ReloadParts<Gateway>;
  readonly #clock: Clock;
  readonly #metrics: ConfigurationMetrics;
  readonly #state: ConfigurationState;
  #config: GatewayConfig;
  #files: ReadonlySet<string>;
  #gateway: Gateway | null = null;
  #watch: FileWatch | null = null;
  /** Why the current content of the file is not in force. */
  #refused: RefusedConfiguration | null = null;
  #since: string;
  #reloads: readonly Reload[] = [];
  readonly #failed = Promise.withResolvers<never>();

  /** Throws the error of the first start. */
  static async start<Gateway extends Reloadable>(parts: ReloadParts<Gateway>): Promise<Reloading<Gateway>> {
    const files = new Set<string>();
    const reloading = new Reloading(parts, parts.load(files), files);
    await reloading.#begin();
    return reloading;
  }

  private constructor(parts: ReloadParts<Gateway>, config: GatewayConfig, files: ReadonlySet<string>) {
    this.#parts = parts;
    this.#clock = parts.clock ?? systemClock;
    this.#config = config;
    this.#files = files;
    this.#since = isoInstant(this.#clock.now());
    this.#failed.promise.catch(() => undefined); // There may be no listener.
    this.#metrics = new ConfigurationMetrics();
    this.#metrics.taken(this.#clock.now());
    this.#state = {
      health: () => this.health(),
      refused: () => this.#refused,
      reloads: () => this.#reloads,
      recheck: () => this.recheck(),
      register: (registry) => this.#metrics.register(registry),
    };
  }

  /** The gateway that runs now. */
  get gateway(): Gateway {
    if (this.#gateway === null) throw new Error("no gateway runs");
    return this.#gateway;
  }

  /** A sign of life of the running gateway; between two gateways there is none to wait for. */
  async pulse(): Promise<void> {
    await this.#gateway?.pulse();
  }

  health(): HealthPart {
    const inForce = `in force since ${this.#since}`;
    const refused = this.#refused?.reason;
    const reason =
      refused === undefined
        ? inForce
        : `the current file is refused, and the configuration ${inForce} stays: ${refused}`;
    return { part: "configuration", ready: true, reason };
  }

  /** Rejects when neither the changed configuration nor the former one could be started: no gateway runs then. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  /** Reads the file and its secrets again at once, as SIGHUP requests. */
  recheck(): void {
    this.#watch?.checkNow();
  }

  async stop(): Promise<void> {
    await this.#watch?.stop();
    await this.#gateway?.stop();
    this.#gateway = null;
  }

  async #begin(): Promise<void> {
    this.#gateway = await this.#parts.start(this.#config, this.#state);
    this.#watch = await FileWatch.start({
      paths: () => [...this.#files],
      everyMs: () => this.#config.operations.reload.every,
      onChange: () => this.#reload(),
      clock: this.#clock,
    });
    // It may have changed while the gateway started.
    this.#watch.checkNow();
  }

  async #reload(): Promise<void> {
    const files = new Set<string>();
    try {
      const next = this.#parts.load(files);
      this.#files = files;
      if (isDeepStrictEqual(next, this.#config)) return this.#sameAgain();
      this.#parts.onReload?.("begins");
      const changed = await this.#takeOver(next);
      this.#take(next);
      this.#parts.log.info({ changed }, "the changed configuration is in force");
    } catch (thrown) {
      // A change of a file that the former configuration named may also make the new one valid.
      this.#files = new Set([...this.#files, ...files]);
      this.#refuse(thrown);
    } finally {
      this.#parts.onReload?.("ended");
    }
  }

  async #takeOver(next: GatewayConfig): Promise<readonly string[]> {
    const exchange = await this.gateway.exchange(next);
    if (exchange.status === "exchanged") return exchange.changed;
    const { log, start } = this.#parts;
    log.info({ sections: exchange.sections }, "the gateway restarts, since these sections changed");
    await this.gateway.stop(next.operations.reload.grace);
    this.#gateway = null;
    try {
      this.#gateway = await start(next, this.#state);
    } catch (thrown) {
      this.#gateway = await start(this.#config, this.#state).catch((second) => {
        this.#failed.reject(second);
        throw second;
      });
      throw thrown;
    }
    return exchange.sections;
  }

  #record(result: Reload["result"], changed: readonly string[], reason: string | null): void {
    const at = isoInstant(this.#clock.now());
    const reload = { at, result, changed: changed.slice(0, CHANGED_MAX), changedCount: changed.length, reason };
    this.#reloads = [reload, ...this.#reloads].slice(0, RELOADS_MAX);
  }

  #take(next: GatewayConfig): void {
    this.#record("in force", changedPaths(this.#config, next), null);
    this.#config = next;
    this.#refused = null;
    this.#since = isoInstant(this.#clock.now());
    this.#metrics.taken(this.#clock.now());
    this.#parts.log.level = next.log.level;
  }

  #sameAgain(): void {
    if (this.#refused !== null)
      this.#parts.log.info("the configuration is valid again, and the same as the one in force");
    this.#refused = null;
    this.#metrics.valid();
  }

  #refuse(thrown: unknown): void {
    const reason = wordsOf(thrown);
    const since = this.#refused?.since ?? isoInstant(this.#clock.now());
    this.#refused = { since, reason };
    this.#record("refused", [], reason);
    this.#metrics.refused();
    const facts = thrown instanceof HeadgateError ? { code: thrown.code, hint: thrown.hint } : { err: thrown };
    this.#parts.log.error(facts, `the changed configuration is refused, the former one stays in force: ${reason}`);
  }
}
