/**
 * The mapping hosts, kept between files, since one takes a fifth of a second to start.
 *
 * A host serves one mapper, in one version: what a mapper changes in the runtime can only hurt itself. Those that come
 * with Headgate share a host. One whose thread was left unclean, or that has grown, is replaced: it receives no further
 * task, and ends with its last one.
 */
import type { Logger } from "#core/log.ts";
import { isBundled } from "./bundled.ts";
import type { HostLimits } from "./host-process.ts";
import type { Load } from "./list-turns.ts";
import { type HostReports, MappingHost } from "./mapping-host.ts";
import type { MapperModule } from "./messages.ts";

/** Idle hosts end, since most sites have long pauses between files. */
const IDLE_MS = 60_000;
/** Files of one host. */
const SERVED_MAX = 5_000;
/** Share of the memory of one file that a host may hold while idle, beside that of its threads. */
const GROWN_SHARE_MAX = 0.5;

export interface HostPoolMeans {
  readonly log: Logger;
  readonly onLate: HostReports["late"];
}

export class HostPool {
  readonly #idleThreadsMax: number;
  readonly #limits: HostLimits;
  readonly #log: Logger;
  readonly #reports: HostReports;
  /** The host that receives the tasks of a key. */
  readonly #hosts = new Map<string, MappingHost>();
  /** When hosts without a task end; longest idle first. */
  readonly #idle = new Map<MappingHost, NodeJS.Timeout>();
  /** Hosts that have not ended yet. */
  readonly #alive = new Set<MappingHost>();
  /** Hosts that receive no further task. */
  readonly #retired = new WeakSet<MappingHost>();

  /** Hosts without a task are kept while they have at most this number of threads, or for the last one of them. */
  constructor(idleThreadsMax: number, limits: HostLimits, { log, onLate }: HostPoolMeans) {
    this.#idleThreadsMax = idleThreadsMax;
    this.#limits = limits;
    this.#log = log;
    const fault = (words: string) =>
      log.warn({ fault: words }, "a mapper had left work behind that failed between two files");
    this.#reports = { fault, late: onLate };
  }

  /**
   * The host of this mapper, or of those that come with Headgate. `alone`: a new host, for one task; `behind`: the
   * same, which uses the processor when others do not need it.
   */
  take(module: MapperModule, how: "shared" | "alone" | "behind"): MappingHost {
    const key = keyOf(module);
    const known = how === "shared" ? this.#hosts.get(key) : undefined;
    if (known?.isAlive === true) {
      this.#stayAwake(known);
      return known;
    }
    const host = new MappingHost(this.#limits, this.#reports, key === BUNDLED ? module : null);
    this.#alive.add(host);
    if (how === "shared") this.#hosts.set(key, host);
    if (how === "behind") {
      this.#retired.add(host);
      host.fallBehind();
    }
    return host;
  }

  /** Of the host of this key. */
  load(key: string): Load {
    const host = this.#hosts.get(key);
    return host?.isAlive === true ? host : { threads: 0, tasks: 0 };
  }

  /** Starts the host of this mapper ahead of its first file. */
  prepare(module: MapperModule): void {
    const host = this.take(module, "shared");
    if (host.tasks === 0) this.#keepIdle(host);
  }

  /** After a task that was answered. `left`: resources that the mapper left behind. */
  giveBack(host: MappingHost, module: MapperModule, left: string | null): void {
    if (left !== null) this.#log.warn({ left }, "a mapping host is replaced, since its mapper left work behind");
    if (left !== null || this.#retired.has(host) || this.#isWorn(host) || !host.isAlive) {
      this.retire(host);
      return;
    }
    const key = keyOf(module);
    if (this.#hosts.get(key)?.isAlive !== true) this.#hosts.set(key, host);
    if (this.#hosts.get(key) !== host) this.retire(host);
    else if (host.tasks === 0) this.#keepIdle(host);
  }

  /** The host receives no further task, and ends after the last one that it has. */
  retire(host: MappingHost): void {
    this.#retired.add(host);
    this.#stayAwake(host);
    for (const [key, one] of this.#hosts) if (one === host) this.#hosts.delete(key);
    if (host.tasks === 0) void this.#ending(host);
  }

  /** Ends all hosts, also those with tasks. */
  async close(): Promise<void> {
    for (const host of [...this.#idle.keys()]) this.#stayAwake(host);
    this.#hosts.clear();
    await Promise.all([...this.#alive].map((host) => this.#ending(host)));
  }

  #isWorn(host: MappingHost): boolean {
    if (host.served >= SERVED_MAX) return true;
    return host.tasks === 0 && host.grownBytes > this.#limits.memory * GROWN_SHARE_MAX + host.threadBytes;
  }

  #keepIdle(host: MappingHost): void {
    this.#stayAwake(host);
    const timer = setTimeout(() => this.retire(host), IDLE_MS);
    timer.unref();
    this.#idle.set(host, timer);
    const idle = [...this.#idle.keys()];
    let threads = idle.reduce((sum, one) => sum + one.threads, 0);
    for (const oldest of idle) {
      if (threads <= this.#idleThreadsMax || oldest === host) return;
      threads -= oldest.threads;
      this.retire(oldest);
    }
  }

  #stayAwake(host: MappingHost): void {
    clearTimeout(this.#idle.get(host));
    this.#idle.delete(host);
  }

  async #ending(host: MappingHost): Promise<void> {
    await host.kill();
    this.#alive.delete(host);
  }
}

const BUNDLED = "bundled";

/** Mappers of the same key share a host. */
export function keyOf(module: MapperModule): string {
  return isBundled(module.origin ?? module.modulePath) ? BUNDLED : `${module.modulePath}?${module.digest}`;
}
