/**
 * The processes of the pool, kept between files, since one takes a fifth of a second to start.
 *
 * A process serves one mapper, in one version: what a mapper changes in the runtime can only hurt itself. Those that come with
 * Headgate share processes. One that was left unclean or has grown is replaced.
 */
import type { Logger } from "../support/log.ts";
import { isBundled } from "./catalogue.ts";
import { MapperProcess, type ProcessLimits } from "./mapper-process.ts";
import type { MapperModule } from "./messages.ts";

/** Idle processes end, since most sites have long pauses between files. */
const IDLE_MS = 60_000;
/** Files of one process. */
const SERVED_MAX = 5_000;
/** Share of its memory that a process may hold while idle. */
const GROWN_SHARE_MAX = 0.5;

interface Idle {
  readonly child: MapperProcess;
  readonly key: string;
  readonly timer: NodeJS.Timeout;
}

export class ProcessPool {
  readonly #idleMax: number;
  readonly #limits: ProcessLimits;
  readonly #log: Logger;
  /** Longest idle first. */
  readonly #idle: Idle[] = [];
  /** All that have not ended yet. */
  readonly #alive = new Set<MapperProcess>();

  /** At most `idleMax` processes are kept while they do nothing. */
  constructor(idleMax: number, limits: ProcessLimits, log: Logger) {
    this.#idleMax = idleMax;
    this.#limits = limits;
    this.#log = log;
  }

  /** A process that serves this mapper only, or those that come with Headgate. `isFresh`: one that served nobody yet. */
  take(module: MapperModule, isFresh: boolean): MapperProcess {
    const key = keyOf(module);
    const known = isFresh ? undefined : this.#idle.findLast((one) => one.key === key);
    if (known !== undefined) {
      this.#remove(known);
      if (known.child.isAlive) return known.child;
    }
    const onFault = (words: string) =>
      this.#log.warn({ fault: words }, "a mapper had left work behind that failed between two files");
    const child = new MapperProcess(this.#limits, onFault, key === BUNDLED ? module : null);
    this.#alive.add(child);
    return child;
  }

  /** Whether a process of this key waits for work. */
  hasIdle(key: string): boolean {
    return this.#idle.some((one) => one.key === key);
  }

  /** Starts a process for this mapper ahead of its first file, unless one waits. */
  prepare(module: MapperModule): void {
    const key = keyOf(module);
    if (!this.hasIdle(key)) this.giveBack(this.take(module, true), module, null);
  }

  /** `left` says why it is not clean. */
  giveBack(child: MapperProcess, module: MapperModule, left: string | null): void {
    if (left !== null) this.#log.warn({ left }, "a mapping process is replaced");
    const isWorn = child.served >= SERVED_MAX || child.grownBytes > this.#limits.memory * GROWN_SHARE_MAX;
    if (left !== null || isWorn || !child.isAlive) {
      this.drop(child);
      return;
    }
    const timer = setTimeout(() => {
      this.#remove(idle);
      this.drop(child);
    }, IDLE_MS);
    timer.unref();
    const idle: Idle = { child, key: keyOf(module), timer };
    this.#idle.push(idle);
    const oldest = this.#idle[0];
    if (this.#idle.length <= this.#idleMax || oldest === undefined) return;
    this.#remove(oldest);
    this.drop(oldest.child);
  }

  /** It is not used any more. */
  drop(child: MapperProcess): void {
    void this.#ending(child);
  }

  /** Ends all, those at work too. */
  async close(): Promise<void> {
    for (const idle of [...this.#idle]) this.#remove(idle);
    await Promise.all([...this.#alive].map((child) => this.#ending(child)));
  }

  async #ending(child: MapperProcess): Promise<void> {
    await child.kill();
    this.#alive.delete(child);
  }

  #remove(idle: Idle): void {
    clearTimeout(idle.timer);
    const at = this.#idle.indexOf(idle);
    if (at >= 0) this.#idle.splice(at, 1);
  }
}

const BUNDLED = "bundled";

/** Of what may share a process. */
export function keyOf(module: MapperModule): string {
  return isBundled(module.origin ?? module.modulePath) ? BUNDLED : `${module.modulePath}?${module.digest}`;
}
