/**
 * Slows down whoever tries credentials again and again, and whoever asks for a token at every call
 * (specification, *Authentication* 2). In memory, for each node.
 */
import type { Clock } from "../../support/clock.ts";
import type { HubOptions } from "../options.ts";

/** Names and addresses are the caller's, so that their number has no end of its own. */
const KEYS_MAX = 10_000;
/** A user and an address by themselves may fail more often than one user from one address: many may share them. */
const SHARED_FACTOR = 10;

export interface Attempt {
  readonly address: string;
  /** `client gateway`, `user manager`. */
  readonly name: string;
}

export interface Throttle {
  /** Seconds to wait before credentials are looked at again; 0: now. */
  waitSec(attempt: Attempt): number;
  failed(attempt: Attempt): void;
  succeeded(attempt: Attempt): void;
  /** Counts a token for whom it was issued to. Seconds to wait for the next; 0: it may be issued. */
  issuing(name: string): number;
}

export function createThrottle(options: HubOptions["tokenThrottle"], clock: Clock): Throttle {
  const failures = createCounter(options.window, clock);
  const tokens = createCounter(60_000, clock);
  const keysOf = ({ address, name }: Attempt): [key: string, most: number][] => [
    [JSON.stringify([name, address]), options.failures],
    [name, options.failures * SHARED_FACTOR],
    [address, options.failures * SHARED_FACTOR],
  ];
  return {
    waitSec: (attempt) => Math.max(...keysOf(attempt).map(([key, most]) => failures.waitSec(key, most))),
    failed(attempt) {
      for (const [key] of keysOf(attempt)) failures.add(key);
    },
    succeeded(attempt) {
      const [[own] = [""]] = keysOf(attempt);
      failures.forget(own);
    },
    issuing(name) {
      const wait = tokens.waitSec(name, options.tokensPerMinute);
      if (wait === 0) tokens.add(name);
      return wait;
    },
  };
}

/** Counts by key in windows that begin with the first count. */
function createCounter(windowMs: number, clock: Clock) {
  const counts = new Map<string, { count: number; untilMs: number }>();
  const current = (key: string) => {
    const found = counts.get(key);
    return found !== undefined && found.untilMs > clock.monotonicMs() ? found : undefined;
  };
  return {
    waitSec(key: string, most: number): number {
      const found = current(key);
      if (found === undefined || found.count < most) return 0;
      return Math.max(1, Math.ceil((found.untilMs - clock.monotonicMs()) / 1_000));
    },
    add(key: string): void {
      const found = current(key) ?? { count: 0, untilMs: clock.monotonicMs() + windowMs };
      counts.delete(key);
      counts.set(key, { ...found, count: found.count + 1 });
      const [oldest] = counts.keys();
      if (counts.size > KEYS_MAX && oldest !== undefined) counts.delete(oldest);
    },
    forget: (key: string): boolean => counts.delete(key),
  };
}
