/**
 * Reports the state of the daemon to systemd (`sd_notify`): ready, reloading, stopping, and alive. Node cannot send
 * to the socket itself; the program `systemd-notify` does, which is part of systemd. Without `NOTIFY_SOCKET` nothing
 * is sent.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { wordsOf } from "#core/errors.ts";
import type { Logger } from "#core/log.ts";

export interface ServiceManagerParts {
  /** The program that sends its arguments, such as `READY=1`. */
  readonly program: string;
  /** `NOTIFY_SOCKET`; undefined where no service manager listens. */
  readonly socket: string | undefined;
  /** `WATCHDOG_USEC`: systemd ends a process that was silent for this time. */
  readonly watchdogUsec: string | undefined;
  readonly log: Logger;
}

const PROGRAM_MS = 5_000;
const run = promisify(execFile);

export class ServiceManager {
  readonly #parts: ServiceManagerParts;
  #latest: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #isFaultLogged = false;
  #isReloading = false;
  #isStopping = false;

  constructor(parts: ServiceManagerParts) {
    this.#parts = parts;
  }

  ready(status: string): Promise<void> {
    return this.#send("READY=1", `STATUS=${status}`);
  }

  reloading(): Promise<void> {
    this.#isReloading = true;
    return this.#send("RELOADING=1", `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
  }

  /** Only after `reloading`. */
  async reloaded(status: string): Promise<void> {
    if (!this.#isReloading) return;
    this.#isReloading = false;
    await this.ready(status);
  }

  stopping(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    return this.#send("STOPPING=1");
  }

  /**
   * Sends a sign of life at half the watchdog's interval, as long as `pulse` resolves: it must pass through every
   * loop that the daemon depends on.
   */
  watch(pulse: () => Promise<void>): void {
    const everyMs = Number(this.#parts.watchdogUsec ?? 0) / 1000 / 2;
    if (this.#parts.socket === undefined || !(everyMs >= 1)) return;
    let isAsked = false;
    const beat = async () => {
      if (isAsked) return;
      isAsked = true;
      try {
        await pulse();
        if (!this.#isStopping) await this.#send("WATCHDOG=1");
      } catch (thrown) {
        this.#parts.log.warn({ reason: wordsOf(thrown) }, "the service manager received no sign of life");
      } finally {
        isAsked = false;
      }
    };
    this.#timer = setInterval(() => void beat(), everyMs);
    this.#timer.unref();
  }

  /** Messages are sent one after another. A failure to send disturbs nothing, and is logged once. */
  #send(...assignments: readonly string[]): Promise<void> {
    const { program, socket, log } = this.#parts;
    if (socket === undefined) return Promise.resolve();
    this.#latest = this.#latest.then(async () => {
      try {
        await run(program, [...assignments], { timeout: PROGRAM_MS });
      } catch (thrown) {
        if (this.#isFaultLogged) return;
        this.#isFaultLogged = true;
        log.warn(
          { program, reason: wordsOf(thrown) },
          "the state of the gateway cannot be sent to systemd, which may take it for hung",
        );
      }
    });
    return this.#latest;
  }
}
